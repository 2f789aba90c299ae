package pages

import (
	"net/http"
	"slices"

	"github.com/quernmr/quern/jobtracker/web"
)

// attemptsPage lists the attempts of a job, in the order of their tasks.
type attemptsPage struct {
	jobHead
	Filter   attemptFilter
	States   []string
	Kinds    []string
	Attempts []web.Attempt
	Next     string // link to the next rows; empty: there are none
	Seen     int    // attempts that were compared with the filter
}

// attemptFilter selects attempts. Empty fields admit all.
type attemptFilter struct{ State, Kind, Tracker, After string }

// attemptStates and attemptKinds are the values of a filter.
var (
	attemptStates = []string{"running", "succeeded", "failed", "killed"}
	attemptKinds  = []string{"map", "reduce", "other"}
)

// rowsOfAttempts is the number of attempts that a page shows, and maxSeen the number that it compares with the filter.
const rowsOfAttempts, maxSeen = 100, 4000

func (f *attemptFilter) admits(a *web.Attempt) bool {
	kind := phaseOf(a.ID)
	if kind == "" {
		kind = "other"
	}
	return (f.State == "" || f.State == a.State || f.State == "running" && a.State == "ready") &&
		(f.Kind == "" || f.Kind == kind) && (f.Tracker == "" || f.Tracker == a.Tracker)
}

// after is the query of the same page after an attempt.
func (f attemptFilter) after(id string) string {
	return "?" + filled(map[string]string{"state": f.State, "kind": f.Kind, "tracker": f.Tracker, "after": id}).Encode()
}

// First is the query of the first of the pages.
func (f attemptFilter) First() string { return f.after("") }

// rest returns the attempts of a whole list that come after those of the pages before.
func (f *attemptFilter) rest(all []web.Attempt) []web.Attempt {
	i := slices.IndexFunc(all, func(a web.Attempt) bool { return a.ID == f.After })
	return all[i+1:]
}

func (h *handler) attempts(r *http.Request) (any, error) {
	head, err := h.head(r, "attempts")
	if err != nil {
		return nil, err
	}
	q := r.URL.Query()
	f := attemptFilter{State: q.Get("state"), Kind: q.Get("kind"), Tracker: q.Get("tracker"), After: q.Get("after")}
	page := &attemptsPage{jobHead: *head, Filter: f, States: attemptStates, Kinds: attemptKinds}
	switch {
	case page.Past != nil:
		page.take(f.rest(page.Past.Attempts))
	case f.State == "running" && !ended(page.State):
		err = page.takeRunning(h, r)
	default:
		err = page.read(h, r)
	}
	setTook(page.Attempts, h.now())
	return page, err
}

// take adds attempts that the filter admits until the page is full.
func (p *attemptsPage) take(all []web.Attempt) (full bool) {
	for i := range all {
		if p.Seen++; !p.Filter.admits(&all[i]) {
			continue
		}
		if len(p.Attempts) == rowsOfAttempts {
			p.Next = p.Filter.after(p.Attempts[len(p.Attempts)-1].ID)
			return true
		}
		p.Attempts = append(p.Attempts, all[i])
	}
	return false
}

// takeRunning takes the attempts that run.
func (p *attemptsPage) takeRunning(h *handler, r *http.Request) error {
	all, err := h.runningAttempts(r, p.ID)
	p.take(p.Filter.rest(all))
	return err
}

// read reads attempts until the page is full, or has compared many.
func (p *attemptsPage) read(h *handler, r *http.Request) error {
	query := filled(map[string]string{"after": p.Filter.After})
	for {
		var some web.Attempts
		if err := h.get(r, "/v1/jobs/"+p.ID+"/attempts", query, &some); err != nil {
			return err
		}
		switch full := p.take(some.Items); {
		case full || some.Next == "" || some.Next == query.Get("after"):
			return nil
		case p.Seen >= maxSeen:
			p.Next = p.Filter.after(some.Next)
			return nil
		}
		query.Set("after", some.Next)
	}
}

// Stopped reports whether the page ends because it has compared many attempts.
func (p *attemptsPage) Stopped() bool { return p.Next != "" && len(p.Attempts) < rowsOfAttempts }

// Unlisted is the number of attempts that the history does not have.
func (p *attemptsPage) Unlisted() int {
	if p.Past == nil {
		return 0
	}
	return p.Past.UnlistedAttempts
}
