package flowflex

import (
	"cmp"
	"math"
	"slices"
)

// run is a job that has slots at the moment.
type run struct {
	flow, job int32
	slots     float64
}

// span is a time in which runs do not change.
type span struct {
	from, to float64
	runs     []run
}

// packer runs flows through time, from one completion to the next. It is made
// once for a set of flows and used for many orders.
type packer struct {
	slots float64
	flows []*flow
	ranks [][]int32 // by flow: a job's place among ready ones, longest tail first

	left  [][]float64 // by flow and job: slot-seconds
	waits [][]int32
	ready [][]int32 // by flow, by rank
	live  []int32   // flows with work left, in order
	runs  []run
	stack []int32
	open  []int32 // by flow: jobs not complete
	done  []float64

	steps int // runs that were advanced, over all orders

	share  func(p *packer) // fills runs
	record func(span)      // nil: nobody asks

	deadlines []float64 // by flow; nil: packUrgent is not running
	queue     []urgency // of ready jobs, most urgent first
}

func newPacker(slots int, flows []*flow) *packer {
	p := &packer{
		slots: float64(slots),
		flows: flows,
		ranks: make([][]int32, len(flows)),
		left:  make([][]float64, len(flows)),
		waits: make([][]int32, len(flows)),
		ready: make([][]int32, len(flows)),
		open:  make([]int32, len(flows)),
		done:  make([]float64, len(flows)),
		share: (*packer).inOrder,
	}
	for i, f := range flows {
		p.left[i] = make([]float64, len(f.jobs))
		p.waits[i] = make([]int32, len(f.jobs))
		p.ranks[i] = f.rank()
	}
	return p
}

// rank is every job's place by tail, longest first.
func (f *flow) rank() []int32 {
	byTail := make([]int32, len(f.jobs))
	for i := range byTail {
		byTail[i] = int32(i)
	}
	slices.SortStableFunc(byTail, func(a, b int32) int { return cmp.Compare(f.jobs[b].tail, f.jobs[a].tail) })
	ranks := make([]int32, len(f.jobs))
	for rank, i := range byTail {
		ranks[i] = int32(rank)
	}
	return ranks
}

// pack gives slots in the order of flows, at each instant: every ready job of the
// first flow as many as it can use, longest tail first, then those of the second
// with what is left, and so on. For chains this is the greedy scheme of Figure 5:
// a later chain never takes anything from an earlier one, so placing chain after
// chain or instant after instant is the same. The result, completion times by
// flow, is valid until the next call. O(N A).
func (p *packer) pack(order []int32) []float64 {
	p.reset(order)
	for now := 0.0; len(p.live) > 0; {
		p.runs = p.runs[:0]
		p.share(p)
		step := math.Inf(1)
		for _, r := range p.runs {
			step = min(step, p.left[r.flow][r.job]/r.slots)
		}
		if p.record != nil {
			p.record(span{now, now + step, p.runs})
		}
		now += step
		p.advance(step, now)
	}
	return p.done
}

func (p *packer) reset(order []int32) {
	p.live, p.queue = p.live[:0], p.queue[:0]
	for _, i := range order {
		f := p.flows[i]
		p.ready[i] = p.ready[i][:0]
		p.open[i] = int32(len(f.jobs))
		p.done[i] = 0
		for k := range f.jobs {
			p.left[i][k], p.waits[i][k] = f.jobs[k].work, f.jobs[k].waits
		}
		for k := range f.jobs {
			if f.jobs[k].waits == 0 {
				p.release(i, int32(k))
			}
		}
		if p.open[i] > 0 {
			p.live = append(p.live, i)
		}
	}
}

// release makes a job ready; jobs without work are complete at once, and so may be
// those that wait for them.
func (p *packer) release(i, k int32) {
	p.stack = append(p.stack[:0], k)
	for len(p.stack) > 0 {
		k := p.stack[len(p.stack)-1]
		p.stack = p.stack[:len(p.stack)-1]
		if p.left[i][k] > 0 {
			p.ready[i] = slices.Insert(p.ready[i], p.place(i, k), k)
			p.enter(i, k)
			continue
		}
		p.open[i]--
		for _, next := range p.flows[i].jobs[k].before {
			if p.waits[i][next]--; p.waits[i][next] == 0 {
				p.stack = append(p.stack, next)
			}
		}
	}
}

// place is where a job is, or belongs, among its flow's ready ones.
func (p *packer) place(i, k int32) int {
	at, _ := slices.BinarySearchFunc(p.ready[i], p.ranks[i][k], func(other, rank int32) int {
		return cmp.Compare(p.ranks[i][other], rank)
	})
	return at
}

// inOrder is pack's rule.
func (p *packer) inOrder() {
	free := p.slots
	for _, i := range p.live {
		f := p.flows[i]
		for _, k := range p.ready[i] {
			give := min(free, f.jobs[k].max)
			p.runs = append(p.runs, run{i, k, give})
			if free -= give; free == 0 {
				return
			}
		}
	}
}

// advance works for step seconds, until now, and completes what has no work left.
func (p *packer) advance(step, now float64) {
	ended := false
	p.steps += len(p.runs)
	for _, r := range p.runs {
		left := &p.left[r.flow][r.job]
		*left -= r.slots * step
		work := p.flows[r.flow].jobs[r.job].work
		if *left > work*rounding {
			continue
		}
		*left = 0
		ready := p.ready[r.flow]
		at := p.place(r.flow, r.job)
		p.ready[r.flow] = slices.Delete(ready, at, at+1)
		p.leave(r.flow, r.job)
		p.release(r.flow, r.job)
		if p.open[r.flow] == 0 {
			p.done[r.flow], ended = now, true
		}
	}
	if ended {
		p.live = slices.DeleteFunc(p.live, func(i int32) bool { return p.open[i] == 0 })
	}
}
