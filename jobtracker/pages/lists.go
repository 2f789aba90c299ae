package pages

import (
	"net/http"
	"net/url"

	"github.com/quernmr/quern/jobtracker/web"
)

// allJobs returns the jobs that the cluster knows, oldest first, at most maxRows of the newest.
func (h *handler) allJobs(r *http.Request) (jobs []web.Job, omitted int, err error) {
	for after := ""; ; {
		var page struct {
			Jobs []web.Job `json:"jobs"`
			Next string    `json:"next"`
		}
		if err := h.get(r, "/v1/jobs", afterQuery(after), &page); err != nil {
			return nil, 0, err
		}
		jobs = append(jobs, page.Jobs...)
		if more := len(jobs) - maxRows; more > 0 {
			jobs, omitted = jobs[more:], omitted+more
		}
		if page.Next == "" || page.Next == after {
			return jobs, omitted, nil
		}
		after = page.Next
	}
}

// allAttempts returns a job's attempts, at most maxRows of the last.
func (h *handler) allAttempts(r *http.Request, job string) (attempts []web.Attempt, omitted int, err error) {
	for after := ""; ; {
		var page web.Attempts
		if err := h.get(r, "/v1/jobs/"+job+"/attempts", afterQuery(after), &page); err != nil {
			return nil, 0, err
		}
		attempts = append(attempts, page.Attempts...)
		if more := len(attempts) - maxRows; more > 0 {
			attempts, omitted = attempts[more:], omitted+more
		}
		if page.Next == "" || page.Next == after {
			return attempts, omitted, nil
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

// maxRows limits the entries of a page. The page says how many it leaves out.
const maxRows = 2000
