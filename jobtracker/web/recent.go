package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/quernmr/quern/wire"
)

// Recent has the attempts in slots of the jobs that the user may see: those that run, and those that have
// ended in the last ten minutes under this leader.
type Recent struct {
	Items []RecentJob `json:"items"`
	Since time.Time   `json:"since,omitzero"` // earlier ends are missing

	Limit     int  `json:"limit,omitempty"`     // of the request
	Truncated bool `json:"truncated,omitempty"` // the limit has left out some
}

// RecentJob has the attempts of a job.
type RecentJob struct {
	Job      string    `json:"job"`
	Attempts []Attempt `json:"attempts"` // running ones first, then the last ones to end
}

func (h *handler) recent(ctx context.Context, r *http.Request) (any, error) {
	q, err := recentQueryOf(r)
	if err != nil {
		return nil, err
	}
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
			if q.selects(&all[k]) {
				of.Attempts = append(of.Attempts, AttemptOf(&all[k]))
			}
		}
		if len(of.Attempts) > 0 {
			answer.Items = append(answer.Items, of)
		}
	}
	answer.truncate(q.limit)
	return answer, nil
}

// recentQuery selects recent attempts. Empty fields admit all.
type recentQuery struct {
	jobs    []wire.JobID
	states  []string
	tracker string
	limit   int // 0: none
}

func recentQueryOf(r *http.Request) (q recentQuery, err error) {
	values := r.URL.Query()
	for _, text := range values[recentJobParameter.name] {
		id, err := wire.ParseJobID(text)
		if err != nil {
			return q, badParameter(recentJobParameter.name, err)
		}
		q.jobs = append(q.jobs, id)
	}
	if q.states, err = attemptStateParameter.several(values); err != nil {
		return q, err
	}
	q.tracker = values.Get(trackerParameter.name)
	if text := values.Get(limitParameter.name); text != "" {
		if q.limit, err = strconv.Atoi(text); err != nil || q.limit < 1 {
			return q, badParameter(limitParameter.name, fmt.Errorf("want a positive number of attempts, got %q", text))
		}
	}
	return q, nil
}

func (q *recentQuery) selects(a *wire.AttemptStatus) bool {
	return (len(q.jobs) == 0 || slices.Contains(q.jobs, a.Attempt.Task.Job)) &&
		(len(q.states) == 0 || slices.Contains(q.states, a.State.String())) &&
		(q.tracker == "" || q.tracker == a.Tracker)
}

// truncate keeps at most limit attempts of all jobs: those that run come first, then the last ones to end.
func (x *Recent) truncate(limit int) {
	if x.Limit = limit; limit == 0 {
		return
	}
	var all []*Attempt
	for i := range x.Items {
		for k := range x.Items[i].Attempts {
			all = append(all, &x.Items[i].Attempts[k])
		}
	}
	if x.Truncated = len(all) > limit; !x.Truncated {
		return
	}
	slices.SortStableFunc(all, func(a, b *Attempt) int { return b.recency().Compare(a.recency()) })
	kept := make(map[string]bool, limit)
	for _, a := range all[:limit] {
		kept[a.ID] = true
	}
	for i := range x.Items {
		of := &x.Items[i]
		of.Attempts = slices.DeleteFunc(of.Attempts, func(a Attempt) bool { return !kept[a.ID] })
	}
	x.Items = slices.DeleteFunc(x.Items, func(of RecentJob) bool { return len(of.Attempts) == 0 })
}

// recency is the end of an attempt; of one that runs it is later than all ends.
func (a *Attempt) recency() time.Time {
	if a.State == wire.AttemptRunning.String() || a.State == wire.AttemptReady.String() {
		return time.Unix(1<<40, 0)
	}
	return a.Began.Add(time.Duration(a.TookMillis) * time.Millisecond)
}

// Recent lists the attempts of all jobs that run or have just ended: those in these states, or all if there are no
// states.
func (c *Client) Recent(ctx context.Context, states ...string) (*Recent, error) {
	all := new(Recent)
	query := url.Values{attemptStateParameter.name: states}
	_, err := c.send(ctx, request{method: http.MethodGet, path: "/v1/attempts?" + query.Encode()}, all)
	return all, err
}
