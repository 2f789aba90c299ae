package pages

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/quernmr/quern/jobtracker/web"
)

// historyPage lists ended jobs, newest first.
type historyPage struct {
	Filter  filter
	States  []string
	Jobs    []web.History
	Skipped []string // why histories cannot be read
	Older   string   // query of the next page; empty: there is none
	Trend   *trend
}

// maxHistories limits the jobs of a page, and pastPages the answers that the page is made from: a filter
// that selects few jobs may need more.
const (
	maxHistories = 100
	pastPages    = 10
)

func (h *handler) histories(r *http.Request) (any, error) {
	f, err := filterOf(r.URL.Query())
	if err != nil {
		return nil, err
	}
	page, query := &historyPage{Filter: f, States: states[5:]}, f.query()
	query.Del("sort")
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
		page.Older = f.pageAfter(list.Next)
		if len(page.Jobs) >= maxHistories {
			break
		}
	}
	page.Trend = trendOf(page.Jobs)
	return page, nil
}

// pageAfter is the query of the same page after a job.
func (f filter) pageAfter(job string) string {
	q := url.Values{"after": {job}}
	for name, value := range map[string]string{"state": f.State, "owner": f.Owner, "pool": f.Pool, "name": f.Name, "flow": f.Flow} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return q.Encode()
}

// trend shows how long the runs of one name took, oldest first, in a box of 1000 by 100.
type trend struct {
	Name string
	Most int64 // milliseconds
	Runs []run
}

type run struct {
	web.History
	X, Wide, Y, High int
}

// trendOf returns the trend of at least three succeeded jobs, if all have one name; else nil.
func trendOf(jobs []web.History) *trend {
	t := new(trend)
	for _, past := range slices.Backward(jobs) {
		if past.Hidden || past.State != "succeeded" {
			continue
		}
		if len(t.Runs) > 0 && past.Name != t.Name {
			return nil
		}
		t.Name, t.Most = past.Name, max(t.Most, past.ElapsedMillis)
		t.Runs = append(t.Runs, run{History: past})
	}
	if len(t.Runs) < 3 || t.Most == 0 {
		return nil
	}
	for i := range t.Runs {
		r := &t.Runs[i]
		r.X, r.Wide = i*1000/len(t.Runs), max(1, 1000/len(t.Runs)-2)
		r.High = max(1, int(100*r.ElapsedMillis/t.Most))
		r.Y = 100 - r.High
	}
	return t
}

// comparePage shows two ended jobs side by side.
type comparePage struct {
	A, B web.History
	Rows []pair
}

// pair is a value of two jobs. Ratio is the second by the first; empty: it says nothing.
type pair struct{ Name, A, B, Ratio string }

func (h *handler) compare(r *http.Request) (any, error) {
	page := new(comparePage)
	for name, past := range map[string]*web.History{"a": &page.A, "b": &page.B} {
		id := r.URL.Query().Get(name)
		if id == "" {
			return nil, &problem{Status: http.StatusBadRequest, Text: "choose two jobs in the history: the address needs ?a=JOB&b=JOB"}
		}
		if err := h.get(r, "/v1/jobs/"+url.PathEscape(id)+"/history", nil, past); err != nil {
			return nil, err
		}
	}
	page.Rows = compared(&page.A, &page.B)
	return page, nil
}

func compared(a, b *web.History) (rows []pair) {
	text := func(name, a, b string) { rows = append(rows, pair{Name: name, A: a, B: b}) }
	number := func(name string, a, b int64, show func(int64) string) {
		p := pair{Name: name, A: show(a), B: show(b)}
		if a > 0 && a != b {
			p.Ratio = fmt.Sprintf("%.2f", float64(b)/float64(a))
		}
		rows = append(rows, p)
	}
	count := func(n int64) string { return fmt.Sprint(n) }
	text("State", a.State, b.State)
	text("Submitted", wallTime(a.Submitted), wallTime(b.Submitted))
	text("Pool", a.Settings.Pool, b.Settings.Pool)
	number("Time", a.ElapsedMillis, b.ElapsedMillis, span)
	number("Maps", int64(a.Maps.Total), int64(b.Maps.Total), count)
	number("Reduces", int64(a.Reduces.Total), int64(b.Reduces.Total), count)
	number("Failed attempts", int64(a.Maps.FailedAttempts+a.Reduces.FailedAttempts), int64(b.Maps.FailedAttempts+b.Reduces.FailedAttempts), count)
	ofA, ofB := workOf(&a.Job, a.Attempts), workOf(&b.Job, b.Attempts)
	number("Time in slots", ofA.SlotTime, ofB.SlotTime, span)
	for _, phase := range []string{"map", "reduce"} {
		number("Median time of a "+phase, medianOf(ofA.Times, phase), medianOf(ofB.Times, phase), span)
	}
	names := make(map[string]bool)
	for _, counters := range []map[string]map[string]int64{a.Counters, b.Counters} {
		for group, values := range counters {
			for name := range values {
				names[group+"\x00"+name] = true
			}
		}
	}
	sorted := make([]string, 0, len(names))
	for name := range names {
		sorted = append(sorted, name)
	}
	slices.SortFunc(sorted, cmp.Compare)
	for _, both := range sorted {
		group, name, _ := strings.Cut(both, "\x00")
		number(name, a.Counters[group][name], b.Counters[group][name], count)
	}
	return rows
}

func medianOf(all []histogram, phase string) int64 {
	for _, h := range all {
		if h.Phase == phase {
			return h.Median
		}
	}
	return 0
}
