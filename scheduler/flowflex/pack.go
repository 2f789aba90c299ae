package flowflex

import (
	"cmp"
	"math"
	"slices"
)

// run is a job with its present slots.
type run struct {
	flow  int32
	job   int32 // number over all flows; packer.local converts it
	slots float64
}

// span is an interval of constant runs.
type span struct {
	from, to float64
	runs     []run
}

// packer simulates flows from one end of a job to the next. One packer serves many orders of its
// flows. Jobs are numbered over all flows, so that the data of each step is contiguous.
type packer struct {
	slots float64
	flows []*flow
	first []int32 // by flow: its first job

	max        []float64 // by job: its Max
	negligible []float64 // by job: at most this work left counts as none
	successors [][]int32 // by job: indexes in its flow
	ranks      []int32   // by job: its rank among ready jobs, longest tail first

	left       []float64 // by job: slot-seconds
	waitsFor   []int32   // by job: number of unfinished predecessors
	ready      [][]int32 // by flow, by rank
	live       []int32   // flows with jobs left, in order
	unfinished []int32   // by flow: number of unfinished jobs
	completion []float64 // by flow
	runs       []run
	released   []int32
	steps      int // runs advanced, over all orders

	assign func(p *packer) // fills runs
	record func(span)      // nil: not recorded

	deadlines []float64 // by flow; nil outside packJobs
	by        packRule
	queue     []queued // ready jobs, earliest first
}

func newPacker(slots int, flows []*flow) *packer {
	p := &packer{
		slots:      float64(slots),
		flows:      flows,
		first:      make([]int32, len(flows)),
		ready:      make([][]int32, len(flows)),
		unfinished: make([]int32, len(flows)),
		completion: make([]float64, len(flows)),
		assign:     (*packer).assignInOrder,
	}
	for i, f := range flows {
		p.first[i] = int32(len(p.max))
		for k := range f.jobs {
			j := &f.jobs[k]
			p.max = append(p.max, j.max)
			p.negligible = append(p.negligible, j.work*rounding)
			p.successors = append(p.successors, j.successors)
		}
		p.ranks = append(p.ranks, f.rank()...)
	}
	p.left, p.waitsFor = make([]float64, len(p.max)), make([]int32, len(p.max))
	return p
}

// rank returns each job's rank by tail, longest first.
func (f *flow) rank() []int32 {
	byTail := positions(len(f.jobs))
	slices.SortStableFunc(byTail, func(a, b int32) int { return cmp.Compare(f.jobs[b].tail, f.jobs[a].tail) })
	ranks := make([]int32, len(f.jobs))
	for rank, i := range byTail {
		ranks[i] = int32(rank)
	}
	return ranks
}

// local returns the index of a run's job in its flow.
func (p *packer) local(r run) int32 { return r.job - p.first[r.flow] }

// pack gives slots in the order of flows at each instant. Every ready job of the first flow gets
// as many as it can use, longest tail first. The second flow gets from the rest, and so on. It
// returns completion times by flow, valid until the next call. O(N·A) for N jobs, A of them with
// slots at a time.
//
// For chains this is the greedy scheme of Figure 5, which goes chain by chain. The result is the
// same, because a later chain never takes slots from an earlier one.
func (p *packer) pack(order []int32) []float64 {
	p.reset(order)
	for now := 0.0; len(p.live) > 0; {
		p.runs = p.runs[:0]
		p.assign(p)
		step := p.timeToNextEnd()
		if p.record != nil {
			p.record(span{now, now + step, p.runs})
		}
		now += step
		p.advance(step, now)
	}
	return p.completion
}

// timeToNextEnd returns the time to the next end of a job. It compares products, to divide once.
func (p *packer) timeToNextEnd() float64 {
	left, slots := math.Inf(1), 1.0
	for _, r := range p.runs {
		if l := p.left[r.job]; l*slots < left*r.slots {
			left, slots = l, r.slots
		}
	}
	return left / slots
}

// reset brings all flows back to their start.
func (p *packer) reset(order []int32) {
	p.live, p.queue = p.live[:0], p.queue[:0]
	for _, i := range order {
		f, first := p.flows[i], p.first[i]
		p.ready[i] = p.ready[i][:0]
		p.unfinished[i] = int32(len(f.jobs))
		p.completion[i] = 0
		for k := range f.jobs {
			p.left[first+int32(k)], p.waitsFor[first+int32(k)] = f.jobs[k].work, f.jobs[k].predecessors
		}
		for k := range f.jobs {
			if f.jobs[k].predecessors == 0 {
				p.release(i, first+int32(k))
			}
		}
		if p.unfinished[i] > 0 {
			p.live = append(p.live, i)
		}
	}
}

// release makes job k of flow i ready, or releases its successors if it has no work left.
func (p *packer) release(i, k int32) {
	if p.left[k] > 0 {
		p.ready[i] = slices.Insert(p.ready[i], p.readyIndex(i, k), k)
		p.enqueue(i, k)
		return
	}
	p.released = append(p.released[:0], k)
	for len(p.released) > 0 {
		k := p.released[len(p.released)-1]
		p.released = p.released[:len(p.released)-1]
		p.unfinished[i]--
		for _, next := range p.successors[k] {
			next += p.first[i]
			if p.waitsFor[next]--; p.waitsFor[next] > 0 {
				continue
			}
			if p.left[next] == 0 {
				p.released = append(p.released, next)
				continue
			}
			p.ready[i] = slices.Insert(p.ready[i], p.readyIndex(i, next), next)
			p.enqueue(i, next)
		}
	}
}

// readyIndex returns the index of a job among its flow's ready jobs, or its insertion point.
func (p *packer) readyIndex(i, k int32) int {
	at, _ := slices.BinarySearchFunc(p.ready[i], p.ranks[k], func(other, rank int32) int {
		return cmp.Compare(p.ranks[other], rank)
	})
	return at
}

// assignInOrder is pack's rule for sharing slots.
func (p *packer) assignInOrder() {
	free := p.slots
	for _, i := range p.live {
		for _, k := range p.ready[i] {
			give := min(free, p.max[k])
			p.runs = append(p.runs, run{i, k, give})
			if free -= give; free == 0 {
				return
			}
		}
	}
}

// advance moves time by step seconds to now, and completes jobs without work left.
func (p *packer) advance(step, now float64) {
	ended := false
	p.steps += len(p.runs)
	for _, r := range p.runs {
		left := p.left[r.job] - r.slots*step
		if p.left[r.job] = left; left > p.negligible[r.job] {
			continue
		}
		p.left[r.job] = 0
		at := p.readyIndex(r.flow, r.job)
		p.ready[r.flow] = slices.Delete(p.ready[r.flow], at, at+1)
		p.dequeue(r.flow, r.job)
		p.release(r.flow, r.job)
		if p.unfinished[r.flow] == 0 {
			p.completion[r.flow], ended = now, true
		}
	}
	if ended {
		p.live = slices.DeleteFunc(p.live, func(i int32) bool { return p.unfinished[i] == 0 })
	}
}

// positions returns 0, 1, …, n-1.
func positions(n int) []int32 {
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	return order
}

// graphFlows returns the flows as graphs.
func (p *problem) graphFlows() []*flow {
	flows := make([]*flow, len(p.flows))
	for i := range p.flows {
		flows[i] = &p.flows[i]
	}
	return flows
}

// chainFlows returns the flows as chains.
func (p *problem) chainFlows() []*flow {
	flows := make([]*flow, len(p.chains))
	for i := range p.chains {
		flows[i] = &p.chains[i].flow
	}
	return flows
}
