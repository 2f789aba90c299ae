package hmhs

import (
	"cmp"
	"math"
	"slices"

	"github.com/quernmr/quern/scheduler/heap"
)

// MinMin dispatches a stage by Algorithm 1, and returns each machine's tasks in order
// and raises the jobs' ends. Where everything has arrived at 0 it is Min-Min (section
// 3.2): of all tasks and machines, the pair that completes first, again and again.
//
// Tasks of a job are alike, so a job is a count and each machine a heap of jobs by the
// time of a task: the first that has tasks left completes first there. Only a job that
// was taken because none had arrived (line 9) can have arrived after some machine is
// free, and then it is the only one at hand; so the first of the heap is right for it
// too, and keys of machines rise except when a job comes to hand.
func MinMin(machines []Machine, stages []Stage, arrived, ends []float64) [][]Run {
	d := newDispatch(machines, stages, arrived)
	runs := make([][]Run, len(machines))
	for d.left > 0 {
		d.admit()
		m := d.first()
		job := m.ready.Items[0].job
		runs[m.number] = Add(runs[m.number], job)
		ends[job] = max(ends[job], m.key)
		d.assign(m, job)
	}
	return runs
}

// dispatch is a stage being dispatched.
type dispatch struct {
	stages  []Stage // Tasks counts down
	left    int     // tasks
	arrived []float64
	waiting []int // jobs not at hand yet (U), by arrival
	hand    int   // jobs at hand that have tasks left (Jw)

	machines []*machine // by number
	order    heap.Heap[*machine]
	earliest *machine // the machine that is free first; nil: to be found
}

// machine is a machine's part in a dispatch. Its order among machines is by key, then
// as H2 says.
type machine struct {
	number int
	free   heap.Heap[float64]
	ready  heap.Heap[choice] // jobs at hand
	key    float64           // when its first choice would complete
}

type choice struct {
	takes float64
	job   int
}

func (a choice) before(b choice) bool {
	return a.takes < b.takes || a.takes == b.takes && a.job < b.job
}

func before(a, b *machine) bool {
	if a.key != b.key || a.key == math.Inf(1) {
		return a.key < b.key
	}
	x, y := a.ready.Items[0], b.ready.Items[0]
	return x.before(y) || x == y && a.number < b.number
}

func newDispatch(machines []Machine, stages []Stage, arrived []float64) *dispatch {
	d := &dispatch{stages: slices.Clone(stages), arrived: arrived}
	for i, s := range stages {
		if s.Tasks > 0 {
			d.left += s.Tasks
			d.waiting = append(d.waiting, i)
		}
	}
	slices.SortFunc(d.waiting, func(a, b int) int {
		return cmp.Or(cmp.Compare(arrived[a], arrived[b]), cmp.Compare(a, b))
	})
	for i, m := range machines {
		d.machines = append(d.machines, &machine{
			number: i,
			free:   heap.New(slices.Clone(m.Free), earlier),
			ready:  heap.New(make([]choice, 0, len(d.waiting)), choice.before),
			key:    math.Inf(1),
		})
	}
	d.order = heap.New(slices.Clone(d.machines), before)
	return d
}

// admit is lines 2 to 10.
func (d *dispatch) admit() {
	if len(d.waiting) == 0 {
		return
	}
	if d.earliest == nil {
		d.earliest = slices.MinFunc(d.machines, func(a, b *machine) int { return cmp.Compare(a.free.Items[0], b.free.Items[0]) })
	}
	n := 0
	for n < len(d.waiting) && d.arrived[d.waiting[n]] <= d.earliest.free.Items[0] {
		n++
	}
	if n == 0 && d.hand == 0 {
		n = 1
	}
	if n == 0 {
		return
	}
	for _, job := range d.waiting[:n] {
		for _, m := range d.machines {
			m.ready.Push(choice{d.stages[job].On(m.number), job})
		}
	}
	d.hand += n
	d.waiting = d.waiting[n:]
	for _, m := range d.machines {
		d.rekey(m)
	}
	d.order = heap.New(d.order.Items, before)
}

// rekey drops jobs without tasks left from the front of a machine's choices.
func (d *dispatch) rekey(m *machine) {
	for len(m.ready.Items) > 0 && d.stages[m.ready.Items[0].job].Tasks == 0 {
		m.ready.Pop()
	}
	m.key = math.Inf(1)
	if len(m.ready.Items) > 0 {
		c := m.ready.Items[0]
		m.key = max(m.free.Items[0], d.arrived[c.job]) + c.takes
	}
}

// first is line 16: the machine of the least completion time. A machine whose first
// job has run out since may be ahead of its place, never behind.
func (d *dispatch) first() *machine {
	for {
		m := d.order.Items[0]
		if d.stages[m.ready.Items[0].job].Tasks > 0 {
			return m
		}
		d.rekey(m)
		d.order.Sift(0)
	}
}

// assign is lines 17 to 21; m is the first.
func (d *dispatch) assign(m *machine, job int) {
	m.free.Items[0] = m.key
	m.free.Sift(0)
	if m == d.earliest {
		d.earliest = nil
	}
	d.left--
	if d.stages[job].Tasks--; d.stages[job].Tasks == 0 {
		d.hand--
	}
	d.rekey(m)
	d.order.Sift(0)
}

// Play runs a machine's tasks in order, each in the slot that is free first but not
// before its job has arrived, and raises the jobs' ends. Without arrived all are there.
func Play(machine Machine, m int, runs []Run, stages []Stage, arrived, ends []float64) {
	slots := heap.New(slices.Clone(machine.Free), earlier)
	for _, r := range runs {
		takes, from := stages[r.Job].On(m), 0.0
		if arrived != nil {
			from = arrived[r.Job]
		}
		for range r.Tasks {
			slots.Items[0] = max(slots.Items[0], from) + takes
			ends[r.Job] = max(ends[r.Job], slots.Items[0])
			slots.Sift(0)
		}
	}
}
