package web

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/wire"
)

// What users ask for, of a job and of the cluster.
type (
	// Terms are what the owner of a job asks for.
	Terms struct {
		Pool           string    `json:"pool"`
		Priority       string    `json:"priority"`
		Weight         float64   `json:"weight,omitempty"`         // not given: 1
		DeadlineMillis int64     `json:"deadlineMillis,omitempty"` // since the submission; not given: none
		Late           bool      `json:"late,omitempty"`           // the deadline has been missed
		SLA            []SLAStep `json:"sla,omitempty"`
		Batch          string    `json:"batch,omitempty"`
	}

	// SLAStep is what ending after a time since the submission costs in total.
	SLAStep struct {
		AfterMillis int64   `json:"afterMillis"`
		Cost        float64 `json:"cost"`
	}

	// Change is what is to be another; what is not given stays.
	Change struct {
		Pool           *string    `json:"pool,omitempty"`
		Priority       *string    `json:"priority,omitempty"`
		Weight         *float64   `json:"weight,omitempty"`
		DeadlineMillis *int64     `json:"deadlineMillis,omitempty"` // from now; 0: none any more
		SLA            *[]SLAStep `json:"sla,omitempty"`
		Batch          *string    `json:"batch,omitempty"`
		Suspended      *bool      `json:"suspended,omitempty"`
	}

	// Scheduling is how slots are shared; what is not given stays.
	Scheduling struct {
		Scheduler string `json:"scheduler,omitempty"`
		Metric    string `json:"metric,omitempty"`
		Delay     string `json:"delay,omitempty"`
	}

	// Pools is the pool table in force.
	Pools struct {
		Status string   `json:"status"` // whence it came, and what is wrong with a newer one
		Pools  []Pool   `json:"pools"`
		Notes  []string `json:"notes,omitempty"` // what its file says and nobody obeys
	}

	// Pool is what can be seen of a pool. Slots are of maps, then of reduces; -1 is
	// any number.
	Pool struct {
		Name    string  `json:"name"`
		Min     [2]int  `json:"min"`
		Max     [2]int  `json:"max"`
		Weight  float64 `json:"weight"`
		MaxJobs int     `json:"maxJobs"`
		Jobs    int     `json:"jobs"` // that have not ended
		Running [2]int  `json:"running"`
		Gone    bool    `json:"gone,omitempty"`
	}
)

func termsOf(t *wire.Terms, elapsed time.Duration) Terms {
	return Terms{
		Pool: cmp.Or(t.Pool, wire.DefaultPool), Priority: t.Priority.String(), Weight: t.Weight,
		DeadlineMillis: millis(t.Deadline), Late: t.Late(elapsed), SLA: stepsOf(t.SLA), Batch: t.Batch,
	}
}

// millis is a duration that keeps its sign, since 0 says something else.
func millis(d time.Duration) int64 {
	if d < 0 {
		return min(d.Milliseconds(), -1)
	}
	return (d + time.Millisecond - 1).Milliseconds()
}

func stepsOf(steps []wire.SLAStep) []SLAStep {
	var all []SLAStep
	for _, s := range steps {
		all = append(all, SLAStep{s.After.Milliseconds(), s.Cost})
	}
	return all
}

func wireSteps(steps []SLAStep) []wire.SLAStep {
	var all []wire.SLAStep
	for _, s := range steps {
		all = append(all, wire.SLAStep{After: fromMillis(s.AfterMillis), Cost: s.Cost})
	}
	return all
}

// terms is what [termsOf] was given, to the millisecond.
func (t *Terms) terms() (wire.Terms, error) {
	w := wire.Terms{
		Weight: t.Weight, Deadline: fromMillis(t.DeadlineMillis), SLA: wireSteps(t.SLA), Batch: t.Batch,
	}
	if t.Pool != wire.DefaultPool {
		w.Pool = t.Pool
	}
	if t.Priority == "" {
		return w, nil
	}
	var err error
	w.Priority, err = wire.ParsePriority(t.Priority)
	return w, err
}

