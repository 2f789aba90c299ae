package flowflex

import (
	"math/bits"
	"slices"
)

// maxClosureJobs is the largest number of jobs for which tightenBounds stores all ancestors.
const maxClosureJobs = 512

// jobSet is a set of jobs of a flow, as bits by index.
type jobSet []uint64

func (s jobSet) add(i int32) { s[i/64] |= 1 << (i % 64) }
func (s jobSet) addAll(t jobSet) {
	for w := range s {
		s[w] |= t[w]
	}
}

// each yields the members in order.
func (s jobSet) each(yield func(i int32) bool) {
	for w, word := range s {
		for ; word != 0; word &= word - 1 {
			if !yield(int32(w*64 + bits.TrailingZeros64(word))) {
				return
			}
		}
	}
}

// tightenBounds computes the flow's lowerBound and the jobs' tails. A job's head is its earliest
// start; its tail is the least time from its start to the end of the flow. The flow takes at
// least the head plus the tail of each job.
//
// Both count more than the critical path: between the start of a job and the end of another, the
// slots must also do the work of all jobs between them. The paper's Q counts only the critical
// path and the whole work. O(N³/64) for N jobs. Flows of more than maxClosureJobs keep Q.
func (f *flow) tightenBounds(sorted []int32, slots int) {
	n := len(f.jobs)
	if f.lowerBound = f.q; n > maxClosureJobs {
		return
	}
	heads := make([]float64, n)
	before, after := f.closure(sorted)
	between := make(jobSet, (n+63)/64)
	area := func(s jobSet) float64 {
		work := 0.0
		for i := range s.each {
			work += f.jobs[i].work
		}
		return work / float64(slots)
	}
	areaBetween := func(from, to int32) float64 {
		for w := range between {
			between[w] = after[from][w] & before[to][w]
		}
		return area(between)
	}
	for _, i := range sorted {
		heads[i] = area(before[i])
		for j := range before[i].each {
			heads[i] = max(heads[i], heads[j]+f.jobs[j].duration()+areaBetween(j, i))
		}
	}
	for _, i := range slices.Backward(sorted) {
		rest := area(after[i])
		for j := range after[i].each {
			rest = max(rest, areaBetween(i, j)+f.jobs[j].tail)
		}
		f.jobs[i].tail = f.jobs[i].duration() + rest
		f.lowerBound = max(f.lowerBound, heads[i]+f.jobs[i].tail)
	}
}

// closure returns each job's ancestors (before) and descendants (after).
func (f *flow) closure(sorted []int32) (before, after []jobSet) {
	n := len(f.jobs)
	words := (n + 63) / 64
	space := make(jobSet, 2*n*words)
	before, after = make([]jobSet, n), make([]jobSet, n)
	for i := range n {
		before[i], after[i] = space[2*i*words:(2*i+1)*words], space[(2*i+1)*words:(2*i+2)*words]
	}
	for _, i := range sorted {
		for _, next := range f.jobs[i].successors {
			before[next].addAll(before[i])
			before[next].add(i)
		}
	}
	for i := range int32(n) {
		for j := range before[i].each {
			after[j].add(i)
		}
	}
	return before, after
}
