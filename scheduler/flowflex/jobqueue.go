package flowflex

import (
	"cmp"
	"slices"
)

// rule is the order in which jobs are packed.
type packRule int

const (
	byOrder packRule = iota // the order of their flows
	byStart                 // the latest time at which they must start at full speed
	byEnd                   // the latest time at which they must end for their flow to meet its deadline
)

// queued is a ready job and its time by the rule.
type queued struct {
	time      float64
	flow, job int32 // as in run
}

func (u queued) compare(v queued) int {
	return cmp.Or(cmp.Compare(u.time, v.time), cmp.Compare(u.flow, v.flow), cmp.Compare(u.job, v.job))
}

// packJobs gives slots to the job with the earliest time by the rule, whatever its flow, so
// that a flow with slack lets others pass. Otherwise it works like pack. O(N (A + log N)).
func (p *packer) packJobs(deadlines []float64, by packRule) []float64 {
	p.deadlines, p.assign, p.by = deadlines, (*packer).assignByQueue, by
	defer func() { p.deadlines, p.assign = nil, (*packer).assignInOrder }()
	return p.pack(positions(len(p.flows)))
}

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

func (p *packer) queueEntry(i, k int32) queued {
	j := &p.flows[i].jobs[k-p.first[i]]
	u := queued{p.deadlines[i] - j.tail, i, k}
	if p.by == byEnd {
		u.time += j.duration()
	}
	return u
}

// enter puts a ready job into the queue, if there is one.
func (p *packer) enqueue(i, k int32) {
	if p.deadlines != nil {
		u := p.queueEntry(i, k)
		at, _ := slices.BinarySearchFunc(p.queue, u, queued.compare)
		p.queue = slices.Insert(p.queue, at, u)
	}
}

// leave removes a completed job from the queue.
func (p *packer) dequeue(i, k int32) {
	if p.deadlines != nil {
		at, _ := slices.BinarySearchFunc(p.queue, p.queueEntry(i, k), queued.compare)
		p.queue = slices.Delete(p.queue, at, at+1)
	}
}