// ChangeOf is a change as it is asked for.
func ChangeOf(c *wire.Change) Change {
	w := Change{Weight: c.Weight, Batch: c.Batch, Pool: c.Pool, Suspended: c.Suspended}
	if c.Priority != nil {
		text := c.Priority.String()
		w.Priority = &text
	}
	if c.Deadline != nil {
		n := millis(*c.Deadline)
		w.DeadlineMillis = &n
	}
	if c.SLA != nil {
		steps := append([]SLAStep{}, stepsOf(*c.SLA)...) // none is not the same as not given
		w.SLA = &steps
	}
	return w
}

// change is what [ChangeOf] was given, to the millisecond.
func (c *Change) change() (wire.Change, error) {
	w := wire.Change{Weight: c.Weight, Batch: c.Batch, Pool: c.Pool, Suspended: c.Suspended}
	if c.Priority != nil {
		p, err := wire.ParsePriority(*c.Priority)
		if err != nil {
			return w, fmt.Errorf("%w: %w", admission.ErrBadSettings, err)
		}
		w.Priority = &p
	}
	if c.DeadlineMillis != nil {
		d := fromMillis(*c.DeadlineMillis)
		w.Deadline = &d
	}
	if c.SLA != nil {
		steps := wireSteps(*c.SLA)
		w.SLA = &steps
	}
	return w, nil
}

func poolsOf(s *wire.ClusterStatus) Pools {
	p := Pools{Status: s.Pools, Pools: make([]Pool, 0, len(s.InPools)), Notes: s.PoolNotes}
	for _, one := range s.InPools {
		p.Pools = append(p.Pools, Pool(one))
	}
	return p
}

func (h *handler) change(ctx context.Context, r *http.Request) (any, error) {
	id, err := pathJob(r)
	if err != nil {
		return nil, err
	}
	var body Change
	if err := readJSON(r.Body, &body); err != nil {
		return nil, err
	}
	change, err := body.change()
	switch {
	case err != nil:
		return nil, err
	case change.Empty():
		return nil, badRequest("the change changes nothing")
	}
	if _, err := h.leads(ctx); err != nil {
		return nil, err
	}
	return struct{}{}, h.Server.Change(ctx, h.asker(r), id, change)
}

func (h *handler) schedule(ctx context.Context, r *http.Request) (any, error) {
	var body Scheduling
	if err := readJSON(r.Body, &body); err != nil {
		return nil, err
	}
	if body == (Scheduling{}) {
		return nil, badRequest("the change changes nothing")
	}
	if err := h.administers(r, "change how the cluster shares its slots"); err != nil {
		return nil, err
	}
	if _, err := h.leads(ctx); err != nil {
		return nil, err
	}
	h.Logger.Info("scheduling", "scheduler", body.Scheduler, "metric", body.Metric, "delay", body.Delay, "asked by", r.RemoteAddr)
	return struct{}{}, h.Server.Schedule(ctx, wire.Scheduling(body))
}

// Change asks for other terms of the submission that a job is of, or for it to be
// suspended or resumed.
func (c *Client) Change(ctx context.Context, job wire.JobID, change wire.Change) error {
	return c.wish(ctx, "/v1/jobs/"+job.String()+"/terms", ChangeOf(&change))
}

// Schedule asks for another scheduler, metric or delay rule; what is empty stays.
func (c *Client) Schedule(ctx context.Context, s wire.Scheduling) error {
	return c.wish(ctx, "/v1/cluster/scheduling", Scheduling(s))
}

// fromMillis is a duration, or the longest where there are too many milliseconds for one.
func fromMillis(n int64) time.Duration {
	const most = int64(math.MaxInt64 / time.Millisecond)
	return time.Duration(max(-most, min(n, most))) * time.Millisecond
}
