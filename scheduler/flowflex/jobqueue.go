package flowflex

import (
	"cmp"
	"slices"
)

// packRule is the order in which jobs are packed.
type packRule int

const (
	byOrder packRule = iota // the order of their flows
	byStart                 // the latest start that lets their flow meet its deadline
	byEnd                   // the latest end that lets their flow meet its deadline
)

// queued is a ready job with its time under the rule.
type queued struct {
	time      float64
	flow, job int32 // as in run
}

func (u queued) compare(v queued) int {
	return cmp.Or(cmp.Compare(u.time, v.time), cmp.Compare(u.flow, v.flow), cmp.Compare(u.job, v.job))
}

// packJobs gives slots to the jobs with the earliest time under the rule, whatever their flow. So
// flows with slack wait for flows without. deadlines is by flow. Otherwise it works like pack.
// O(N·(A + log N)) for N jobs, A of them with slots at a time.
func (p *packer) packJobs(deadlines []float64, by packRule) []float64 {
	p.deadlines, p.assign, p.by = deadlines, (*packer).assignByQueue, by
	defer func() { p.deadlines, p.assign = nil, (*packer).assignInOrder }()
	return p.pack(positions(len(p.flows)))
}

// assignByQueue is packJobs' rule for sharing slots.
func (p *packer) assignByQueue() {
	free := p.slots
	for _, u := range p.queue {
		give := min(free, p.max[u.job])
		p.runs = append(p.runs, run{u.flow, u.job, give})
		if free -= give; free == 0 {
			return
		}
	}
}

// queueEntry returns job k of flow i with its time under the rule.
func (p *packer) queueEntry(i, k int32) queued {
	j := &p.flows[i].jobs[k-p.first[i]]
	u := queued{p.deadlines[i] - j.tail, i, k}
	if p.by == byEnd {
		u.time += j.duration()
	}
	return u
}

// enqueue adds a ready job to the queue, within packJobs.
func (p *packer) enqueue(i, k int32) {
	if p.deadlines != nil {
		u := p.queueEntry(i, k)
		at, _ := slices.BinarySearchFunc(p.queue, u, queued.compare)
		p.queue = slices.Insert(p.queue, at, u)
	}
}

// dequeue removes a completed job from the queue, within packJobs.
func (p *packer) dequeue(i, k int32) {
	if p.deadlines != nil {
		at, _ := slices.BinarySearchFunc(p.queue, p.queueEntry(i, k), queued.compare)
		p.queue = slices.Delete(p.queue, at, at+1)
	}
}
