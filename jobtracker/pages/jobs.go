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
	Filter  filter
	Rows    []jobRow
	Of      int // jobs before the filter
	Omitted int // older jobs that the page does not have
	States  []string
}

// jobRow is a line of a table of jobs.
type jobRow struct {
	*web.Job
	Percent int
	Ends    time.Duration // from submission to the predicted end; 0: not known, or ended
	Axis    *bar          // nil: the job has no predicted end
}

// filter has the query of the page. Empty fields admit all jobs.
type filter struct{ State, Owner, Pool, Name, Sort string }

func filterOf(q url.Values) (filter, error) {
	f := filter{q.Get("state"), q.Get("owner"), q.Get("pool"), q.Get("name"), q.Get("sort")}
	if f.Sort != "" && sorter(f.Sort) == nil {
		return f, &problem{Status: http.StatusBadRequest, Text: fmt.Sprintf("sort=%q: jobs can be sorted by %s", f.Sort, strings.Join(sortNames(), ", "))}
	}
	return f, nil
}

func (f filter) admits(j *web.Job) bool {
	return (f.State == "" || j.State == f.State) && (f.Owner == "" || j.Owner == f.Owner) &&
		(f.Pool == "" || j.Settings.Pool == f.Pool) && strings.Contains(j.Name, f.Name)
}

func (h *handler) jobs(r *http.Request) (any, error) {
	f, err := filterOf(r.URL.Query())
	if err != nil {
		return nil, err
	}
	jobs, omitted, err := h.allJobs(r)
	if err != nil {
		return nil, err
	}
	page := newJobsPage(jobs, f)
	page.Omitted = omitted
	return page, nil
}

func newJobsPage(jobs []web.Job, f filter) *jobsPage {
	page := &jobsPage{Filter: f, Of: len(jobs)}
	for i := range slices.Backward(jobs) { // the newest first
		if !slices.Contains(page.States, jobs[i].State) {
			page.States = append(page.States, jobs[i].State)
		}
		if f.admits(&jobs[i]) {
			page.Rows = append(page.Rows, rowOf(&jobs[i]))
		}
	}
	slices.Sort(page.States)
	if by := sorter(f.Sort); by != nil {
		slices.SortStableFunc(page.Rows, by)
	}
	setAxis(page.Rows)
	return page
}

func rowOf(j *web.Job) jobRow {
	row := jobRow{Job: j, Percent: percent(j)}
	if !ended(j.State) {
		row.Ends = time.Duration(j.EndsMillis) * time.Millisecond
	}
	return row
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

// sorters order the rows of jobs by a column. The id decides ties, since the sort is stable.
var sorters = map[string]func(a, b jobRow) int{
	"name":  func(a, b jobRow) int { return cmp.Compare(a.Name, b.Name) },
	"owner": func(a, b jobRow) int { return cmp.Compare(a.Owner, b.Owner) },
	"pool":  func(a, b jobRow) int { return cmp.Compare(a.Settings.Pool, b.Settings.Pool) },
	"state": func(a, b jobRow) int { return cmp.Compare(a.State, b.State) },
	"done":  func(a, b jobRow) int { return cmp.Compare(b.Percent, a.Percent) },
	"age":   func(a, b jobRow) int { return cmp.Compare(b.ElapsedMillis, a.ElapsedMillis) },
	"end":   func(a, b jobRow) int { return cmp.Compare(left(a), left(b)) },
}

func sorter(name string) func(a, b jobRow) int { return sorters[name] }

func sortNames() []string {
	var names []string
	for name := range sorters {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// left is the time to the predicted end; jobs without one come last.
func left(row jobRow) time.Duration {
	if row.Ends == 0 {
		return 1<<63 - 1
	}
	return row.Ends - time.Duration(row.ElapsedMillis)*time.Millisecond
}

// LeftMillis is the predicted time to the job's end, in milliseconds.
func (row jobRow) LeftMillis() int64 { return max(0, left(row).Milliseconds()) }
