package flowflex

import "math"

// solveMinimax brackets the largest cost between a lower bound and the best of the classical
// orders, and bisects (Figure 8). A cost L sets each flow's deadline: the latest time that costs
// at most L. Flows go by deadline.
//
// Differences to the figure:
//
//   - L succeeds if every flow meets its deadline at the real speed. The figure doubles the
//     speed, which only the proof needs.
//   - Every schedule that costs less than the best is kept, even if it misses deadlines.
//   - Jobs are also packed by the latest time of their start or end, whatever their flow.
//   - The first lastsuccess is the cost of a schedule; the figure may end without a schedule.
func (s *search) solveMinimax() {
	fail := math.Inf(-1)
	for i := range s.flows {
		fail = max(fail, s.flows[i].cost.At(s.flows[i].lowerBound))
	}
	if len(s.flows) <= maxQuadratic {
		var order []int32
		order, fail = s.lawler()
		s.tryOrder(order)
	}
	for _, order := range s.classicalOrders() {
		s.tryOrder(order)
	}
	s.lowerBound = fail
	deadlines := make([]float64, len(s.flows))
	for range maxBisections {
		success := s.best.cost
		if !s.withinLimit() || success-fail <= sameInstant*math.Abs(success) {
			return
		}
		l := fail + (success-fail)/2
		for i := range s.flows {
			deadlines[i] = s.flows[i].cost.Latest(l)
		}
		s.tryOrder(s.byDeadline(deadlines))
		s.packJobs(deadlines, byStart)
		s.packJobs(deadlines, byEnd)
		if s.best.cost > l {
			fail = l
		}
	}
}

// maxBisections limits the halvings of the bracket.
const maxBisections = 30

// lawler returns the order with the smallest maximum cost under the surrogate (see descend), and
// that cost, which is a lower bound for every schedule. Lawler's rule: the flow that costs least
// at the end goes last. O(m²) for m flows.
func (p *problem) lawler() (order []int32, most float64) {
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
			// Of equal costs the flow with the smaller Q goes last, then the later flow.
			cost := f.cost.At(max(f.lowerBound, area/float64(p.slots)))
			if cost < least || cost == least && f.q <= p.flows[left[best]].q {
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
