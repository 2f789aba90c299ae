package pages

import (
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/quernmr/quern/jobtracker/web"
)

// readList reads a list page by page, until it has at least max items. It reports whether it leaves out some.
func readList[T any](h *handler, r *http.Request, path string, query url.Values, max int) (all []T, more bool, err error) {
	query = clone(query)
	for after := ""; ; {
		var page web.Page[T]
		if err := h.get(r, path, query, &page); err != nil {
			return nil, false, err
		}
		all = append(all, page.Items...)
		if page.Next == "" || page.Next == after || len(all) >= max {
			return all, page.Next != "", nil
		}
		after = page.Next
		query.Set("after", after)
	}
}

func clone(query url.Values) url.Values {
	c := make(url.Values)
	maps.Copy(c, query)
	return c
}

// allJobs returns the jobs that a query selects, newest first, and whether it leaves out older ones.
func (h *handler) allJobs(r *http.Request, query url.Values) (jobs []web.Job, more bool, err error) {
	return readList[web.Job](h, r, "/v1/jobs", query, maxJobs)
}

// allAttempts returns a job's attempts by task and number, and whether it leaves out some: it reads a
// limited number of them, so that a job with many tasks has a page soon.
func (h *handler) allAttempts(r *http.Request, job string) (attempts []web.Attempt, more bool, err error) {
	return readList[web.Attempt](h, r, "/v1/jobs/"+job+"/attempts", nil, maxRows)
}

// allExplanations explains the jobs that have not ended, at most maxRows of them.
func (h *handler) allExplanations(r *http.Request) ([]web.Explanation, error) {
	all, _, err := readList[web.Explanation](h, r, "/v1/explain", nil, maxRows)
	return all, err
}

// recent returns the attempts that run, and those that have just ended, by job.
func (h *handler) recent(r *http.Request) (*web.Recent, error) {
	all := new(web.Recent)
	if err := h.get(r, "/v1/attempts", nil, all); err != nil {
		return nil, err
	}
	now := h.now()
	for i := range all.Items {
		setTook(all.Items[i].Attempts, now)
	}
	return all, nil
}

// setTook sets the time of running attempts until now.
func setTook(attempts []web.Attempt, now time.Time) {
	for i := range attempts {
		if a := &attempts[i]; running(a) && !a.Began.IsZero() {
			a.TookMillis = max(0, now.Sub(a.Began).Milliseconds())
		}
	}
}

func running(a *web.Attempt) bool { return a.State == "running" || a.State == "ready" }

// Limits of the entries of a page. The page says that it leaves out others.
const (
	maxJobs = 500
	maxRows = 1000 // attempts, explanations
)
