package flex

import (
	"math"
	"math/bits"
)

// packer is the Malleable Packing Scheme (section 3.1, Fig. 3) for one problem and many
// orderings: at any time every live job has its minimum, and the slack goes to the jobs in
// order of precedence, each up to its maximum.
//
// A job is *low* (at its minimum), then *partial*, then *high* (at its maximum). Jobs only free
// slots, so allocations only grow. At most one job is partial: the first in order that is not
// high. A low job's end is known from the start; a high job's end is known once it becomes high.
// So an ordering takes O(J log J), where Fig. 3 takes O(J²).
type packer struct {
	p           *Problem
	low         []int     // jobs, sorted by their end if they stay low
	ends        []float64 // of the latest ordering, by job; callers may read but not keep it
	freeAtStart int       // slots beyond all minima
	effort      int       // since the last takeEffort

	// State of the ordering being packed.
	order     []int
	recorder  *recorder // nil: none
	place     []int     // by job, its index in the ordering
	done      []bool    // by job
	now       float64
	slack     int        // slots beyond the minima that are free
	nextLow   int        // in low: the next to end at its minimum
	highEnds  events     // ends of high jobs
	front     int        // in order: the first job that is neither high nor done
	isPartial bool       // whether that job is partial
	partial   allocation // the allocation of the partial job
}

// takeEffort returns the effort since its last call, in jobs packed. If many jobs are high, an
// end also counts as about half a job for each level of their heap.
func (k *packer) takeEffort() int {
	effort := k.effort
	k.effort = 0
	return effort
}

// newPacker returns a packer. O(J log J).
func newPacker(p *Problem) *packer {
	n := len(p.Jobs)
	return &packer{
		p: p, low: sorted(p.keys((*Job).lowEnd)), ends: make([]float64, n), place: make([]int, n), done: make([]bool, n),
		freeAtStart: p.slack(),
	}
}

// lowEnd returns the job's end if it always has its minimum.
func (j *Job) lowEnd() float64 {
	if j.Min == 0 && j.Work > 0 {
		return math.Inf(1)
	}
	return j.Work / max(1, float64(j.Min))
}

// pack returns the ends of all jobs under the ordering (Fig. 3), and records their allocations in
// r, which may be nil. It advances from one end to the next.
func (k *packer) pack(order []int, r *recorder) []float64 {
	k.begin(order, r)
	for range order {
		k.assignSlack()
		k.endNext()
	}
	return k.ends
}

// begin sets every job to its minimum.
func (k *packer) begin(order []int, r *recorder) {
	k.order, k.recorder = order, r
	k.now, k.slack, k.nextLow, k.highEnds = 0, k.freeAtStart, 0, k.highEnds[:0]
	k.front, k.isPartial = 0, false
	for i, j := range order {
		k.place[j], k.done[j] = i, false
		r.set(j, float64(k.p.Jobs[j].Min), 0)
	}
	k.effort += len(order)
}

// assignSlack gives the slack to the jobs in order of precedence, each up to its maximum.
func (k *packer) assignSlack() {
	for ; k.front < len(k.order); k.front++ {
		j := k.order[k.front]
		if k.done[j] {
			continue
		}
		if k.slack == 0 {
			return
		}
		job := &k.p.Jobs[j]
		if !k.isPartial {
			k.isPartial = true
			k.partial = allocation{slots: job.Min, left: max(0, job.Work-float64(job.Min)*k.now), since: k.now}
		}
		left, need := k.partial.remaining(k.now), job.Max-k.partial.slots
		if k.slack < need {
			k.partial = allocation{slots: k.partial.slots + k.slack, left: left, since: k.now}
			k.slack = 0
			k.recorder.set(j, float64(k.partial.slots), k.now)
			return
		}
		k.slack -= need
		k.isPartial = false
		k.highEnds.push(event{k.now + left/float64(job.Max), j})
		k.recorder.set(j, float64(job.Max), k.now)
	}
}

// endNext advances to the next end. Of jobs that end together, the partial job is first, then
// high jobs, then low jobs.
func (k *packer) endNext() {
	for k.nextLow < len(k.low) && !k.isLow(k.low[k.nextLow]) {
		k.nextLow++
	}
	lowEnd, highEnd, partialEnd := math.Inf(1), math.Inf(1), math.Inf(1)
	if k.nextLow < len(k.low) {
		lowEnd = k.p.Jobs[k.low[k.nextLow]].lowEnd()
	}
	if len(k.highEnds) > 0 {
		highEnd = k.highEnds[0].at
	}
	if k.isPartial {
		partialEnd = k.partial.end()
	}
	switch {
	case k.isPartial && partialEnd <= min(lowEnd, highEnd):
		k.isPartial = false
		k.end(k.order[k.front], partialEnd, k.partial.slots)
	case len(k.highEnds) > 0 && highEnd <= lowEnd:
		k.effort += bits.Len(uint(len(k.highEnds))) / 2
		j := k.highEnds.pop().job
		k.end(j, highEnd, k.p.Jobs[j].Max)
	default:
		j := k.low[k.nextLow]
		k.end(j, lowEnd, k.p.Jobs[j].Min)
	}
}

// isLow reports whether a job is at its minimum.
func (k *packer) isLow(j int) bool {
	return !k.done[j] && (k.place[j] > k.front || k.place[j] == k.front && !k.isPartial)
}

// end ends job j at a time and frees its slots.
func (k *packer) end(j int, at float64, slots int) {
	k.now = max(k.now, at)
	k.slack += slots
	k.done[j], k.ends[j] = true, k.now
	k.recorder.set(j, 0, k.now)
}

// value returns the metric's value under the ordering.
func (k *packer) value(order []int) float64 { return k.p.Value(k.pack(order, nil)) }

// total returns the sum of the ends under the latest ordering. It decides between orderings of
// equal value.
func (k *packer) total() float64 {
	total := 0.0
	for _, end := range k.ends {
		total += end
	}
	return total
}

// schedule returns the whole schedule under the ordering.
func (k *packer) schedule(order []int) *Schedule {
	r := newRecorder(len(order))
	k.pack(order, r)
	return r.schedule(order, k.ends)
}
