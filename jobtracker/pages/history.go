package pages

import (
	"net/http"
	"strings"

	"github.com/quernmr/quern/jobtracker/web"
)

// historyPage lists ended jobs, newest first.
type historyPage struct {
	Name    string // the jobs with this in their names; empty: all
	Jobs    []web.History
	Skipped []string // why histories cannot be read
	Next    string   // the next page begins after this job
}

func (h *handler) histories(r *http.Request) (any, error) {
	q := r.URL.Query()
	page := &historyPage{Name: q.Get("name")}
	after := q.Get("after")
	for {
		var list struct {
			Jobs    []web.History `json:"jobs"`
			Next    string        `json:"next"`
			Skipped []string      `json:"skipped"`
		}
		if err := h.get(r, "/v1/histories", afterQuery(after), &list); err != nil {
			return nil, err
		}
		for _, past := range list.Jobs {
			if strings.Contains(past.Name, page.Name) {
				page.Jobs = append(page.Jobs, past)
			}
		}
		page.Skipped, page.Next, after = append(page.Skipped, list.Skipped...), list.Next, list.Next
		if after == "" || len(page.Jobs) >= 100 {
			return page, nil
		}
	}
}
