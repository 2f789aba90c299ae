package jobtracker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/menu"
	"github.com/quernmr/quern/scheduler/whatif"
)

// WhatIf says what each scheduler would make of the jobs that have not ended.
type WhatIf struct {
	*core.OpenJobs
	Took       time.Duration
	Schedulers []WhatIfScheduler // in the order of the menu
}

// WhatIfScheduler is the prediction for a scheduler, with the current metric.
type WhatIfScheduler struct {
	Name       string
	Err        error // why there is none
	Prediction *whatif.Prediction
	whatif.Summary
}

// WhatIf predicts what each scheduler would make of the jobs, as the leader knows them now. It takes at most
// PolicyDeadline, off the loop. Each scheduler gets its part of that for plans. WhatIf fails with core.ErrNotLeader, and
// ends with ctx.
func (s *Server) WhatIf(ctx context.Context) (*WhatIf, error) {
	r, err := s.request(ctx, func(token core.Token) core.Event { return core.TakeOpenJobs{Token: token} })
	if err != nil {
		return nil, err
	}
	began := time.Now()
	x := &WhatIf{OpenJobs: r.OpenJobs.Get()}
	if x.State == nil {
		return x, nil
	}
	names := menu.Names()
	end := began.Add(s.cfg.PolicyDeadline)
	limited, cancel := context.WithDeadlineCause(ctx, end, errWhatIfTime)
	defer cancel()
	for i, name := range names {
		part := max(0, time.Until(end)) / time.Duration(len(names)-i)
		x.Schedulers = append(x.Schedulers, s.predictUnder(limited, x.State, name, part))
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	x.Took = time.Since(began)
	return x, nil
}

var errWhatIfTime = errors.New("the predictions of all schedulers take too long")

// predictUnder predicts what a scheduler would make of the jobs.
func (s *Server) predictUnder(ctx context.Context, state *whatif.State, name string, part time.Duration) WhatIfScheduler {
	x := WhatIfScheduler{Name: name}
	policy, err := s.cfg.Policies(name)
	if err != nil {
		x.Err = err
		return x
	}
	p := &planner{ctx: ctx, policy: whatif.WithoutForecast(policy), part: part, busy: s.policySlot("what if: " + name)}
	if x.Prediction, x.Err = whatif.Predict(ctx, state, menu.NeedsOf(name), p.plan); x.Err == nil {
		x.Summary = state.Summarize(x.Prediction.Ends)
	}
	return x
}

// planner makes plans for a prediction, while they take no longer than a part of the time. Plans of the running cluster
// do not wait for it: it has its own slot.
type planner struct {
	ctx    context.Context
	policy scheduler.Policy
	part   time.Duration // for all plans
	spent  time.Duration
	last   time.Duration // the time of the last plan
	busy   chan struct{} // has a value while the policy runs: a call cannot be stopped
}

var errPolicyBusy = errors.New("an earlier plan for a prediction has not ended yet")

// plan implements whatif.Planner. It spreads the plans over the phases that end.
func (p *planner) plan(s scheduler.Snapshot, ended float64) (plan scheduler.Plan, keep bool, err error) {
	if p.spent > 0 && (p.spent+p.last).Seconds() > p.part.Seconds()*max(ended, 0.25) {
		return plan, true, nil
	}
	select {
	case p.busy <- struct{}{}:
	default:
		return plan, false, errPolicyBusy
	}
	type answer struct {
		plan scheduler.Plan
		err  error
	}
	answers, began := make(chan answer, 1), time.Now()
	go func() {
		plan, err := callPolicy(p.policy, s)
		<-p.busy
		answers <- answer{plan, err}
	}()
	limit := time.NewTimer(max(p.part-p.spent, 0))
	defer limit.Stop()
	select {
	case a := <-answers:
		p.last = max(time.Since(began), 1)
		p.spent += p.last
		return a.plan, false, a.err
	case <-limit.C:
		if p.spent > 0 {
			p.spent = p.part
			return plan, true, nil
		}
		return plan, false, fmt.Errorf("a plan takes longer than %v", p.part.Round(time.Millisecond))
	case <-p.ctx.Done():
		return plan, false, context.Cause(p.ctx)
	}
}
