package hmhs

import (
	"cmp"
	"math"
	"slices"

	"github.com/quernmr/quern/scheduler/heap"
)

// MinMin dispatches a stage by Algorithm 1. arrived and ends are by job, in seconds from now.
// It returns each machine's tasks in order, and raises ends to the end of each job's last task.
// If all jobs arrive at 0, this is Min-Min (section 3.2): the task and machine that complete
// first go first, again and again.
//
// Tasks of a job are alike, so a count stands for them. Each machine has a heap of the ready
// jobs by task time: the first one with tasks left completes first on that machine. This also
// holds for a job that is taken before its arrival (line 9), because it is the only ready job.
// A machine's key, its next completion, falls only when a job becomes ready.
func MinMin(machines []Machine, stages []Stage, arrived, ends []float64) [][]Run {
	d := newDispatch(machines, stages, arrived)
	runs := make([][]Run, len(machines))
	for d.tasksLeft > 0 {
		d.admit()
		m := d.first()
		job := m.ready.Items[0].job
		runs[m.number] = Add(runs[m.number], job)
		ends[job] = max(ends[job], m.key)
		d.assign(m, job)
	}
	return runs
}

// dispatch is the state of dispatching a stage.
type dispatch struct {
	stages    []Stage // Tasks counts the tasks left
	tasksLeft int     // tasks
	arrived   []float64
	waiting   []int // the paper's U: jobs that are not ready, by arrival
	ready     int   // size of the paper's Jw: ready jobs with tasks left

	machines []*machine // by number
	order    heap.Heap[*machine]
	earliest *machine // the machine that is free first; nil: unknown
}

// machine is a machine's state in a dispatch. Machines sort by key; H2 settles ties.
type machine struct {
	number int
	free   heap.Heap[float64]
	ready  heap.Heap[choice] // ready jobs
	key    float64           // the completion time of its first choice
}

// choice is a job with the time of its tasks on a machine.
type choice struct {
	seconds float64
	job     int
}

func (a choice) before(b choice) bool {
	return a.seconds < b.seconds || a.seconds == b.seconds && a.job < b.job
}

func machineBefore(a, b *machine) bool {
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
			d.tasksLeft += s.Tasks
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
	d.order = heap.New(slices.Clone(d.machines), machineBefore)
	return d
}

// admit makes jobs ready that have arrived when the first machine is free. If no job is ready, it
// admits the next one (lines 2 to 10 of Algorithm 1).
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
	if n == 0 && d.ready == 0 {
		n = 1
	}
	if n == 0 {
		return
	}
	for _, job := range d.waiting[:n] {
		for _, m := range d.machines {
			m.ready.Push(choice{d.stages[job].Seconds(m.number), job})
		}
	}
	d.ready += n
	d.waiting = d.waiting[n:]
	for _, m := range d.machines {
		d.rekey(m)
	}
	d.order = heap.New(d.order.Items, machineBefore)
}

// rekey drops jobs without tasks left from the front of a machine's choices, and updates its key.
func (d *dispatch) rekey(m *machine) {
	for len(m.ready.Items) > 0 && d.stages[m.ready.Items[0].job].Tasks == 0 {
		m.ready.Pop()
	}
	m.key = math.Inf(1)
	if len(m.ready.Items) > 0 {
		c := m.ready.Items[0]
		m.key = max(m.free.Items[0], d.arrived[c.job]) + c.seconds
	}
}

// first returns the machine with the earliest completion (line 16). A key may be too small,
// because the machine's first job may have no tasks left, but it is never too large.
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

// assign gives m, the first machine, a task of the job (lines 17 to 21).
func (d *dispatch) assign(m *machine, job int) {
	m.free.Items[0] = m.key
	m.free.Sift(0)
	if m == d.earliest {
		d.earliest = nil
	}
	d.tasksLeft--
	if d.stages[job].Tasks--; d.stages[job].Tasks == 0 {
		d.ready--
	}
	d.rekey(m)
	d.order.Sift(0)
}

// Simulate runs the tasks of machine number m in order. Each seconds the slot that is free first,
// but not before its job arrives. It raises ends as MinMin does. With a nil arrived all jobs
// are present.
func Simulate(machine Machine, m int, runs []Run, stages []Stage, arrived, ends []float64) {
	slots := heap.New(slices.Clone(machine.Free), earlier)
	for _, r := range runs {
		seconds, from := stages[r.Job].Seconds(m), 0.0
		if arrived != nil {
			from = arrived[r.Job]
		}
		for range r.Tasks {
			slots.Items[0] = max(slots.Items[0], from) + seconds
			ends[r.Job] = max(ends[r.Job], slots.Items[0])
			slots.Sift(0)
		}
	}
}
