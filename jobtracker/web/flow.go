package web

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/wire"
)

// Flow is a flow: its jobs, and their order by After.
type Flow struct {
	ID            string      `json:"id"`
	Name          string      `json:"name,omitempty"` // while one of its jobs has not ended
	Owner         string      `json:"owner,omitempty"`
	State         string      `json:"state"` // running, or how its jobs have ended
	ElapsedMillis int64       `json:"elapsedMillis"`
	Prediction    *Prediction `json:"prediction,omitempty"` // of the end of its last job
	Items         []Job       `json:"items"`                // by id: a job comes after its inputs
}

// flow shows the jobs of a flow. Jobs that the cluster has forgotten, and the order of ended ones, come from the
// histories.
func (h *handler) flow(ctx context.Context, r *http.Request) (any, error) {
	id, err := wire.ParseFlowID(r.PathValue("id"))
	if err != nil {
		return nil, badRequest(err.Error())
	}
	if _, err := h.requireLeader(); err != nil {
		return nil, err
	}
	q := core.Query{By: h.caller(r), Filter: admission.Filter{Flow: id}, Oldest: true}
	var jobs []wire.JobStatus
	for {
		var page []wire.JobStatus
		if page, q.After, err = h.Server.Jobs(ctx, q); err != nil {
			return nil, err
		}
		if jobs = append(jobs, page...); q.After.IsZero() {
			break
		}
	}
	if !slices.ContainsFunc(jobs, func(s wire.JobStatus) bool { return !s.State.Ended() }) { // or there are none
		if jobs, err = h.withHistories(ctx, q, jobs); err != nil {
			return nil, err
		}
	}
	if len(jobs) == 0 {
		return nil, fmt.Errorf("%v: %w", id, admission.ErrUnknownJob)
	}
	if err := h.checkView(r, &jobs[0]); err != nil { // the jobs of a flow have the same rules
		return nil, err
	}
	f := flowOf(id, jobs)
	if sub, err := h.Server.Submission(ctx, q.By, jobs[0].ID); err == nil {
		f.Name = sub.FlowName
	}
	return f, nil
}

// withHistories adds what histories have of the jobs of a flow.
func (h *handler) withHistories(ctx context.Context, q core.Query, jobs []wire.JobStatus) ([]wire.JobStatus, error) {
	page, err := h.Server.Histories(ctx, q)
	if err != nil {
		return nil, err
	}
	for _, record := range page.Records {
		i, known := slices.BinarySearchFunc(jobs, record.Job.ID, func(s wire.JobStatus, id wire.JobID) int { return s.ID.Compare(id) })
		if !known {
			past := record.Job
			past.Owner = record.Owner
			jobs = slices.Insert(jobs, i, past)
		}
		jobs[i].After = record.Job.After
	}
	return jobs, nil
}

func flowOf(id wire.FlowID, jobs []wire.JobStatus) *Flow {
	f := &Flow{ID: id.String(), Owner: jobs[0].Owner, State: wire.Succeeded.String(), Items: make([]Job, 0, len(jobs))}
	var end wire.Prediction
	elapsed, open := time.Duration(0), false
	for i := range jobs {
		s := &jobs[i]
		f.Items = append(f.Items, JobOf(s))
		elapsed = max(elapsed, s.Elapsed)
		switch {
		case !s.State.Ended():
			open = true
			end = laterOf(&end, &s.Prediction)
		case s.State != wire.Succeeded:
			f.State = s.State.String()
		}
	}
	if f.ElapsedMillis = elapsed.Milliseconds(); open {
		f.State, f.Prediction = wire.Running.String(), predictionOf(&end, &jobs[0].Settings)
	}
	return f
}

// laterOf returns the prediction of the later of two ends. If one is not predicted, neither is the later one.
func laterOf(a, b *wire.Prediction) wire.Prediction {
	switch {
	case *a == (wire.Prediction{}) || b.Unknown != "":
		return *b
	case a.Unknown != "" || *b == (wire.Prediction{}):
		return *a
	}
	return wire.Prediction{Earliest: max(a.Earliest, b.Earliest), Likely: max(a.Likely, b.Likely), Latest: max(a.Latest, b.Latest)}
}

// Flow shows a flow and its jobs.
func (c *Client) Flow(ctx context.Context, id wire.FlowID) (*Flow, error) {
	f := new(Flow)
	_, err := c.send(ctx, request{method: http.MethodGet, path: "/v1/flows/" + id.String()}, f)
	return f, err
}
