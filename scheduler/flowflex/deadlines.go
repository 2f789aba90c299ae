package flowflex

import (
	"slices"
)

// adjustRounds bounds the adjustments of deadlines, by either rule.
const adjustRounds = 30

// adjustDeadlines packs by deadline again and again: a flow later than its aim gets an earlier
// deadline, an earlier flow a later one. For maxima the aim is the latest time at a cost
// between the best and the lower bound, for sums the latest time at the flow's least cost.
func (s *search) adjustDeadlines(rounds int) {
	if s.graphPacker == nil {
		return
	}
	aims := s.latestAtLeastCost()
	if s.minimax {
		for i := range aims {
			aims[i] = s.flows[i].cost.Latest(s.lowerBound + (s.best.cost-s.lowerBound)/2)
		}
	}
	for _, by := range []packRule{byStart, byEnd} {
		deadlines := slices.Clone(aims)
		for range rounds {
			if !s.canImprove() {
				return
			}
			done := s.packJobs(deadlines, by)
			for i := range deadlines {
				deadlines[i] -= (done[i] - aims[i]) / 2
			}
		}
	}
}
