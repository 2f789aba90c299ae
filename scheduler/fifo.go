package scheduler

import (
	"cmp"
	"slices"
	"time"
)

// FIFO gives slots in order of priority, then of arrival, each job as many as it can use. Jobs
// of a batch arrive with its first job.
type FIFO struct {
	Minima bool // each job has its Min before others have more; FLEX's FIFO has no minima
}

// Plan implements [Policy] in O(J log J).
func (f FIFO) Plan(s Snapshot) (Plan, error) {
	plan := Plan{Targets: make([]Target, 0, len(s.Jobs))}
	minimum := func(j *Job) int {
		if !f.Minima {
			return 0
		}
		return min(j.Min, j.Max)
	}
	left, reserved := s.Slots, 0 // reserved for the minima of later jobs
	for i := range s.Jobs {
		reserved += minimum(&s.Jobs[i])
	}
	for _, i := range byArrival(s.Jobs) {
		j := &s.Jobs[i]
		reserved -= minimum(j)
		slots := min(left, max(minimum(j), min(j.Max, left-reserved)))
		left -= slots
		plan.Targets = append(plan.Targets, Target{Job: j.ID, Slots: slots})
	}
	return plan, nil
}

// byArrival sorts the jobs' indexes by priority, then by arrival (jobs of a batch with its
// first one), then by id.
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
