package flowflex

import (
	"cmp"
	"math"
	"slices"
)

// fairJob is a job under FAIR.
type fairJob struct {
	flow            int
	max, slots      float64
	left, tolerance float64 // slot-seconds; the job is complete if at most tolerance is left
	predecessors    int     // number of unfinished predecessors
	successors      []*fairJob
}

// fair returns completion times under fair sharing, in seconds, by flow. All ready jobs of all
// flows have equal shares, also fractions of slots. The rest that a job cannot use goes to the
// others.
func (in *instance) fair() []float64 {
	const complete = -1 // marks complete jobs in left
	done, jobs := make([]float64, len(in.flows)), in.fairJobs()
	for now := 0.0; len(jobs) > 0; {
		ready := slices.DeleteFunc(slices.Clone(jobs), func(j *fairJob) bool { return j.predecessors > 0 })
		step := 0.0 // jobs without work complete at once
		if !slices.ContainsFunc(ready, func(j *fairJob) bool { return j.left == 0 }) {
			step = in.share(ready)
		}
		now += step
		for _, j := range ready {
			if j.left -= j.slots * step; j.left > j.tolerance {
				continue
			}
			j.left, done[j.flow] = complete, now
			for _, next := range j.successors {
				next.predecessors--
			}
		}
		jobs = slices.DeleteFunc(jobs, func(j *fairJob) bool { return j.left == complete })
	}
	return done
}

// share raises a water level over the ready jobs and returns the time until one ends.
func (in *instance) share(ready []*fairJob) (step float64) {
	slices.SortStableFunc(ready, func(a, b *fairJob) int { return cmp.Compare(a.max, b.max) })
	free, left, slots := in.slots, math.Inf(1), 1.0 // left and slots of the job that ends first
	for n, j := range ready {
		j.slots = min(j.max, free/float64(len(ready)-n))
		free -= j.slots
		if j.left*slots < left*j.slots {
			left, slots = j.left, j.slots
		}
	}
	return left / slots
}

// fairJobs lists all jobs by flow, and within a flow by decreasing tail.
func (in *instance) fairJobs() (all []*fairJob) {
	for i := range in.flows {
		f := &in.flows[i]
		jobs := make([]*fairJob, len(f.jobs))
		for k, j := range f.jobs {
			jobs[k] = &fairJob{flow: i, max: in.usableSlots(&f.jobs[k]), left: j.Work, tolerance: j.Work * rounding, predecessors: len(j.After)}
		}
		for k, j := range f.jobs {
			for _, before := range j.After {
				jobs[before].successors = append(jobs[before].successors, jobs[k])
			}
		}
		ranks := positions(len(jobs))
		slices.SortStableFunc(ranks, func(a, b int) int { return cmp.Compare(f.Tails[b], f.Tails[a]) })
		for _, k := range ranks {
			all = append(all, jobs[k])
		}
	}
	return all
}
