package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
)

type (
	// History is the history of an ended job. In lists, it has no attempts, plans, counters and troubles.
	History struct {
		Job
		Owner            string    `json:"owner"`
		Submitted        time.Time `json:"submitted,omitzero"`
		Ended            time.Time `json:"ended,omitzero"`
		Output           string    `json:"output,omitempty"`
		Attempts         []Attempt `json:"attempts,omitempty"`
		UnlistedAttempts int       `json:"unkeptAttempts,omitempty"` // number of attempts that are not in Attempts

		Plans      []PastPlan `json:"plans,omitempty"`
		PlansSince time.Time  `json:"plansSince,omitzero"` // earlier plans are not known
		PlansLack  string     `json:"plansLack,omitempty"` // why earlier plans are not known

		Token string `json:"token,omitempty"` // of this user, only for the job's logs
	}

	// PastPlan is the part of a plan for one phase of the job. It is in force from At.
	PastPlan struct {
		At        time.Time    `json:"at"`
		Phase     string       `json:"phase"`
		Scheduler string       `json:"scheduler"`
		Metric    string       `json:"metric"`
		Delay     string       `json:"delay"`
		Slots     int          `json:"slots"`
		Place     int          `json:"place"` // rank in the plan, from 1; 0: the plan does not have the job
		Of        int          `json:"of"`
		End       time.Time    `json:"end,omitzero"`     // predicted
		Queues    []PastQueued `json:"queues,omitempty"` // tasks planned on trackers
		Share     float64      `json:"share,omitempty"`  // of the homes' fetches
		Turn      int          `json:"turn,omitempty"`   // rank of the share among all jobs, from 1
	}

	// PastQueued has the tasks of the job in the queue of a tracker.
	PastQueued struct {
		Tracker string `json:"tracker"`
		After   int    `json:"after"` // tasks ahead in the queue
		Tasks   int    `json:"tasks"`
	}
)

// HistoryOf converts a history to JSON, without a token.
func HistoryOf(r *history.Record) History {
	h := History{
		Job: JobOf(&r.Job), Owner: r.Owner, Submitted: timeOf(r.Submitted), Ended: timeOf(r.Ended), Output: r.Plan.Output,
		UnlistedAttempts: r.Omitted, PlansSince: timeOf(r.PlansSince), PlansLack: r.PlansSinceReason,
	}
	h.Job.Owner = r.Owner
	for i := range r.Attempts {
		h.Attempts = append(h.Attempts, AttemptOf(&r.Attempts[i]))
	}
	for _, x := range r.Plans {
		var queues []PastQueued
		for _, q := range x.Queues {
			queues = append(queues, PastQueued(q))
		}
		h.Plans = append(h.Plans, PastPlan{
			At: timeOf(x.At), Phase: x.Phase.String(), Scheduler: x.Scheduling.Scheduler, Metric: x.Scheduling.Metric, Delay: x.Scheduling.Delay,
			Slots: x.Target, Place: x.Place, Of: x.Places, End: timeOf(x.End), Queues: queues, Share: x.Share, Turn: x.ShareRank,
		})
	}
	return h
}

// Status is the inverse of [JobOf] for the job, to the millisecond.
func (h *History) Status() (wire.JobStatus, error) {
	h.Job.Owner = h.Owner // JSON has it once
	return h.Job.Status()
}

func (h *handler) history(ctx context.Context, r *http.Request) (any, error) {
	id, err := h.jobAtLeader(r)
	if err != nil {
		return nil, err
	}
	record, err := h.Server.History(ctx, h.caller(r), id)
	if err != nil {
		return nil, err
	}
	past := HistoryOf(record)
	user := ""
	if peer, ok := identity.PeerOf(r.TLS); ok {
		user = peer.Name
	}
	past.Token = wire.LogToken(record.Token, user)
	return past, nil
}

// History returns the history of an ended job. It fails with fs.ErrNotExist if there is none.
func (c *Client) History(ctx context.Context, id wire.JobID) (*History, error) {
	past := new(History)
	_, err := c.send(ctx, request{method: http.MethodGet, path: "/v1/jobs/" + id.String() + "/history"}, past)
	return past, err
}

// Histories is a page of histories.
type Histories struct {
	Items   []History `json:"items"`
	Next    string    `json:"next,omitempty"`    // as of a Page
	Skipped []string  `json:"skipped,omitempty"` // why histories cannot be read
}

func (h *handler) histories(ctx context.Context, r *http.Request) (any, error) {
	q, err := h.jobQuery(r)
	switch {
	case err != nil:
		return nil, err
	case !q.Filter.Flow.IsZero() && !q.After.IsZero():
		return nil, badParameter(afterJob.name, errors.New("the histories of a flow are one page"))
	}
	if _, err := h.requireLeader(); err != nil {
		return nil, err
	}
	page, err := h.Server.Histories(ctx, q)
	if err != nil {
		return nil, err
	}
	answer := Histories{Items: make([]History, 0, len(page.Records)), Next: cursor(page.Next)}
	for _, record := range page.Records {
		past := HistoryOf(record)
		if job := listedJob(q.By, &record.Job); job.Hidden {
			past = History{Job: job, Owner: past.Owner, Submitted: past.Submitted, Ended: past.Ended}
		}
		answer.Items = append(answer.Items, past)
	}
	for _, why := range page.Skipped {
		answer.Skipped = append(answer.Skipped, why.Error())
	}
	return answer, nil
}

// Histories lists the last n histories that the query selects, newest first; 0: all. It also returns why others
// cannot be read.
func (c *Client) Histories(ctx context.Context, q core.Query, n int) (list []History, skipped []string, err error) {
	query := valuesOf(&q)
	part := func(p *Histories) ([]History, string) {
		skipped = append(skipped, p.Skipped...)
		return p.Items, p.Next
	}
	for after := ""; ; {
		items, next, err := onePage(ctx, c, "/v1/histories", query, after, part)
		if err != nil {
			return nil, nil, fmt.Errorf("list histories: %w", err)
		}
		switch list = append(list, items...); {
		case n > 0 && len(list)+len(skipped) >= n:
			return list[:min(n, len(list))], skipped, nil
		case next == "":
			return list, skipped, nil
		}
		after = next
	}
}
