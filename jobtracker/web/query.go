package web

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
)

// parameter is a parameter of the query. All are optional, unless their text says otherwise.
type parameter struct {
	name    string
	text    string
	values  func() []string // the values that it can have; nil: any text
	format  string          // as in openapi.json
	repeats bool            // may be given several times
}

// The parameters of lists.
var (
	afterJob     = parameter{name: "after", text: "`next` of the page before: the page begins after this job"}
	afterAttempt = parameter{name: "after", text: "`next` of the page before: the page begins after this attempt"}

	stateParameter = parameter{name: "state", text: "only jobs in this state, or in one of several; commas separate them, too", values: jobStates, repeats: true}
	ownerParameter = parameter{name: "owner", text: "only jobs of this user"}
	poolParameter  = parameter{name: "pool", text: "only jobs in this pool"}
	nameParameter  = parameter{name: "name", text: "only jobs with this name; each `*` stands for any text"}
	sinceParameter = parameter{name: "since", text: "only jobs that were submitted then or later", format: "date-time"}
	flowParameter  = parameter{name: "flow", text: "only jobs of this flow"}
	orderParameter = parameter{name: "order", text: "`newest` first, the default, or `oldest` first", values: jobOrders}

	attemptStateParameter = parameter{name: "state", text: "only attempts in this state, or in one of several; commas separate them, too", values: attemptStates, repeats: true}
	recentJobParameter    = parameter{name: "job", text: "only attempts of the job with this id, or of one of several", repeats: true}
	trackerParameter      = parameter{name: "tracker", text: "only attempts on this task tracker"}
	limitParameter        = parameter{name: "limit", text: "at most so many attempts: those that run come first, then the last ones to end"}

	jobParameter = parameter{name: "job", text: "only the job with this id, or with one of several; without filters", repeats: true}
)

// filterParameters are the parameters of a filter of jobs.
var filterParameters = []parameter{stateParameter, ownerParameter, poolParameter, nameParameter, sinceParameter, flowParameter}

// profileParameters are those of package net/http/pprof.
var profileParameters = []parameter{
	{name: "seconds", text: "length of the profile"},
	{name: "debug", text: "1 or 2: as text"},
	{name: "gc", text: "1: collect garbage before a profile of the heap"},
}

const (
	orderNewest = "newest"
	orderOldest = "oldest"
)

func jobOrders() []string { return []string{orderNewest, orderOldest} }

func jobStates() (all []string) {
	for s := wire.Waiting; s <= wire.Killed; s++ {
		all = append(all, s.String())
	}
	return all
}

func attemptStates() (all []string) {
	for s := wire.AttemptRunning; s <= wire.AttemptKilled; s++ {
		all = append(all, s.String())
	}
	return all
}

// maxValues limits the bytes of a filter's values, which are compared with each job.
const maxValues = 1000

// checkQuery refuses a parameter that the route does not take, and one that is given too often.
func (x *route) checkQuery(r *http.Request) error {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return badRequest(fmt.Sprintf("query: %v", err))
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		i := slices.IndexFunc(x.query, func(p parameter) bool { return p.name == name })
		switch {
		case i < 0:
			return badRequest(fmt.Sprintf("query parameter %q is unknown: %s takes %s", name, x.pattern, namesOf(x.query)))
		case len(query[name]) > 1 && !x.query[i].repeats:
			return badRequest(fmt.Sprintf("query parameter %q is given %d times", name, len(query[name])))
		}
	}
	return nil
}

func namesOf(all []parameter) string {
	if len(all) == 0 {
		return "none"
	}
	names := make([]string, 0, len(all))
	for _, p := range all {
		names = append(names, p.name)
	}
	return strings.Join(names, ", ")
}

// badParameter refuses the value of a parameter.
func badParameter(name string, err error) *Error {
	return badRequest(fmt.Sprintf("query parameter %q: %v", name, err))
}

// several returns the values of a parameter that repeats. Commas separate values, too.
func (p *parameter) several(query url.Values) (all []string, err error) {
	for _, list := range query[p.name] {
		for text := range strings.SplitSeq(list, ",") {
			if !slices.Contains(p.values(), text) {
				return nil, badParameter(p.name, fmt.Errorf("want one of %s, got %q", strings.Join(p.values(), ", "), text))
			}
			all = append(all, text)
		}
	}
	return all, nil
}

// jobQuery reads the parameters of a list of jobs.
func (h *handler) jobQuery(r *http.Request) (q core.Query, err error) {
	q.By = h.caller(r)
	values := r.URL.Query()
	if q.After, err = jobAfter(values); err != nil {
		return q, err
	}
	switch order := values.Get(orderParameter.name); order {
	case "", orderNewest:
	case orderOldest:
		q.Oldest = true
	default:
		return q, badParameter(orderParameter.name, fmt.Errorf("want one of %s, got %q", strings.Join(jobOrders(), ", "), order))
	}
	states, err := stateParameter.several(values)
	if err != nil {
		return q, err
	}
	for _, text := range states {
		state, _ := stateOf(text) // several knows all states
		q.Filter.States = append(q.Filter.States, state)
	}
	q.Filter.Owner, q.Filter.Pool, q.Filter.Name = values.Get(ownerParameter.name), values.Get(poolParameter.name), values.Get(nameParameter.name)
	if n := len(q.Filter.Owner) + len(q.Filter.Pool) + len(q.Filter.Name); n > maxValues {
		return q, badRequest(fmt.Sprintf("query parameters owner, pool and name have at most %d bytes together, got %d", maxValues, n))
	}
	if text := values.Get(sinceParameter.name); text != "" {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return q, badParameter(sinceParameter.name, fmt.Errorf("want a time as 2026-01-31T12:00:00Z, got %q", text))
		}
		q.Filter.Since = at.UnixMilli()
	}
	if text := values.Get(flowParameter.name); text != "" {
		if q.Filter.Flow, err = wire.ParseFlowID(text); err != nil {
			return q, badParameter(flowParameter.name, err)
		}
	}
	return q, nil
}

// jobAfter returns the job after which a requested page begins.
func jobAfter(values url.Values) (after wire.JobID, err error) {
	if text := values.Get(afterJob.name); text != "" {
		if after, err = wire.ParseJobID(text); err != nil {
			return after, badCursor(err)
		}
	}
	return after, nil
}

// valuesOf is the inverse of jobQuery, without the caller.
func valuesOf(q *core.Query) url.Values {
	values := url.Values{}
	set := func(p parameter, text string) {
		if text != "" {
			values.Add(p.name, text)
		}
	}
	if !q.After.IsZero() {
		set(afterJob, q.After.String())
	}
	if q.Oldest {
		set(orderParameter, orderOldest)
	}
	for _, state := range q.Filter.States {
		set(stateParameter, state.String())
	}
	set(ownerParameter, q.Filter.Owner)
	set(poolParameter, q.Filter.Pool)
	set(nameParameter, q.Filter.Name)
	if q.Filter.Since != 0 {
		set(sinceParameter, time.UnixMilli(q.Filter.Since).UTC().Format(time.RFC3339Nano))
	}
	if !q.Filter.Flow.IsZero() {
		set(flowParameter, q.Filter.Flow.String())
	}
	return values
}
