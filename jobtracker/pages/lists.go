package pages

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/quernmr/quern/jobtracker/web"
)

// readList reads a list page by page, until it has at least max items. It reports whether it leaves out some.
func readList[T any](h *handler, r *http.Request, path string, query url.Values, max int) (all []T, more bool, err error) {
	return readPages(h, r, path, query, max, func(p *web.Page[T]) ([]T, string) { return p.Items, p.Next })
}

// readAttempts is readList of a job's attempts.
func readAttempts(h *handler, r *http.Request, path string, query url.Values, max int) (all []web.Attempt, more bool, err error) {
	return readPages(h, r, path, query, max, func(p *web.Attempts) ([]web.Attempt, string) { return p.Items, p.Next })
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

// maxAttempts limits the attempts that the page of a job reads, and samples is the number of places from which it
// takes them.
const maxAttempts, samples = 1000, 5

// attemptsOf returns a job's attempts. If it has too many tasks, they are a sample, with attempts of tasks from
// everywhere, and sampled is set: the page of a job with many tasks comes soon, and shows no part more than another.
func (h *handler) attemptsOf(r *http.Request, j *web.Job) (attempts []web.Attempt, sampled bool, err error) {
	path := "/v1/jobs/" + j.ID + "/attempts"
	if j.Maps.Total+j.Reduces.Total <= maxAttempts || ended(j.State) {
		return readAttempts(h, r, path, nil, maxAttempts)
	}
	known := make(map[string]bool)
	for _, phase := range []struct {
		kind  string
		tasks int
	}{{"m", j.Maps.Total}, {"r", j.Reduces.Total}} {
		for k := range min(samples, phase.tasks) {
			after := fmt.Sprintf("attempt_%s_%s_%06d_0", strings.TrimPrefix(j.ID, "job_"), phase.kind, phase.tasks*k/samples)
			some, _, err := readAttempts(h, r, path, url.Values{"after": {after}}, maxAttempts/samples/2)
			if err != nil {
				return nil, false, err
			}
			for _, a := range some {
				if !known[a.ID] {
					known[a.ID] = true
					attempts = append(attempts, a)
				}
			}
		}
	}
	recent, err := h.recent(r)
	if err != nil {
		return nil, false, err
	}
	for _, of := range recent.Items {
		for _, a := range of.Attempts {
			if of.Job == j.ID && running(&a) && !known[a.ID] {
				attempts = append(attempts, a)
			}
		}
	}
	return attempts, true, nil
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
