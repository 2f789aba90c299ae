package pages

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// filter has the query of a page of jobs. Empty fields admit all jobs.
type filter struct {
	State, Owner, Pool, Name, Flow, Since string

	Exact bool // Name is a whole name
	Sort  string
	Down  bool // the other direction of Sort
	From  int  // the first row that the page shows

	since time.Time
}

// active is the value of the state of all jobs that have not ended.
const active = "not ended"

var states = []string{active, "waiting", "preparing", "running", "committing", "stopping", "succeeded", "failed", "killed"}

// endStates are the states of the history.
var endStates = states[6:]

// filterOf reads a query. A time Since is a date, a date with a time of day, or a duration before now.
func filterOf(q url.Values, now time.Time) (filter, error) {
	f := filter{
		State: q.Get("state"), Owner: q.Get("owner"), Pool: q.Get("pool"), Name: q.Get("name"), Flow: q.Get("flow"), Since: q.Get("since"),
		Exact: q.Has("exact"), Sort: q.Get("sort"), Down: q.Has("down"),
	}
	if f.Sort != "" && sorters[f.Sort] == nil {
		return f, badRequest("sort=%q: jobs can be sorted by %s", f.Sort, strings.Join(sortNames(), ", "))
	}
	var err error
	if f.From, err = firstRow(q); err != nil {
		return f, err
	}
	if f.Since != "" {
		if f.since, err = parseSince(f.Since, now); err != nil {
			return f, err
		}
	}
	return f, nil
}

// firstRow reads the number of the first row that a page shows.
func firstRow(q url.Values) (n int, err error) {
	if text := q.Get("from"); text != "" {
		if n, err = strconv.Atoi(text); err != nil || n < 0 {
			return 0, badRequest("from=%q: want the number of a row", text)
		}
	}
	return n, nil
}

// filled makes a query of the values that are not empty.
func filled(values map[string]string) url.Values {
	q := make(url.Values)
	for name, value := range values {
		if value != "" {
			q.Set(name, value)
		}
	}
	return q
}

func badRequest(format string, args ...any) error {
	return &problem{Status: http.StatusBadRequest, Text: fmt.Sprintf(format, args...)}
}

func parseSince(text string, now time.Time) (time.Time, error) {
	for _, form := range []string{time.DateOnly, "2006-01-02T15:04", "2006-01-02 15:04", time.RFC3339} {
		if t, err := time.Parse(form, text); err == nil {
			return t, nil
		}
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 {
			return now.AddDate(0, 0, -n), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, badRequest("since=%q: want a UTC date such as 2026-01-31, a time such as 2026-01-31 12:00, or a duration before now such as 90m or 7d", text)
}

// query is the filter for the API.
func (f *filter) query() url.Values {
	q := filled(map[string]string{"owner": f.Owner, "pool": f.Pool, "name": f.pattern(), "flow": f.Flow})
	switch f.State {
	case "":
	case active:
		q["state"] = states[1:6]
	default:
		q.Set("state", f.State)
	}
	if !f.since.IsZero() {
		q.Set("since", f.since.UTC().Format(time.RFC3339))
	}
	return q
}

// pattern is the name for the API. A name without * may be anywhere in the names of jobs, unless it is exact.
func (f *filter) pattern() string {
	if f.Name == "" || f.Exact || strings.Contains(f.Name, "*") {
		return f.Name
	}
	return "*" + f.Name + "*"
}

// with is the query of the same page with other values: names, each before its value. The other page begins with the first row.
func (f filter) with(pairs ...string) string {
	q := filled(map[string]string{"state": f.State, "owner": f.Owner, "pool": f.Pool, "name": f.Name, "flow": f.Flow, "since": f.Since, "sort": f.Sort})
	for name, value := range map[string]bool{"exact": f.Exact, "down": f.Down} {
		if value {
			q.Set(name, "")
		}
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if q.Set(pairs[i], pairs[i+1]); pairs[i+1] == "" {
			q.Del(pairs[i])
		}
	}
	return "?" + q.Encode()
}

// heading is the title of a column by which a table can be sorted.
type heading struct {
	Text, Class string
	Link        string // empty: the column cannot be sorted
	Order       string // of the rows now: "ascending", "descending", or empty
}

// column makes the title of a column; by names a sorter, or is empty. A click sorts, and another one turns the order.
func (f filter) column(text, class, by string) heading {
	t := heading{Text: text, Class: class}
	if by == "" {
		return t
	}
	down := ""
	if f.Sort == by {
		if t.Order = "ascending"; f.Down != descending[by] {
			t.Order = "descending"
		}
		if !f.Down {
			down = "1"
		}
	}
	t.Link = f.with("sort", by, "down", down)
	return t
}
