package flowflex

import "math"

// minimax brackets the largest cost between the bound and the best schedule of the
// cheap orders and bisects (Figure 8): a cost L gives every flow the latest time at
// which it costs no more as its deadline, and flows go by deadline.
//
// Against the figure: L succeeds when every flow meets its deadline at the speed
// there is, not twice that, which the proof needs and practice does not; every
// schedule is kept if its own cost is the least so far, whether it meets its
// deadlines or not; jobs are also packed by how late they may start or end, whatever
// their flow, which the paper does not try; and the first lastsuccess is the cost of
// a schedule, where the figure may end without having computed one.
func (s *search) minimax() {
	fail := math.Inf(-1)
	for i := range s.flows {
		fail = max(fail, s.flows[i].cost.At(s.flows[i].alone))
	}
	if len(s.flows) <= mostQuadratic {
		var order []int32
		order, fail = s.lawler()
		s.try(order)
	}
	for _, order := range s.cheap() {
		s.try(order)
	}
	s.floor = fail
	deadlines := make([]float64, len(s.flows))
	for range bisections {
		success := s.best.cost
		if !s.affordable() || success-fail <= sameInstant*math.Abs(success) {
			return
		}
		l := fail + (success-fail)/2
		for i := range s.flows {
			deadlines[i] = s.flows[i].cost.Latest(l)
		}
		s.try(s.byDeadline(deadlines))
		s.urge(deadlines, byStart)
		s.urge(deadlines, byEnd)
		if s.best.cost > l {
			fail = l
		}
	}
}

// bisections halve the bracket at most so often.
const bisections = 30

// lawler returns the order with the least largest cost of the surrogate, and that cost,
// which no schedule is below (Lawler's rule): the flow that costs least at the end goes
// last. O(m²).
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
			// Among equals the later of them goes last, and before it the longer.
			cost := f.cost.At(max(f.alone, area/float64(p.slots)))
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
