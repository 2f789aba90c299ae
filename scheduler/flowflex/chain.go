package flowflex

import (
	"cmp"
	"slices"
)

// chain is a flow whose jobs are in a line: the pseudo-jobs of another flow.
type chain struct {
	flow
	parts [][]part // by pseudo-job
}

// part is what a job has of a pseudo-job while that runs at its maximum.
type part struct {
	job   int32
	slots int64
}

// rounding is how far sums of the same terms in another order may be apart.
const rounding = 1e-12

// chain is stage 1 (section 4.1): with slots without end every job would start as
// early as it may and have all the slots it can use. Each longest interval in
// which the same jobs run is a pseudo-job. The chain has the volume and the
// critical path of the flow. O(N log N + E + size of the result).
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
		for _, next := range j.before {
			begin[next] = max(begin[next], end)
		}
		if j.work > 0 {
			edges = append(edges, edge{begin[i], true, i}, edge{end, false, i})
		}
	}
	slices.SortStableFunc(edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.job, b.job))
	})
	c := chain{flow: flow{cost: f.cost, volume: f.volume, path: f.path, least: f.least}}
	var running []part // by job
	last := 0.0
	for _, e := range edges {
		if e.at-last > rounding*e.at {
			c.link(running, e.at-last)
			last = e.at
		}
		at, _ := slices.BinarySearchFunc(running, e.job, func(p part, job int32) int { return cmp.Compare(p.job, job) })
		if e.start {
			running = slices.Insert(running, at, part{e.job, int64(f.jobs[e.job].max)})
		} else {
			running = slices.Delete(running, at, at+1)
		}
	}
	tail := 0.0
	for k := len(c.jobs) - 1; k >= 0; k-- {
		tail += c.jobs[k].duration()
		c.jobs[k].tail = tail
	}
	return c
}

// link appends a pseudo-job that takes the given seconds at its maximum, which may
// be more slots than there are.
func (c *chain) link(running []part, seconds float64) {
	slots := int64(0)
	for _, p := range running {
		slots += p.slots
	}
	k := len(c.jobs)
	made := job{work: float64(slots) * seconds, max: float64(slots)}
	if k > 0 {
		made.waits = 1
		c.jobs[k-1].before = []int32{int32(k)}
	}
	c.jobs = append(c.jobs, made)
	c.parts = append(c.parts, slices.Clone(running))
}
