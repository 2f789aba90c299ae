package pages

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/jobtracker/web"
)

// jobsPage is what the page of all jobs shows.
type jobsPage struct {
	Filter filter
	Rows   []jobRow
	More   bool // the page leaves out older jobs
	States []string
}

// jobRow is a line of a table of jobs.
type jobRow struct {
	*web.Job
	Percent int
	Ends    time.Duration // from submission to the likely end; 0: not known, or ended
	Axis    *bar          // nil: the job has no predicted end
}

// filter has the query of the page. Empty fields admit all jobs.
type filter struct{ State, Owner, Pool, Name, Flow, Sort string }

var states = []string{"waiting", "preparing", "running", "committing", "stopping", "succeeded", "failed", "killed"}

func filterOf(q url.Values) (filter, error) {
	f := filter{q.Get("state"), q.Get("owner"), q.Get("pool"), q.Get("name"), q.Get("flow"), q.Get("sort")}
	if f.Sort != "" && sorters[f.Sort] == nil {
		return f, &problem{Status: http.StatusBadRequest, Text: fmt.Sprintf("sort=%q: jobs can be sorted by %s", f.Sort, strings.Join(sortNames(), ", "))}
	}
	return f, nil
}

// query is the filter for the API. A name without * may be anywhere in the names of jobs.
func (f filter) query() url.Values {
	q := make(url.Values)
	for name, value := range map[string]string{"state": f.State, "owner": f.Owner, "pool": f.Pool, "name": namePattern(f.Name), "flow": f.Flow} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return q
}

func namePattern(name string) string {
	if name == "" || strings.Contains(name, "*") {
		return name
	}
	return "*" + name + "*"
}

func (h *handler) jobs(r *http.Request) (any, error) {
	f, err := filterOf(r.URL.Query())
	if err != nil {
		return nil, err
	}
	jobs, more, err := h.allJobs(r, f.query())
	if err != nil {
		return nil, err
	}
	page := &jobsPage{Filter: f, More: more, States: states, Rows: rowsOf(jobs)}
	if by := sorters[f.Sort]; by != nil {
		slices.SortStableFunc(page.Rows, by)
	} else {
		groupFlows(page.Rows)
	}
	return page, nil
}

func rowsOf(jobs []web.Job) []jobRow {
	rows := make([]jobRow, 0, len(jobs))
	for i := range jobs {
		j := &jobs[i]
		row := jobRow{Job: j, Percent: percent(j)}
		if p := j.Prediction; p != nil && !ended(j.State) {
			row.Ends = millis(p.LikelyMillis)
		}
		rows = append(rows, row)
	}
	setAxis(rows)
	return rows
}

// groupFlows puts the jobs of a flow together, where its newest job is, in the order of their ids.
func groupFlows(rows []jobRow) {
	place := make(map[string]int)
	for i, row := range rows {
		if _, ok := place[row.Flow]; !ok {
			place[row.Flow] = i
		}
	}
	at := make(map[string]int, len(rows))
	for i, row := range rows {
		if at[row.ID] = i; row.Flow != "" {
			at[row.ID] = place[row.Flow]
		}
	}
	slices.SortStableFunc(rows, func(a, b jobRow) int { return cmp.Or(cmp.Compare(at[a.ID], at[b.ID]), cmp.Compare(a.ID, b.ID)) })
}

// percent returns the part of the tasks that have ended.
func percent(j *web.Job) int {
	all := j.Maps.Total + j.Reduces.Total
	if all == 0 {
		return 0
	}
	return (j.Maps.Done + j.Reduces.Done) * 100 / all
}

func ended(state string) bool {
	return slices.Contains([]string{"succeeded", "failed", "killed"}, state)
}

// sorters order the rows of jobs by a column. The sort is stable, so the newest job decides ties.
var sorters = map[string]func(a, b jobRow) int{
	"name":  func(a, b jobRow) int { return cmp.Compare(a.Name, b.Name) },
	"owner": func(a, b jobRow) int { return cmp.Compare(a.Owner, b.Owner) },
	"pool":  func(a, b jobRow) int { return cmp.Compare(a.Settings.Pool, b.Settings.Pool) },
	"state": func(a, b jobRow) int { return cmp.Compare(a.State, b.State) },
	"done":  func(a, b jobRow) int { return cmp.Compare(b.Percent, a.Percent) },
	"age":   func(a, b jobRow) int { return cmp.Compare(b.ElapsedMillis, a.ElapsedMillis) },
	"end":   func(a, b jobRow) int { return cmp.Compare(left(a), left(b)) },
}

func sortNames() []string {
	var names []string
	for name := range sorters {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// left is the time to the likely end; jobs without one come last.
func left(row jobRow) time.Duration {
	if row.Ends == 0 {
		return 1<<63 - 1
	}
	return row.Ends - millis(row.ElapsedMillis)
}

// LeftMillis is the time to the likely end, in milliseconds.
func (row jobRow) LeftMillis() int64 { return max(0, left(row).Milliseconds()) }
