package flowflex

import (
	"fmt"
	"math"
	"math/bits"
)

// MostIntegral is how many flows IntegralBound takes at most.
const MostIntegral = 20

// FlowBound is the value of the minimum-cost flow relaxation (section 4.2, proof
// of Theorem 3): no schedule has a lower sum of costs. grid is the number of
// evenly spaced points in time beside those that matter; 400 are good for a bound.
//
// As printed, with a charge of w(t) for the time from t-1 to t, the relaxation is
// one only if costs change at whole t. Here a time slice is charged what the flow
// costs at least when it completes in it, w just after its start, which holds on
// any grid. For the complexity see scheduler/mincost.
func FlowBound(p Problem, grid int) (float64, error) {
	made, err := prepare(p)
	if err != nil {
		return 0, err
	}
	relaxed, err := made.relax(grid)
	if err != nil {
		return 0, err
	}
	return relaxed.bound, nil
}

// IntegralBound is the least sum of costs, over all orders of the flows, where
// each completes when the work of those up to it would be done by all slots, but
// not before its own Q: no schedule has a lower sum of costs, for in the order of
// its completions each flow completes no sooner. Dynamic programming over sets,
// O(2^m m) for m flows: a judge for simulations, not for the policy.
func IntegralBound(p Problem) (float64, error) {
	made, err := prepare(p)
	if err != nil {
		return 0, err
	}
	return made.integral((*flow).atLeast)
}

func (p *problem) integral(earliest func(f *flow) float64) (float64, error) {
	m := len(p.flows)
	if m > MostIntegral {
		return 0, fmt.Errorf("the integral bound is for at most %d flows, not %d", MostIntegral, m)
	}
	least, area := make([]float64, 1<<m), make([]float64, 1<<m)
	for set := 1; set < 1<<m; set++ {
		lowest := bits.TrailingZeros(uint(set))
		area[set] = area[set&(set-1)] + p.flows[lowest].volume
		best := math.Inf(1)
		for rest := set; rest != 0; rest &= rest - 1 {
			i := bits.TrailingZeros(uint(rest))
			f := &p.flows[i]
			done := max(earliest(f), area[set]/float64(p.slots))
			best = min(best, least[set&^(1<<i)]+f.cost.At(done))
		}
		least[set] = best
	}
	return least[len(least)-1], nil
}

// MaxBound is the same for the largest cost: the critical path's and the own
// area's cost, raised by the areas of several flows (section 5.1). The paper finds
// it by bisection; it is exactly what Lawler's rule gives for this surrogate: the
// flow that costs least at the end goes last. No schedule has a lower largest cost.
// O(m²).
func MaxBound(p Problem) (float64, error) {
	made, err := prepare(p)
	if err != nil {
		return 0, err
	}
	_, bound := made.lawler((*flow).atLeast)
	return bound, nil
}

// lawler returns the order with the least largest cost of the surrogate, and that cost.
func (p *problem) lawler(earliest func(f *flow) float64) (order []int32, most float64) {
	left := positions(len(p.flows))
	order = make([]int32, len(left))
	area := 0.0
	for i := range p.flows {
		area += p.flows[i].volume
	}
	if len(left) > 0 {
		most = math.Inf(-1)
	}
	for len(left) > 0 {
		best, least := 0, math.Inf(1)
		for at, i := range left {
			f := &p.flows[i]
			// Among equals the later of them goes last, and before it the longer.
			cost := f.cost.At(max(earliest(f), area/float64(p.slots)))
			if cost < least || cost == least && f.least <= p.flows[left[best]].least {
				best, least = at, cost
			}
		}
		most = max(most, least)
		i := left[best]
		order[len(left)-1] = i
		area -= p.flows[i].volume
		left = append(left[:best], left[best+1:]...)
	}
	return order, most
}
