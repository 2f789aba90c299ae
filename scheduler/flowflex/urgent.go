package flowflex

import (
	"cmp"
	"slices"
)

// rule is what jobs are packed by.
type rule int

const (
	byOrder rule = iota // of their flows
	byStart             // the time by which they must start, as fast as they can
	byEnd               // the time by which they must end, for their flow to meet its deadline
)

// urgency is a ready job and its time by the rule.
type urgency struct {
	by        float64
	flow, job int32 // as in run
}

func (u urgency) compare(v urgency) int {
	return cmp.Or(cmp.Compare(u.by, v.by), cmp.Compare(u.flow, v.flow), cmp.Compare(u.job, v.job))
}

// packUrgent gives slots to the job that must start, or end, first, whatever its
// flow: a flow that is early lets another by in the middle. Like pack otherwise.
// O(N (A + log N)).
func (p *packer) packUrgent(deadlines []float64, by rule) []float64 {
	p.deadlines, p.share, p.by = deadlines, (*packer).byUrgency, by
	defer func() { p.deadlines, p.share = nil, (*packer).inOrder }()
	return p.pack(positions(len(p.flows)))
}

func (p *packer) byUrgency() {
	free := p.slots
	for _, u := range p.queue {
		give := min(free, p.most[u.job])
		p.runs = append(p.runs, run{u.flow, u.job, give})
		if free -= give; free == 0 {
			return
		}
	}
}

func (p *packer) urgency(i, k int32) urgency {
	j := &p.flows[i].jobs[k-p.first[i]]
	u := urgency{p.deadlines[i] - j.tail, i, k}
	if p.by == byEnd {
		u.by += j.duration()
	}
	return u
}

// enter puts a job that has become ready into the queue, if there is one.
func (p *packer) enter(i, k int32) {
	if p.deadlines != nil {
		u := p.urgency(i, k)
		at, _ := slices.BinarySearchFunc(p.queue, u, urgency.compare)
		p.queue = slices.Insert(p.queue, at, u)
	}
}

// leave takes a job that is complete out of it.
func (p *packer) leave(i, k int32) {
	if p.deadlines != nil {
		at, _ := slices.BinarySearchFunc(p.queue, p.urgency(i, k), urgency.compare)
		p.queue = slices.Delete(p.queue, at, at+1)
	}
}
