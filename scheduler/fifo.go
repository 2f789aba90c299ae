package scheduler

import (
	"cmp"
	"slices"
)

// FIFO gives slots in order of arrival, each job as many as it can use.
type FIFO struct{}

// Plan implements [Policy] in O(J log J).
func (FIFO) Plan(s Snapshot) (Plan, error) {
	jobs := slices.Clone(s.Jobs)
	slices.SortFunc(jobs, func(a, b Job) int {
		return cmp.Or(cmp.Compare(a.Arrived, b.Arrived), a.ID.Compare(b.ID))
	})
	plan := Plan{Targets: make([]Target, 0, len(jobs))}
	left := s.Slots
	for _, j := range jobs {
		give := min(j.Max, left)
		left -= give
		plan.Targets = append(plan.Targets, Target{Job: j.ID, Slots: give})
	}
	return plan, nil
}
