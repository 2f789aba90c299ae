package hmhs

import (
	"cmp"
	"math"
	"slices"

	"github.com/quernmr/quern/scheduler/heap"
	"github.com/quernmr/quern/scheduler/hmhs"
)

// fifo takes the jobs in order and gives each next task to the slot that is free first,
// whatever its speed (section 4). No task starts before its job has arrived. O(T log M).
func fifo(machines []hmhs.Machine, stages []hmhs.Stage, order []int, arrived, ends []float64) [][]hmhs.Run {
	type slot struct {
		free    float64
		machine int
	}
	var all []slot
	for m, machine := range machines {
		for _, at := range machine.Free {
			all = append(all, slot{at, m})
		}
	}
	slots := heap.New(all, func(a, b slot) bool {
		return a.free < b.free || a.free == b.free && a.machine < b.machine
	})
	runs := make([][]hmhs.Run, len(machines))
	for _, job := range order {
		for range stages[job].Tasks {
			s := &slots.Items[0]
			if arrived != nil {
				s.free = max(s.free, arrived[job])
			}
			s.free += stages[job].Seconds(s.machine)
			ends[job] = max(ends[job], s.free)
			runs[s.machine] = hmhs.Add(runs[s.machine], job)
			slots.Sift(0)
		}
	}
	return runs
}

// sufferage dispatches tasks that are all present. The next task is always the task that would
// lose most without its best machine: the difference between its two least completion times.
// Ties go to the first job. Completion times only rise, so a job's two least times change only
// when one of their machines gets a task.
func sufferage(machines []hmhs.Machine, stages []hmhs.Stage) [][]hmhs.Run {
	free, runs := make([]heap.Heap[float64], len(machines)), make([][]hmhs.Run, len(machines))
	for m := range machines {
		free[m] = heap.New(slices.Clone(machines[m].Free), cmp.Less[float64])
	}
	type best struct {
		first, second int     // machines; -1: none
		loss          float64 // seconds without the first
	}
	find := func(s *hmhs.Stage) best {
		b, least, next := best{-1, -1, 0}, math.Inf(1), math.Inf(1)
		for m := range machines {
			switch c := free[m].Items[0] + s.Seconds(m); {
			case c < least:
				b.second, next = b.first, least
				b.first, least = m, c
			case c < next:
				b.second, next = m, c
			}
		}
		b.loss = next - least
		return b
	}
	left, bests := make([]int, len(stages)), make([]best, len(stages))
	for i := range stages {
		if left[i] = stages[i].Tasks; left[i] > 0 {
			bests[i] = find(&stages[i])
		}
	}
	for {
		job := -1
		for i, n := range left {
			if n > 0 && (job < 0 || bests[i].loss > bests[job].loss) {
				job = i
			}
		}
		if job < 0 {
			return runs
		}
		m := bests[job].first
		free[m].Items[0] += stages[job].Seconds(m)
		free[m].Sift(0)
		runs[m] = hmhs.Add(runs[m], job)
		left[job]--
		for i, n := range left {
			if n > 0 && (bests[i].first == m || bests[i].second == m) {
				bests[i] = find(&stages[i])
			}
		}
	}
}
