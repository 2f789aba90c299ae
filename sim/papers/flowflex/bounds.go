package flowflex

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/quernmr/quern/scheduler/flowflex"
)

// mostIntegral bounds the flows of integralBound.
const mostIntegral = 20

// flowBound is the value of the minimum-cost flow relaxation (section 4.2, proof of Theorem 3),
// a lower bound of the sum of costs. grid is the number of evenly spaced points in time besides
// the necessary ones; 400 suffice for a bound.
//
// As printed, with a charge of w(t) for the time from t-1 to t, the relaxation is a bound only
// if costs change at whole t. Here a time slice charges the least cost of completing in it, w
// just after its start, which is a bound on any grid. Package mincost has the complexity.
func flowBound(p flowflex.Problem, grid int) (float64, error) {
	in, err := prepare(p)
	if err != nil {
		return 0, err
	}
	relaxed, err := in.relax(grid)
	if err != nil {
		return 0, err
	}
	return relaxed.bound, nil
}

// integralBound is the least sum of costs, over all orders of the flows, if each completes when
// all slots have done the work of the flows up to it, but not before its Q. It is a lower
// bound: in the order of completions of any schedule each flow completes no sooner. Dynamic
// programming over sets, O(2^m m) for m flows.
func integralBound(p flowflex.Problem) (float64, error) {
	in, err := prepare(p)
	if err != nil {
		return 0, err
	}
	return in.integral((*measured).q)
}

func (in *instance) integral(earliest func(*measured) float64) (float64, error) {
	m := len(in.flows)
	if m > mostIntegral {
		return 0, fmt.Errorf("the integral bound is for at most %d flows, not %d", mostIntegral, m)
	}
	least, area := make([]float64, 1<<m), make([]float64, 1<<m)
	for set := 1; set < 1<<m; set++ {
		lowest := bits.TrailingZeros(uint(set))
		area[set] = area[set&(set-1)] + in.flows[lowest].Volume
		best := math.Inf(1)
		for rest := set; rest != 0; rest &= rest - 1 {
			i := bits.TrailingZeros(uint(rest))
			f := &in.flows[i]
			done := max(earliest(f), area[set]/in.slots)
			best = min(best, least[set&^(1<<i)]+f.cost.At(done))
		}
		least[set] = best
	}
	return least[len(least)-1], nil
}

// maxBound is the same for the largest cost: the cost of critical path and own area, raised by
// the areas of several flows (section 5.1). The paper finds it by bisection; Lawler's rule
// gives it exactly: the flow that costs least at the end goes last. O(m²).
func maxBound(p flowflex.Problem) (float64, error) {
	in, err := prepare(p)
	if err != nil {
		return 0, err
	}
	return in.lawler((*measured).q), nil
}

// lawler is the least largest cost of the surrogate over all orders.
func (in *instance) lawler(earliest func(*measured) float64) (most float64) {
	left := positions(len(in.flows))
	area := 0.0
	for i := range in.flows {
		area += in.flows[i].Volume
	}
	if len(left) > 0 {
		most = math.Inf(-1)
	}
	for len(left) > 0 {
		best, least := 0, math.Inf(1)
		for at, i := range left {
			f := &in.flows[i]
			// Ties put the later flow last, and before it the longer.
			cost := f.cost.At(max(earliest(f), area/in.slots))
			if cost < least || cost == least && f.Q <= in.flows[left[best]].Q {
				best, least = at, cost
			}
		}
		most = max(most, least)
		area -= in.flows[left[best]].Volume
		left = slices.Delete(left, best, best+1)
	}
	return most
}
