package web

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/quernmr/quern/wire"
)

type (
	// Explanation says why a job has its slots, what it waits for, and when it will end. Unknown
	// times are left out.
	Explanation struct {
		Job       string    `json:"job"`
		Name      string    `json:"name"`
		Pool      string    `json:"pool"`
		State     string    `json:"state"`
		Suspended bool      `json:"suspended,omitempty"`
		Scheduler string    `json:"scheduler,omitempty"` // currently
		Metric    string    `json:"metric,omitempty"`
		Delay     string    `json:"delay,omitempty"`
		Phases    []Phase   `json:"phases,omitempty"`
		Shuffle   *Shuffle  `json:"shuffle,omitempty"`
		Holds     []Hold    `json:"holds,omitempty"`
		Now       time.Time `json:"now"` // on the clock of the other times
		Submitted time.Time `json:"submitted,omitzero"`
		End       time.Time `json:"end,omitzero"` // of a job that has not ended, the likely one
		Deadline  time.Time `json:"deadline,omitzero"`

		Prediction *Prediction `json:"prediction,omitempty"` // of its end; the same as in the job's status
	}

	// Phase is a job's maps or its reduces.
	Phase struct {
		Phase            string    `json:"phase"` // "map" or "reduce"
		Tasks            int       `json:"tasks"`
		Done             int       `json:"done"`
		Running          int       `json:"running"`
		Waiting          int       `json:"waiting"`               // ready for a slot
		Adopted          int       `json:"adopted,omitempty"`     // running attempts that an earlier leader launched, at an unknown time
		Speculative      int       `json:"speculative,omitempty"` // running attempts beside another one of their task
		Place            int       `json:"place,omitempty"`       // in the order of the current plan, from 1
		Of               int       `json:"of,omitempty"`          // number of jobs in the plan
		Target           int       `json:"target"`                // slots in the plan
		Min              int       `json:"min"`                   // guaranteed slots
		Max              int       `json:"max"`                   // slots that it can use
		PoolMin          int       `json:"poolMin,omitempty"`     // guaranteed slots of its pool
		TaskSeconds      float64   `json:"taskSeconds"`           // of one task
		RemainingSeconds float64   `json:"leftSeconds"`           // time on one slot for all remaining tasks
		Source           string    `json:"source,omitempty"`      // of TaskSeconds
		End              time.Time `json:"end,omitzero"`
		WaitSeconds      float64   `json:"waitSeconds,omitempty"`    // maximum time that a map waits for a local slot
		Speeds           []Speed   `json:"speeds,omitempty"`         // by tracker; not in a list of jobs
		Oldest           *Oldest   `json:"oldest,omitempty"`         // not set: none runs
		SpeculationOff   bool      `json:"speculationOff,omitempty"` // the job's properties allow no speculative attempts
	}

	// Oldest is the running attempt of a phase that began first.
	Oldest struct {
		Attempt string  `json:"attempt"`
		Tracker string  `json:"tracker"`
		Seconds float64 `json:"seconds"` // since its launch
	}

	// Speed is how fast the job's tasks were on a tracker.
	Speed struct {
		Tracker     string  `json:"tracker"`
		Tasks       int     `json:"tasks"`
		TaskSeconds float64 `json:"taskSeconds"`
	}

	// Shuffle is a job's part of the shuffle, in bytes.
	Shuffle struct {
		Ready     int64   `json:"ready"`           // output of ended maps, not yet gathered
		Remaining int64   `json:"left"`            // not yet gathered, with the estimated output of maps to come
		Total     int64   `json:"whole"`           // gathered and not
		Share     float64 `json:"share,omitempty"` // of the homes' fetches, in the current plan
		Place     int     `json:"place,omitempty"`
		Of        int     `json:"of,omitempty"`

		PerByte float64 `json:"perByte,omitempty"` // output bytes per input byte so far
	}

	// Hold is a reason why tasks of the job do not get free slots.
	Hold struct {
		Reason   string    `json:"what"`
		Until    time.Time `json:"until,omitzero"` // latest end
		Expected time.Time `json:"due,omitzero"`   // estimated end
	}
)

