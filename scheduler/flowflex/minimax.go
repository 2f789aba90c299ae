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
		order, fail = s.lawler((*flow).atBest)
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
