package flowflex

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/quernmr/quern/scheduler/flowflex"
)

// maxIntegralFlows is the largest number of flows for integralBound.
const maxIntegralFlows = 20

// flowBound is the value of the minimum-cost flow relaxation (section 4.2, proof of Theorem 3),
// a lower bound of the sum of costs. grid is the number of evenly spaced points in time;
// 400 suffice for a bound. Points at which costs change come on top.
//
// As printed, the relaxation charges w(t) for the time from t-1 to t. That is a bound only if
// costs change at whole t. Here a time slice charges the least cost of completing in it, w just
// after its start, which is a bound on any grid. Package mincost has the complexity.
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

// integralBound is the least sum of costs over all orders of the flows. Each flow completes when
// all slots have done the work of the flows up to it, but not before its Q. No schedule
// completes flows sooner. Dynamic programming over sets takes O(2^m m) for m flows.
func integralBound(p flowflex.Problem) (float64, error) {
	in, err := prepare(p)
	if err != nil {
		return 0, err
	}
	return in.integral((*measured).q)
}

func (in *instance) integral(earliest func(*measured) float64) (float64, error) {
	m := len(in.flows)
	if m > maxIntegralFlows {
		return 0, fmt.Errorf("the integral bound is for at most %d flows, not %d", maxIntegralFlows, m)
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

// maxBound is the least largest cost over all orders, with the completions of integralBound
// (section 5.1). The paper finds it by bisection. Lawler's rule gives it exactly: the flow that
// costs least at the end goes last. O(m²).
func maxBound(p flowflex.Problem) (float64, error) {
	in, err := prepare(p)
	if err != nil {
		return 0, err
	}
	return in.lawler((*measured).q), nil
}

// lawler returns the least largest cost over all orders. No flow completes before earliest.
func (in *instance) lawler(earliest func(*measured) float64) (largest float64) {
	left := positions(len(in.flows))
	area := 0.0
	for i := range in.flows {
		area += in.flows[i].Volume
	}
	if len(left) > 0 {
		largest = math.Inf(-1)
	}
	for len(left) > 0 {
		best, least := 0, math.Inf(1)
		for at, i := range left {
			f := &in.flows[i]
			// Of flows with equal costs, a flow with the least Q goes last.
			cost := f.cost.At(max(earliest(f), area/in.slots))
			if cost < least || cost == least && f.Q <= in.flows[left[best]].Q {
				best, least = at, cost
			}
		}
		largest = max(largest, least)
		area -= in.flows[left[best]].Volume
		left = slices.Delete(left, best, best+1)
	}
	return largest
}
