package scheduler

import (
	"cmp"
	"slices"
	"time"
)

// FIFO gives slots in order of priority, then of arrival, each job as many as it can
// use. Jobs of one batch count as arrived with the first of them.
type FIFO struct{}

// Plan implements [Policy] in O(J log J).
func (FIFO) Plan(s Snapshot) (Plan, error) {
	plan := Plan{Targets: make([]Target, 0, len(s.Jobs))}
	left := s.Slots
	for _, i := range byArrival(s.Jobs) {
		j := &s.Jobs[i]
		give := min(j.Max, left)
		left -= give
		plan.Targets = append(plan.Targets, Target{Job: j.ID, Slots: give})
	}
	return plan, nil
}

// byArrival is the jobs' indexes in the order in which they are served where nothing
// is measured: by priority, then by arrival, jobs of a batch with the first of them;
// ties by id.
func byArrival(jobs []Job) []int {
	batches := make(map[string]time.Duration)
	for i := range jobs {
		first, ok := batches[jobs[i].Batch]
		if !ok || jobs[i].Arrived < first {
			batches[jobs[i].Batch] = jobs[i].Arrived
		}
	}
	arrived := func(j *Job) time.Duration {
		if j.Batch == "" {
			return j.Arrived
		}
		return batches[j.Batch]
	}
	order := make([]int, len(jobs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(x, y int) int {
		a, b := &jobs[x], &jobs[y]
		return cmp.Or(
			cmp.Compare(b.Priority, a.Priority), cmp.Compare(arrived(a), arrived(b)),
			cmp.Compare(a.Arrived, b.Arrived), a.ID.Compare(b.ID),
		)
	})
	return order
}
