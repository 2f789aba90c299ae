package flowflex

import (
	"cmp"
	"slices"
)

// chain is a line of pseudo-jobs, made from the flow source.
type chain struct {
	flow
	source *flow
	ranges []jobRange // by job of source
}

// jobRange is the pseudo-jobs that a job is part of, from first to before end.
type jobRange struct{ first, end int32 }

// allocation is a job's slots in a pseudo-job that runs at its maximum.
type allocation struct {
	job   int32
	slots int64
}

// chain returns the flow's chain (stage 1, section 4.1). With unlimited slots every job would
// start once its predecessors end, and have all the slots it can use. Each longest interval in
// which the same jobs run is a pseudo-job. Its maximum may exceed the slots. The chain has the
// volume and the critical path of the flow. O(N log N + E).
func (f *flow) chain(sorted []int32) chain {
	type edge struct {
		at    float64
		start bool
		job   int32
	}
	begin := make([]float64, len(f.jobs))
	var edges []edge
	for _, i := range sorted {
		j := &f.jobs[i]
		end := begin[i] + j.duration()
		for _, next := range j.successors {
			begin[next] = max(begin[next], end)
		}
		if j.work > 0 {
			edges = append(edges, edge{begin[i], true, i}, edge{end, false, i})
		}
	}
	slices.SortStableFunc(edges, func(a, b edge) int { return cmp.Compare(a.at, b.at) })
	c := chain{
		flow:   flow{cost: f.cost, volume: f.volume, path: f.path, q: f.q},
		source: f,
		ranges: make([]jobRange, len(f.jobs)),
	}
	last, slots := 0.0, 0.0
	for _, e := range edges {
		if e.at-last > rounding*e.at {
			c.appendPseudoJob(slots, e.at-last)
			last = e.at
		}
		if e.start {
			c.ranges[e.job].first = int32(len(c.jobs))
			slots += f.jobs[e.job].max
		} else {
			c.ranges[e.job].end = int32(len(c.jobs))
			slots -= f.jobs[e.job].max
		}
	}
	tail := 0.0
	for k := len(c.jobs) - 1; k >= 0; k-- {
		tail += c.jobs[k].duration()
		c.jobs[k].tail = tail
	}
	return c
}

// appendPseudoJob appends a pseudo-job that takes the given seconds at its maximum, slots.
func (c *chain) appendPseudoJob(slots, seconds float64) {
	k := len(c.jobs)
	made := job{work: slots * seconds, max: slots}
	if k > 0 {
		made.predecessors = 1
		c.jobs[k-1].successors = []int32{int32(k)}
	}
	c.jobs = append(c.jobs, made)
}

// allocations lists the jobs of pseudo-job k in O(N). It computes the list each time, because all
// lists together may have N² entries.
func (c *chain) allocations(k int32) []allocation {
	var list []allocation
	for i, r := range c.ranges {
		if r.first <= k && k < r.end {
			list = append(list, allocation{int32(i), int64(c.source.jobs[i].max)})
		}
	}
	return list
}
