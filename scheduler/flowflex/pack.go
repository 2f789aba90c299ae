package flowflex

import (
	"cmp"
	"math"
	"slices"
)

// run is a job that has slots at the moment.
type run struct {
	flow  int32
	job   int32 // of all flows' jobs; packer.local tells which of its flow
	slots float64
}

// span is a time in which runs do not change.
type span struct {
	from, to float64
	runs     []run
}

// packer runs flows through time, from one completion to the next. It is made
// once for a set of flows and used for many orders. Jobs are numbered through all
// flows, so that what is asked of them at every step lies together.
type packer struct {
	slots float64
	flows []*flow
	first []int32 // by flow: its first job

	most  []float64 // by job: its Max
	small []float64 // with less work left it is complete
	next  [][]int32 // jobs after it, local to the flow
	ranks []int32   // its place among ready ones, longest tail first

	left  []float64 // by job: slot-seconds
	waits []int32   // by job: how many it still waits for
	ready [][]int32 // by flow, by rank
	live  []int32   // flows with work left, in order
	open  []int32   // by flow: jobs not complete
	done  []float64 // by flow
	runs  []run
	stack []int32
	steps int // runs that were advanced, over all orders

	share  func(p *packer) // fills runs
	record func(span)      // nil: nobody asks

	deadlines []float64 // by flow; nil: packUrgent is not running
	by        rule
	queue     []urgency // of ready jobs, most urgent first
}

func newPacker(slots int, flows []*flow) *packer {
	p := &packer{
		slots: float64(slots),
		flows: flows,
		first: make([]int32, len(flows)),
		ready: make([][]int32, len(flows)),
		open:  make([]int32, len(flows)),
		done:  make([]float64, len(flows)),
		share: (*packer).inOrder,
	}
	for i, f := range flows {
		p.first[i] = int32(len(p.most))
		for k := range f.jobs {
			j := &f.jobs[k]
			p.most = append(p.most, j.max)
			p.small = append(p.small, j.work*rounding)
			p.next = append(p.next, j.before)
		}
		p.ranks = append(p.ranks, f.rank()...)
	}
	p.left, p.waits = make([]float64, len(p.most)), make([]int32, len(p.most))
	return p
}

// rank is every job's place by tail, longest first.
func (f *flow) rank() []int32 {
	byTail := positions(len(f.jobs))
	slices.SortStableFunc(byTail, func(a, b int32) int { return cmp.Compare(f.jobs[b].tail, f.jobs[a].tail) })
	ranks := make([]int32, len(f.jobs))
	for rank, i := range byTail {
		ranks[i] = int32(rank)
	}
	return ranks
}

// local is a run's job in its flow.
func (p *packer) local(r run) int32 { return r.job - p.first[r.flow] }

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
		step := p.untilNext()
		if p.record != nil {
			p.record(span{now, now + step, p.runs})
		}
		now += step
		p.advance(step, now)
	}
	return p.done
}

// untilNext is the time to the next completion. It divides once.
func (p *packer) untilNext() float64 {
	left, slots := math.Inf(1), 1.0
	for _, r := range p.runs {
		if l := p.left[r.job]; l*slots < left*r.slots {
			left, slots = l, r.slots
		}
	}
	return left / slots
}

func (p *packer) reset(order []int32) {
	p.live, p.queue = p.live[:0], p.queue[:0]
	for _, i := range order {
		f, first := p.flows[i], p.first[i]
		p.ready[i] = p.ready[i][:0]
		p.open[i] = int32(len(f.jobs))
		p.done[i] = 0
		for k := range f.jobs {
			p.left[first+int32(k)], p.waits[first+int32(k)] = f.jobs[k].work, f.jobs[k].waits
		}
		for k := range f.jobs {
			if f.jobs[k].waits == 0 {
				p.release(i, first+int32(k))
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
	if p.left[k] > 0 {
		p.ready[i] = slices.Insert(p.ready[i], p.place(i, k), k)
		p.enter(i, k)
		return
	}
	p.stack = append(p.stack[:0], k)
	for len(p.stack) > 0 {
		k := p.stack[len(p.stack)-1]
		p.stack = p.stack[:len(p.stack)-1]
		p.open[i]--
		for _, next := range p.next[k] {
			next += p.first[i]
			if p.waits[next]--; p.waits[next] > 0 {
				continue
			}
			if p.left[next] == 0 {
				p.stack = append(p.stack, next)
				continue
			}
			p.ready[i] = slices.Insert(p.ready[i], p.place(i, next), next)
			p.enter(i, next)
		}
	}
}

// place is where a job is, or belongs, among its flow's ready ones.
func (p *packer) place(i, k int32) int {
	at, _ := slices.BinarySearchFunc(p.ready[i], p.ranks[k], func(other, rank int32) int {
		return cmp.Compare(p.ranks[other], rank)
	})
	return at
}

// inOrder is pack's rule.
func (p *packer) inOrder() {
	free := p.slots
	for _, i := range p.live {
		for _, k := range p.ready[i] {
			give := min(free, p.most[k])
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
		left := p.left[r.job] - r.slots*step
		if p.left[r.job] = left; left > p.small[r.job] {
			continue
		}
		p.left[r.job] = 0
		at := p.place(r.flow, r.job)
		p.ready[r.flow] = slices.Delete(p.ready[r.flow], at, at+1)
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
