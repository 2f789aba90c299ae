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
	return readPages(h, r, path, query, max, func(p *web.Page[T]) ([]T, string) { return p.Items, p.Next })
}

func readPages[T, P any](h *handler, r *http.Request, path string, query url.Values, max int, part func(*P) ([]T, string)) (all []T, more bool, err error) {
	query = clone(query)
	for after := query.Get("after"); ; {
		page := new(P)
		if err := h.get(r, path, query, page); err != nil {
			return nil, false, err
		}
		items, next := part(page)
		all = append(all, items...)
		if next == "" || next == after || len(all) >= max {
			return all, next != "", nil
		}
		after = next
		query.Set("after", after)
	}
}

func clone(query url.Values) url.Values {
	c := make(url.Values)
	maps.Copy(c, query)
	return c
}

// allExplanations explains the jobs that have not ended, at most maxJobs of them.
func (h *handler) allExplanations(r *http.Request) ([]web.Explanation, error) {
	all, _, err := readList[web.Explanation](h, r, "/v1/explain", nil, maxJobs)
	return all, err
}

// maxAttempts limits the attempts that the page of a running job reads, besides those that run.
const maxAttempts = 1000

// attemptsOf returns the attempts of a job. If there are too many, it returns those that run, and all is false.
func (h *handler) attemptsOf(r *http.Request, j *jobHead) (attempts []web.Attempt, all bool, err error) {
	switch {
	case j.Past != nil:
		return j.Past.Attempts, true, nil
	case ended(j.State):
		return nil, false, nil
	case j.Maps.Total+j.Reduces.Total <= maxAttempts:
		attempts, more, err := readPages(h, r, "/v1/jobs/"+j.ID+"/attempts", nil, maxAttempts, func(p *web.Attempts) ([]web.Attempt, string) { return p.Items, p.Next })
		if err != nil || !more {
			return attempts, true, err
		}
	}
	attempts, err = h.runningAttempts(r, j.ID)
	return attempts, false, err
}

// runningAttempts returns the attempts of a job that run.
func (h *handler) runningAttempts(r *http.Request, job string) (all []web.Attempt, err error) {
	var recent web.Recent
	err = h.get(r, "/v1/attempts", url.Values{"job": {job}, "state": {"running", "ready"}}, &recent)
	for _, of := range recent.Items {
		all = append(all, of.Attempts...)
	}
	return all, err
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
