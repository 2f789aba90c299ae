package web

import (
	"context"
	"net/http"
	"time"

	"github.com/quernmr/quern/jobtracker"
)

type (
	// WhatIf predicts what each scheduler would make of the jobs that have not ended, if no job came. Metrics are about
	// all of these jobs; a flow counts as one.
	WhatIf struct {
		At          time.Time         `json:"at"`
		TookMillis  int64             `json:"tookMillis"`
		Scheduling  Scheduling        `json:"scheduling"`        // current; all schedulers get this metric
		Unknown     string            `json:"unknown,omitempty"` // why nothing is predicted
		Jobs        int               `json:"jobs"`
		Submissions int               `json:"submissions"`
		Items       []WhatIfScheduler `json:"items"`
		LeftOut     []LeftOutJob      `json:"leftOut,omitempty"` // that no prediction considers
	}

	// WhatIfScheduler is the prediction for a scheduler.
	WhatIfScheduler struct {
		Scheduler string `json:"scheduler"`
		Current   bool   `json:"current,omitempty"`
		Unknown   string `json:"unknown,omitempty"` // why there is no prediction

		MeanResponseSeconds float64 `json:"meanResponseSeconds,omitempty"` // from the submission to the end
		MeanStretch         float64 `json:"meanStretch,omitempty"`         // response by the time alone in the cluster
		LastEndSeconds      float64 `json:"lastEndSeconds,omitempty"`      // from now to the last end
		Late                int     `json:"late"`                          // submissions that miss their deadline

		// Metrics has the values of all metrics, as schedulers compute them: times are seconds, and responses count from now.
		// It lacks the lateness of jobs without a deadline.
		Metrics map[string]float64 `json:"metrics,omitempty"`
		Plans   int                `json:"plans,omitempty"`     // that were made
		Kept    int                `json:"keptPlans,omitempty"` // how often an older plan stayed in force, since plans take long
		Jobs    []WhatIfJob        `json:"jobs,omitempty"`      // those that the user may see
	}

	// WhatIfJob is when a job would end.
	WhatIfJob struct {
		Job       string    `json:"job"`
		End       time.Time `json:"end"`
		EndMillis int64     `json:"endMillis"` // since the submission, as in a prediction
	}

	// LeftOutJob is a job that no prediction considers.
	LeftOutJob struct {
		Job    string `json:"job"`
		Reason string `json:"reason"`
	}
)

func (h *handler) whatIf(ctx context.Context, r *http.Request) (any, error) {
	l, err := h.requireLeader()
	if err != nil {
		return nil, err
	}
	x, err := h.predictions.Get(ctx, l.Epoch)
	if err != nil {
		return nil, err
	}
	caller := h.caller(r)
	answer := &WhatIf{At: timeOf(x.Wall), TookMillis: x.Took.Milliseconds(), Scheduling: Scheduling(x.Scheduling), Unknown: x.Unknown, Items: []WhatIfScheduler{}}
	for _, o := range x.LeftOut {
		if caller.MayView(o.Owner, o.Access) {
			answer.LeftOut = append(answer.LeftOut, LeftOutJob{o.Job.String(), o.Reason})
		}
	}
	if x.State == nil {
		return answer, nil
	}
	answer.Jobs = len(x.State.Jobs)
	visible := make([]bool, len(x.State.Jobs))
	for i := range visible {
		visible[i] = caller.MayView(x.State.Jobs[i].User, x.Access[i])
	}
	for i := range x.Schedulers {
		s := whatIfScheduler(x, &x.Schedulers[i], visible)
		answer.Submissions = max(answer.Submissions, x.Schedulers[i].Submissions)
		answer.Items = append(answer.Items, s)
	}
	return answer, nil
}

func whatIfScheduler(x *jobtracker.WhatIf, of *jobtracker.WhatIfScheduler, visible []bool) WhatIfScheduler {
	s := WhatIfScheduler{Scheduler: of.Name, Current: of.Name == x.Scheduling.Scheduler}
	if of.Err != nil {
		s.Unknown = of.Err.Error()
		return s
	}
	s.MeanResponseSeconds, s.MeanStretch, s.LastEndSeconds, s.Late = of.MeanResponse, of.MeanStretch, of.LastEnd, of.Late
	s.Plans, s.Kept, s.Metrics = of.Prediction.Plans, of.Prediction.Kept, make(map[string]float64, len(of.Values))
	for _, v := range of.Values {
		if v.Metric.Says(v.Value) {
			s.Metrics[v.Metric.String()] = v.Value
		}
	}
	for i, end := range of.Prediction.Ends {
		if !visible[i] {
			continue
		}
		j, in := &x.State.Jobs[i], time.Duration(end*float64(time.Second))
		s.Jobs = append(s.Jobs, WhatIfJob{Job: j.ID.String(), End: timeOf(x.Wall + in.Milliseconds()), EndMillis: (x.State.Now + in - j.Arrived).Milliseconds()})
	}
	return s
}

// WhatIf predicts what each scheduler would make of the jobs that have not ended.
func (c *Client) WhatIf(ctx context.Context) (*WhatIf, error) {
	x := new(WhatIf)
	_, err := c.send(ctx, request{method: http.MethodGet, path: "/v1/scheduling/whatif", maxAnswer: maxHistory}, x)
	return x, err
}
