package pages

import (
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/quernmr/quern/jobtracker/web"
)

// allJobs returns the jobs that a query selects, newest first, and whether it leaves out older ones.
func (h *handler) allJobs(r *http.Request, query url.Values) (jobs []web.Job, more bool, err error) {
	for query, after := clone(query), ""; ; {
		var page web.Page[web.Job]
		if err := h.get(r, "/v1/jobs", query, &page); err != nil {
			return nil, false, err
		}
		jobs = append(jobs, page.Items...)
		if page.Next == "" || page.Next == after || len(jobs) >= maxJobs {
			return jobs, page.Next != "", nil
		}
		after = page.Next
		query.Set("after", after)
	}
}

func clone(query url.Values) url.Values {
	c := make(url.Values)
	maps.Copy(c, query)
	return c
}

// allAttempts returns a job's attempts by task and number, and whether it leaves out some: it reads a
// limited number of them, so that a job with many tasks has a page soon.
func (h *handler) allAttempts(r *http.Request, job string) (attempts []web.Attempt, more bool, err error) {
	for after := ""; ; {
		var page web.Attempts
		if err := h.get(r, "/v1/jobs/"+job+"/attempts", afterQuery(after), &page); err != nil {
			return nil, false, err
		}
		attempts = append(attempts, page.Items...)
		if page.Next == "" || page.Next == after || len(attempts) >= maxRows {
			return attempts, page.Next != "", nil
		}
		after = page.Next
	}
}

func afterQuery(after string) url.Values {
	if after == "" {
		return nil
	}
	return url.Values{"after": {after}}
}

// allExplanations explains the jobs that have not ended, at most maxRows of them.
func (h *handler) allExplanations(r *http.Request) (all []web.Explanation, err error) {
	for after := ""; ; {
		var page web.Page[web.Explanation]
		if err := h.get(r, "/v1/explain", afterQuery(after), &page); err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if page.Next == "" || page.Next == after || len(all) >= maxRows {
			return all, nil
		}
		after = page.Next
	}
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

// Limits of the entries of a page. The page says that it leaves out others.
const (
	maxJobs = 500
	maxRows = 1000 // attempts, explanations
)
