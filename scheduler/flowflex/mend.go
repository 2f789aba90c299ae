package flowflex

import (
	"slices"
)

// mends is how often deadlines are mended at most, by either rule.
const mends = 30

// mend packs by urgency again and again: a flow that was later than its aim is given
// an earlier deadline, one that was earlier a later one. For maxima the aim is the
// latest time at a cost between the best and what no schedule is below, for sums
// the latest time at the cost that the flow has at best.
func (s *search) mend(rounds int) {
	if s.graphs == nil {
		return
	}
	aims := s.due()
	if s.max {
		for i := range aims {
			aims[i] = s.flows[i].cost.Latest(s.floor + (s.best.cost-s.floor)/2)
		}
	}
	for _, by := range []rule{byStart, byEnd} {
		deadlines := slices.Clone(aims)
		for range rounds {
			if !s.improvable() {
				return
			}
			done := s.urge(deadlines, by)
			for i := range deadlines {
				deadlines[i] -= (done[i] - aims[i]) / 2
			}
		}
	}
}