// timeOf converts Unix milliseconds; 0: not known.
func timeOf(millis int64) time.Time {
	if millis == 0 {
		return time.Time{}
	}
	return time.UnixMilli(millis).UTC()
}

func explanationOf(x *wire.Explanation, now time.Time) Explanation {
	e := Explanation{
		Job: x.Job.String(), Name: x.Name, Pool: x.Pool, State: x.State.String(), Suspended: x.Suspended,
		Scheduler: x.Scheduling.Scheduler, Metric: x.Scheduling.Metric, Delay: x.Scheduling.Delay,
		Now: now.UTC(), Submitted: timeOf(x.Submitted), End: timeOf(x.End), Deadline: timeOf(x.Deadline), Prediction: predictionOf(&x.Prediction, &x.Settings),
	}
	for i := range x.Phases {
		p := &x.Phases[i]
		var speeds []Speed
		for _, s := range p.Speeds {
			speeds = append(speeds, Speed(s))
		}
		var oldest *Oldest
		if o := p.Oldest; o != nil {
			oldest = &Oldest{o.Attempt.String(), o.Tracker, o.Age.Seconds()}
		}
		e.Phases = append(e.Phases, Phase{
			Phase: p.Phase.String(), Tasks: p.Tasks, Done: p.Done, Running: p.Running, Waiting: p.Waiting, Adopted: p.Adopted, Speculative: p.Speculative,
			SpeculationOff: p.SpeculationOff, Oldest: oldest,
			Place: p.Place, Of: p.Of, Target: p.Target, Min: p.Min, Max: p.Max, PoolMin: p.PoolMin,
			TaskSeconds: p.TaskSeconds, RemainingSeconds: p.RemainingSeconds, Source: p.Source, End: timeOf(p.End), WaitSeconds: p.Wait.Seconds(), Speeds: speeds,
		})
	}
	if x.Shuffle != nil {
		s := Shuffle(*x.Shuffle)
		e.Shuffle = &s
	}
	for _, h := range x.Holds {
		e.Holds = append(e.Holds, Hold{Reason: h.Reason, Until: timeOf(h.Until), Expected: timeOf(h.Expected)})
	}
	return e
}

func (h *handler) explain(ctx context.Context, r *http.Request) (any, error) {
	id, err := h.jobAtLeader(r)
	if err != nil {
		return nil, err
	}
	x, err := h.Server.Explain(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := h.caller(r).CheckView(x.Job, x.Owner, x.Access); err != nil {
		return nil, err
	}
	return explanationOf(&x, h.now()), nil
}

func (h *handler) explainAll(ctx context.Context, r *http.Request) (any, error) {
	after, err := jobAfter(r.URL.Query())
	if err != nil {
		return nil, err
	}
	if _, err := h.requireLeader(); err != nil {
		return nil, err
	}
	all, next, err := h.Server.Explanations(ctx, after)
	if err != nil {
		return nil, err
	}
	now, answer := h.now(), Page[Explanation]{Items: make([]Explanation, 0, len(all)), Next: cursor(next)}
	for i := range all {
		if h.caller(r).MayView(all[i].Owner, all[i].Access) {
			answer.Items = append(answer.Items, explanationOf(&all[i], now))
		}
	}
	return answer, nil
}

// Explain says why a job has its slots. admission.ErrUnknownJob: the cluster does not know the
// job, or no longer.
func (c *Client) Explain(ctx context.Context, id wire.JobID) (*Explanation, error) {
	x := new(Explanation)
	_, err := c.send(ctx, request{method: http.MethodGet, path: "/v1/jobs/" + id.String() + "/explain"}, x)
	return x, err
}

// Explanations explains all jobs that have not ended.
func (c *Client) Explanations(ctx context.Context) ([]Explanation, error) {
	all, err := allPages(ctx, c, "/v1/explain", nil, partOf[Explanation])
	if err != nil {
		return nil, fmt.Errorf("explain jobs: %w", err)
	}
	return all, nil
}
