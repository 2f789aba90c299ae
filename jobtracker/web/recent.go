package web

import (
	"context"
	"net/http"
	"time"
)

// Recent has the attempts in slots of the jobs that the user may see: those that run, and those that have
// ended in the last ten minutes under this leader.
type Recent struct {
	Items []RecentJob `json:"items"`
	Since time.Time   `json:"since,omitzero"` // earlier ends are missing
}

// RecentJob has the attempts of a job.
type RecentJob struct {
	Job      string    `json:"job"`
	Attempts []Attempt `json:"attempts"` // running ones first, then the last ones to end
}

func (h *handler) recent(ctx context.Context, r *http.Request) (any, error) {
	if _, err := h.requireLeader(); err != nil {
		return nil, err
	}
	last, err := h.Server.Recent(ctx)
	if err != nil {
		return nil, err
	}
	answer, caller := Recent{Items: []RecentJob{}, Since: timeOf(last.Since)}, h.caller(r)
	for i := range last.Jobs {
		all := last.Jobs[i].Attempts
		if len(all) == 0 || !caller.MayView(last.Jobs[i].Owner, last.Jobs[i].Access) {
			continue
		}
		of := RecentJob{Job: all[0].Attempt.Task.Job.String()}
		for k := range all {
			of.Attempts = append(of.Attempts, AttemptOf(&all[k]))
		}
		answer.Items = append(answer.Items, of)
	}
	return answer, nil
}

// Recent lists the attempts of all jobs that run or have just ended.
func (c *Client) Recent(ctx context.Context) (*Recent, error) {
	all := new(Recent)
	_, err := c.send(ctx, request{method: http.MethodGet, path: "/v1/attempts"}, all)
	return all, err
}
