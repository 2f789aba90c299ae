package flowflex

import (
	"slices"
)

// maxAdjustments limits the adjustments of deadlines for each pack rule.
const maxAdjustments = 30

// adjustDeadlines packs by deadline repeatedly: a flow that ends after its target gets an earlier
// deadline, other flows a later one. The target is the latest time at a limit of cost: for sums
// the flow's least cost, for maxima the middle between the best schedule and the lower bound.
func (s *search) adjustDeadlines(rounds int) {
	if s.graphPacker == nil {
		return
	}
	targets := s.latestAtLeastCost()
	if s.minimax {
		for i := range targets {
			targets[i] = s.flows[i].cost.Latest(s.lowerBound + (s.best.cost-s.lowerBound)/2)
		}
	}
	for _, by := range []packRule{byStart, byEnd} {
		deadlines := slices.Clone(targets)
		for range rounds {
			if !s.canImprove() {
				return
			}
			completion := s.packJobs(deadlines, by)
			for i := range deadlines {
				deadlines[i] -= (completion[i] - targets[i]) / 2
			}
		}
	}
}
