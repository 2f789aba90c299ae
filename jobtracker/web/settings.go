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

type (
	// Settings are the settings of a job.
	Settings struct {
		Pool           string    `json:"pool"`
		Priority       string    `json:"priority,omitempty"`       // left out: the job is hidden
		Weight         float64   `json:"weight,omitempty"`         // left out: 1
		DeadlineMillis int64     `json:"deadlineMillis,omitempty"` // since the submission; left out: none
		Late           bool      `json:"late,omitempty"`           // the deadline has been missed
		SLA            []SLAStep `json:"sla,omitempty"`
		Batch          string    `json:"batch,omitempty"`
	}

	// SLAStep is the total cost if the job ends later than a time since its submission.
	SLAStep struct {
		AfterMillis int64   `json:"afterMillis"`
		Cost        float64 `json:"cost"`
	}

	// Change changes settings. Settings that are left out stay.
	Change struct {
		Pool           *string    `json:"pool,omitempty"`
		Priority       *string    `json:"priority,omitempty"`
		Weight         *float64   `json:"weight,omitempty"`
		DeadlineMillis *int64     `json:"deadlineMillis,omitempty"` // time from now; 0: remove the deadline
		SLA            *[]SLAStep `json:"sla,omitempty"`
		Batch          *string    `json:"batch,omitempty"`
		Suspended      *bool      `json:"suspended,omitempty"`
		TakeBack       bool       `json:"takeBack,omitempty"` // with suspended: kill the running attempts
	}

	// Scheduling says how jobs share slots. In a change, parts that are left out stay.
	Scheduling struct {
		Scheduler string `json:"scheduler,omitempty"`
		Metric    string `json:"metric,omitempty"`
		Delay     string `json:"delay,omitempty"`
	}

	// Pools is the current pool table.
	Pools struct {
		Status string   `json:"status"` // URL of its file, and the error of a newer version of the file
		Pools  []Pool   `json:"pools"`
		Notes  []string `json:"notes,omitempty"` // warnings about lines that have no effect
	}

	// Pool is the state of a pool. Pairs are for maps, then for reduces; -1: no limit.
	Pool struct {
		Name    string  `json:"name"`
		Min     [2]int  `json:"min"`
		Max     [2]int  `json:"max"`
		Weight  float64 `json:"weight"`
		MaxJobs int     `json:"maxJobs"`
		Jobs    int     `json:"jobs"` // number of jobs that have not ended
		Running [2]int  `json:"running"`
		Removed bool    `json:"gone,omitempty"`
	}
)

func settingsOf(t *wire.Settings, elapsed time.Duration) Settings {
	return Settings{
		Pool: cmp.Or(t.Pool, wire.DefaultPool), Priority: t.Priority.String(), Weight: t.Weight,
		DeadlineMillis: millis(t.Deadline), Late: t.Late(elapsed), SLA: stepsOf(t.SLA), Batch: t.Batch,
	}
}

// millis rounds away from 0, since 0 milliseconds mean no deadline.
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

// toWire is the inverse of [settingsOf], to the millisecond.
func (t *Settings) toWire() (wire.Settings, error) {
	w := wire.Settings{
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

// ChangeOf converts a change to JSON.
func ChangeOf(c *wire.Change) Change {
	w := Change{Weight: c.Weight, Batch: c.Batch, Pool: c.Pool, Suspended: c.Suspended, TakeBack: c.TakeBack}
	if c.Priority != nil {
		text := c.Priority.String()
		w.Priority = &text
	}
	if c.Deadline != nil {
		n := millis(*c.Deadline)
		w.DeadlineMillis = &n
	}
	if c.SLA != nil {
		steps := append([]SLAStep{}, stepsOf(*c.SLA)...) // an empty list differs from none
		w.SLA = &steps
	}
	return w
}

// toWire is the inverse of [ChangeOf], to the millisecond.
func (c *Change) toWire() (wire.Change, error) {
	w := wire.Change{Weight: c.Weight, Batch: c.Batch, Pool: c.Pool, Suspended: c.Suspended, TakeBack: c.TakeBack}
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
	for _, pool := range s.InPools {
		p.Pools = append(p.Pools, Pool(pool))
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
	auditedOf(r).detail = jsonText(&body)
	change, err := body.toWire()
	switch {
	case err != nil:
		return nil, err
	case change.Empty():
		return nil, badRequest("the change changes nothing")
	}
	if _, err := h.requireLeader(); err != nil {
		return nil, err
	}
	return struct{}{}, h.Server.Change(ctx, h.caller(r), id, change)
}

func (h *handler) schedule(ctx context.Context, r *http.Request) (any, error) {
	var body Scheduling
	if err := readJSON(r.Body, &body); err != nil {
		return nil, err
	}
	if body == (Scheduling{}) {
		return nil, badRequest("the change changes nothing")
	}
	auditedOf(r).detail = jsonText(&body)
	if err := h.requireAdmin(r, "change the scheduler"); err != nil {
		return nil, err
	}
	if _, err := h.requireLeader(); err != nil {
		return nil, err
	}
	h.Logger.Info("scheduling", "scheduler", body.Scheduler, "metric", body.Metric, "delay", body.Delay, "asked by", r.RemoteAddr)
	return struct{}{}, h.Server.Schedule(ctx, wire.Scheduling(body))
}

// Change changes the settings of a job's submission, or suspends or resumes it.
func (c *Client) Change(ctx context.Context, job wire.JobID, change wire.Change) error {
	return c.change(ctx, "/v1/jobs/"+job.String()+"/settings", ChangeOf(&change))
}

// Schedule changes the scheduler, metric or delay rule. Empty parts stay.
func (c *Client) Schedule(ctx context.Context, s wire.Scheduling) error {
	return c.change(ctx, "/v1/cluster/scheduling", Scheduling(s))
}

// fromMillis converts milliseconds, and limits them to the longest duration.
func fromMillis(n int64) time.Duration {
	const limit = int64(math.MaxInt64 / time.Millisecond)
	return time.Duration(max(-limit, min(n, limit))) * time.Millisecond
}
