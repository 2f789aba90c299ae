package pages

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/quernmr/quern/jobtracker/web"
)

// jobsPage is what the page of all jobs shows.
type jobsPage struct {
	Filter filter
	Table  jobTable
	States []string
	Found  int    // jobs that the page has read
	More   bool   // it leaves out older jobs
	Before string // link to the rows before; empty: there are none
	After  string // link to the next rows
	Metric string // that the scheduler minimizes
}

// jobTable is a table of jobs. Its rows have bars on one axis.
type jobTable struct {
	Columns []heading
	Rows    []jobRow
	Axis    *axis   // nil: no row has a bar
	Now     float64 // place of now on the axis
}

// jobRow is a line of a table of jobs.
type jobRow struct {
	*web.Job
	Ends time.Duration // from submission to the likely end; 0: not known, or ended
	Bar  *bar          // nil: the job has no predicted end
}

// rowsOfPage is the number of jobs that a page shows, and maxJobs the number that it sorts.
const (
	rowsOfPage = 100
	maxJobs    = 1000
)

func (h *handler) jobs(r *http.Request) (any, error) {
	now := h.now()
	f, err := filterOf(r.URL.Query(), now)
	if err != nil {
		return nil, err
	}
	jobs, more, err := readList[web.Job](h, r, "/v1/jobs", f.query(), maxJobs)
	if err != nil {
		return nil, err
	}
	page := &jobsPage{Filter: f, More: more, States: states, Found: len(jobs)}
	rows := rowsOf(jobs)
	if by := sorters[f.Sort]; by != nil {
		if f.Down {
			slices.Reverse(rows) // so that ties keep the newest job first after the next one
			slices.SortStableFunc(rows, by)
			slices.Reverse(rows)
		} else {
			slices.SortStableFunc(rows, by)
		}
	} else {
		groupFlows(rows)
	}
	from := min(f.From, len(rows))
	to := min(from+rowsOfPage, len(rows))
	if from > 0 {
		page.Before = f.with("from", strconv.Itoa(max(0, from-rowsOfPage)))
	}
	if to < len(rows) {
		page.After = f.with("from", strconv.Itoa(to))
	}
	page.Table = tableOf(rows[from:to], now)
	page.Table.Columns = []heading{
		f.column("Job", "name", "name"), f.column("Owner, pool", "opt", "owner"), f.column("State", "", "state"),
		f.column("Tasks", "tasks", "done"), f.column("Age", "number", "age"), f.column("Time left", "number", "end"),
	}
	var cluster web.Cluster
	if err := h.get(r, "/v1/cluster", nil, &cluster); err != nil {
		return nil, err
	}
	page.Metric = cluster.Scheduling.Metric
	return page, nil
}

// tableOf makes a table that cannot be sorted.
func tableOf(rows []jobRow, now time.Time) jobTable {
	var f filter
	t := jobTable{Rows: rows, Axis: setBars(rows, now), Columns: []heading{
		f.column("Job", "name", ""), f.column("Owner, pool", "opt", ""), f.column("State", "", ""),
		f.column("Tasks", "tasks", ""), f.column("Age", "number", ""), f.column("Time left", "number", ""),
	}}
	if t.Axis != nil {
		t.Now = t.Axis.at(now)
	}
	return t
}

func rowsOf(jobs []web.Job) []jobRow {
	rows := make([]jobRow, 0, len(jobs))
	for i := range jobs {
		j := &jobs[i]
		row := jobRow{Job: j}
		if p := j.Prediction; p != nil && !ended(j.State) {
			row.Ends = millis(p.LikelyMillis)
		}
		rows = append(rows, row)
	}
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

func ended(state string) bool { return slices.Contains(endStates, state) }

// sorters order the rows of jobs by a column. The sort is stable, so the newest job decides ties.
var sorters = map[string]func(a, b jobRow) int{
	"name": func(a, b jobRow) int { return cmp.Compare(a.Name, b.Name) },
	"owner": func(a, b jobRow) int {
		return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Settings.Pool, b.Settings.Pool))
	},
	"pool":  func(a, b jobRow) int { return cmp.Compare(a.Settings.Pool, b.Settings.Pool) },
	"state": func(a, b jobRow) int { return cmp.Compare(a.State, b.State) },
	"done":  func(a, b jobRow) int { return cmp.Compare(b.Done(), a.Done()) },
	"age":   func(a, b jobRow) int { return cmp.Compare(b.ElapsedMillis, a.ElapsedMillis) },
	"end":   func(a, b jobRow) int { return cmp.Compare(left(a), left(b)) },
}

// descending are the columns with the largest value first.
var descending = map[string]bool{"done": true, "age": true}

func sortNames() []string {
	var names []string
	for name := range sorters {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Done is the part of the tasks that have ended.
func (row jobRow) Done() float64 {
	return part(row.Maps.Done+row.Reduces.Done, row.Maps.Total+row.Reduces.Total)
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

// Late says in a word whether the job misses its deadline.
func (row jobRow) Late() string {
	switch {
	case row.Settings.Late:
		return "late"
	case row.Prediction != nil && row.Prediction.LateMillis > 0 && !ended(row.State):
		return "will be late"
	}
	return ""
}

// Condition is the state, or that the job is suspended.
func (row jobRow) Condition() string {
	if row.Suspended && !ended(row.State) {
		return "suspended"
	}
	return row.State
}
