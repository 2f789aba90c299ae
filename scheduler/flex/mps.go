package flex

import (
	"math"
	"math/bits"
)

// packer is the Malleable Packing Scheme (section 3.1, Fig. 3) for one problem and
// many orderings: at any time every live job has its minimum, and the slack goes to
// the jobs in order of precedence, each up to its maximum.
//
// A job is *low* (at its minimum), then *partial*, then *high* (at its maximum):
// within an ordering allocations only grow, for slots are only ever freed, and one
// job at a time is partial, the first in order that is not high. So a low job's end
// is known from the start, whatever the ordering, and a high job's from when it
// became high: O(J log J) for an ordering where Fig. 3 takes O(J²).
type packer struct {
	p     *Problem
	slack int
	low   []int     // jobs by their end if they stay low
	ends  []float64 // of the latest ordering, by job; the caller may read, not keep

	place []int  // by job, its place in the ordering
	done  []bool // by job
	high  events // ends of high jobs
	spent int    // on all orderings so far; see cost
}

// cost is what was spent since the last call, in jobs packed: where many jobs are at
// their maxima at a time, ending one takes longer, about half a job for each level of
// their heap.
func (k *packer) cost() int {
	cost := k.spent
	k.spent = 0
	return cost
}

// newPacker prepares in O(J log J).
func newPacker(p *Problem) *packer {
	n := len(p.Jobs)
	return &packer{
		p: p, slack: p.slack(), ends: make([]float64, n), place: make([]int, n), done: make([]bool, n),
		low: sorted(p.keys((*Job).lowEnd)),
	}
}

// lowEnd is when the job ends if it never has more than its minimum.
func (j *Job) lowEnd() float64 {
	if j.Min == 0 && j.Work > 0 {
		return math.Inf(1)
	}
	return j.Work / max(1, float64(j.Min))
}

// pack computes the ends of all jobs under the ordering. r may be nil.
func (k *packer) pack(order []int, r *recorder) []float64 {
	jobs, slack, now := k.p.Jobs, k.slack, 0.0
	for i, j := range order {
		k.place[j], k.done[j] = i, false
		r.set(j, float64(jobs[j].Min), 0)
	}
	k.high = k.high[:0]
	k.spent += len(order)
	at, lowest := 0, 0       // in order: the partial job; in k.low: the next to end
	extra := 0               // the partial job's slots above its minimum
	left, since := -1.0, 0.0 // the partial job's work at a time; left < 0: it is low still
	for range order {
		// Hand out the slack.
		for ; at < len(order); at++ {
			job := &jobs[order[at]]
			if k.done[order[at]] {
				continue
			}
			if slack == 0 {
				break
			}
			if left < 0 {
				left, since = max(0, job.Work-float64(job.Min)*now), now
			}
			left = max(0, left-float64(job.Min+extra)*(now-since))
			since = now
			if need := job.Max - job.Min - extra; slack < need {
				extra += slack
				slack = 0
				r.set(order[at], float64(job.Min+extra), now)
				break
			} else {
				slack -= need
			}
			k.high.push(event{now + left/float64(job.Max), order[at]})
			r.set(order[at], float64(job.Max), now)
			extra, left = 0, -1
		}
		// Who ends first?
		end, who, kind := math.Inf(1), -1, 0
		for lowest < len(k.low) && (k.done[k.low[lowest]] || k.place[k.low[lowest]] < at || k.place[k.low[lowest]] == at && left >= 0) {
			lowest++
		}
		if lowest < len(k.low) {
			who = k.low[lowest]
			end = jobs[who].lowEnd()
		}
		if len(k.high) > 0 && k.high[0].at <= end {
			end, who, kind = k.high[0].at, k.high[0].job, 1
		}
		if left >= 0 && at < len(order) {
			if e := since + left/float64(jobs[order[at]].Min+extra); e <= end {
				end, who, kind = e, order[at], 2
			}
		}
		now = max(now, end)
		freed := jobs[who].Min
		switch kind {
		case 1:
			freed = jobs[who].Max
			k.spent += bits.Len(uint(len(k.high))) / 2
			k.high.pop()
		case 2:
			freed += extra
			extra, left = 0, -1
		}
		slack += freed
		k.done[who], k.ends[who] = true, now
		r.set(who, 0, now)
	}
	return k.ends
}

// value is the metric under the ordering.
func (k *packer) value(order []int) float64 { return k.p.Value(k.pack(order, nil)) }

// total is the sum of the ends under the latest ordering: of two orderings with one
// value the one that ends jobs sooner is better.
func (k *packer) total() float64 {
	total := 0.0
	for _, end := range k.ends {
		total += end
	}
	return total
}

// schedule is the whole schedule under the ordering.
func (k *packer) schedule(order []int) *Schedule {
	r := newRecorder(len(order))
	k.pack(order, r)
	return r.schedule(order, k.ends)
}
