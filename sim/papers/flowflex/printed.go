package flowflex

import (
	"math"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/flowflex"
)

// printed returns the schedule of the paper's exact algorithm, as far as its figures can be
// followed. It has chains only, one rounding at 1/2, no lift, and the test at twice the speed.
// It serves to measure the improvements of scheduler/flowflex.
func printed(p flowflex.Problem, a scheduler.Aggregate) (*flowflex.Schedule, error) {
	in, err := prepare(p)
	if err != nil {
		return nil, err
	}
	var order []int
	if a == scheduler.Max {
		order, err = in.figure8(p)
	} else {
		order, err = in.figure6()
	}
	if err != nil {
		return nil, err
	}
	return flowflex.Pack(p, a, order, true)
}

// figure6 returns the order of Figure 6, step 5.
func (in *instance) figure6() ([]int, error) {
	relaxed, err := in.relax(orderGrid)
	if err != nil {
		return nil, err
	}
	return in.byDeadline(relaxed.deadlines(0.5)), nil
}

// bisections is the number of times that a bracket is halved.
const bisections = 30

// figure8 bisects between 0, or a smaller least cost, and the largest cost at H = 2m·max Q. A
// cost succeeds if its deadlines are met at twice the speed. The result is the order of the
// last success, or of the largest cost, with deadlines of at least H. The figure stops at a
// bracket of width 1, because it assumes whole costs; figure8 bisects as often as
// scheduler/flowflex.
func (in *instance) figure8(p flowflex.Problem) ([]int, error) {
	horizon := 0.0
	for i := range in.flows {
		horizon = max(horizon, math.Ceil(in.flows[i].Q)*2*float64(len(in.flows)))
	}
	success, fail := math.Inf(-1), 0.0
	for i := range in.flows {
		success = max(success, in.flows[i].cost.At(horizon))
		fail = min(fail, in.flows[i].cost.At(0))
	}
	best, _, err := in.attempt(p, success)
	for range bisections {
		if err != nil {
			return nil, err
		}
		l := fail + (success-fail)/2
		var order []int
		var ok bool
		if order, ok, err = in.attempt(p, l); ok {
			best, success = order, l
		} else {
			fail = l
		}
	}
	return best, err
}

// attempt returns the order of the deadlines for a cost, and whether they are met at twice the
// speed.
func (in *instance) attempt(p flowflex.Problem, cost float64) (order []int, ok bool, err error) {
	deadlines := make([]float64, len(in.flows))
	for i := range in.flows {
		deadlines[i] = in.flows[i].cost.Latest(cost)
	}
	order = in.byDeadline(deadlines)
	packed, err := flowflex.Pack(p, scheduler.Max, order, true)
	if err != nil {
		return nil, false, err
	}
	for i, done := range packed.Completion {
		if done > 2*deadlines[i]*(1+sameInstant) {
			return order, false, nil
		}
	}
	return order, true, nil
}
