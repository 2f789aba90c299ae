package flowflex

import (
	"math"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/flowflex"
)

// printed is the schedule of the paper's algorithm to the letter, as far as its figures
// can be followed: chains only, one rounding at 1/2, no lift, the test at twice the
// speed. What scheduler/flowflex does better is measured against it.
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

// figure6 is Figure 6, step 5.
func (in *instance) figure6() ([]int, error) {
	relaxed, err := in.relax(orderGrid)
	if err != nil {
		return nil, err
	}
	return in.byDeadline(relaxed.deadlines(0.5)), nil
}

// bisections halve a bracket at most so often.
const bisections = 30

// figure8 bisects between 0, or the least cost where that is less, and the largest
// cost at H = 2m·max Q. A cost succeeds when its deadlines are met at twice the
// speed; the order of the last success is the result, or that of the first
// lastsuccess, whose deadlines are all H or later. The figure stops when the
// bracket is 1 wide, because it takes costs to be whole numbers; here it goes on
// as long as the bisection of scheduler/flowflex does.
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

// attempt is the order of the deadlines that follow from a cost, and whether they are met
// at twice the speed.
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
