package flowflex

import (
	"cmp"
	"slices"
)

// FIFO completes flows as a ready list in the order given: every ready job of the
// first flow has what it can use before the second has anything. Completion times
// are in seconds, by flow. O(N A).
func FIFO(p Problem) ([]float64, error) {
	made, err := prepare(p)
	if err != nil {
		return nil, err
	}
	return newPacker(p.Slots, made.dags()).pack(positions(len(p.Flows))), nil
}

// Fair completes flows as a ready list under fair sharing: all ready jobs, of all
// flows, have equal shares, fractions of slots allowed, but none more than it can
// use; what it leaves goes to the others. Completion times are in seconds, by flow.
// O(N A log A).
func Fair(p Problem) ([]float64, error) {
	made, err := prepare(p)
	if err != nil {
		return nil, err
	}
	ready := newPacker(p.Slots, made.dags())
	ready.share = (*packer).fairly
	return ready.pack(positions(len(p.Flows))), nil
}

// fairly raises a water level over all ready jobs.
func (p *packer) fairly() {
	for _, i := range p.live {
		for _, k := range p.ready[i] {
			p.runs = append(p.runs, run{i, k, 0})
		}
	}
	slices.SortStableFunc(p.runs, func(a, b run) int { return cmp.Compare(p.most[a.job], p.most[b.job]) })
	free := p.slots
	for n := range p.runs {
		r := &p.runs[n]
		r.slots = min(p.most[r.job], free/float64(len(p.runs)-n))
		free -= r.slots
	}
}

// positions is 0, 1, …, n-1.
func positions(n int) []int32 {
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	return order
}

func (p *problem) dags() []*flow {
	flows := make([]*flow, len(p.flows))
	for i := range p.flows {
		flows[i] = &p.flows[i]
	}
	return flows
}

func (p *problem) lines() []*flow {
	flows := make([]*flow, len(p.chains))
	for i := range p.chains {
		flows[i] = &p.chains[i].flow
	}
	return flows
}
