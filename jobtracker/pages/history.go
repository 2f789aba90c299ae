package pages

import (
	"net/http"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/jobtracker/web"
)

// historyPage lists ended jobs, newest first.
type historyPage struct {
	Filter  filter
	States  []string
	Jobs    []web.History
	Skipped []string // why histories cannot be read
	Older   string   // link to the next page; empty: there is none
	Trends  []trend
	Of      string // the name of the trends
}

// maxHistories limits the jobs of a page, and pastPages the answers that the page is made from: a filter
// that selects few jobs may need more.
const (
	maxHistories = 100
	pastPages    = 10
)

func (h *handler) histories(r *http.Request) (any, error) {
	f, err := filterOf(r.URL.Query(), h.now())
	if err != nil {
		return nil, err
	}
	page, query := &historyPage{Filter: f, States: endStates}, f.query()
	if after := r.URL.Query().Get("after"); after != "" {
		query.Set("after", after)
	}
	for range pastPages {
		var list web.Histories
		if err := h.get(r, "/v1/histories", query, &list); err != nil {
			return nil, err
		}
		page.Jobs, page.Skipped = append(page.Jobs, list.Items...), append(page.Skipped, list.Skipped...)
		if page.Older = ""; list.Next == "" || list.Next == query.Get("after") {
			break
		}
		query.Set("after", list.Next)
		page.Older = f.with("after", list.Next)
		if len(page.Jobs) >= maxHistories {
			break
		}
	}
	page.setTrends()
	return page, nil
}

// trend shows a value of the runs of one name, the oldest first.
type trend struct {
	Title, Class string
	Most         int64
	Runs         []run
	Show         func(int64) string // formats a value
}

// run is a bar of a trend.
type run struct {
	web.History
	Value int64
	upright
}

// Bar is the width of a bar, with a gap to the next one.
func (r run) Bar() float64 { return r.Width * 0.9 }

// minTrend is the smallest number of runs that make a trend.
const minTrend = 3

// setTrends makes the trends of the name that has most succeeded runs, if it has enough.
func (p *historyPage) setTrends() {
	count := make(map[string]int)
	for i := range p.Jobs {
		if j := &p.Jobs[i]; !j.Hidden && j.State == "succeeded" {
			if count[j.Name]++; count[j.Name] > count[p.Of] { // of equals, the first to get there
				p.Of = j.Name
			}
		}
	}
	if count[p.Of] < minTrend {
		p.Of = ""
		return
	}
	var runs []*web.History
	for i := len(p.Jobs) - 1; i >= 0; i-- {
		if j := &p.Jobs[i]; !j.Hidden && j.State == "succeeded" && j.Name == p.Of {
			runs = append(runs, j)
		}
	}
	for _, of := range []struct {
		title, class string
		value        func(*web.History) int64
		show         func(int64) string
	}{
		{"Time from submission to end", "now", func(h *web.History) int64 { return h.ElapsedMillis }, span},
		{"Bytes of input", "map", func(h *web.History) int64 { return h.Read.Done }, client.Size},
	} {
		t := trend{Title: of.title, Class: of.class, Show: of.show}
		for i, j := range runs {
			v := of.value(j)
			t.Most = max(t.Most, v)
			t.Runs = append(t.Runs, run{*j, v, upright{X: float64(i) / float64(len(runs)), Width: 1 / float64(len(runs))}})
		}
		if t.Most == 0 {
			continue
		}
		for i := range t.Runs {
			t.Runs[i].High = max(0.01, part(t.Runs[i].Value, t.Most))
		}
		p.Trends = append(p.Trends, t)
	}
}
