package hmhs

import (
	"math"
	"slices"
)

// fifo takes the jobs in order and gives each next task to the slot that is free
// first, whatever its speed (section 4); no task starts before its job has arrived.
// O(T log M).
func fifo(machines []Machine, stages []Stage, order []int, arrived, ends []float64) [][]Run {
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
	slots := newHeap(all, func(a, b slot) bool {
		return a.free < b.free || a.free == b.free && a.machine < b.machine
	})
	runs := make([][]Run, len(machines))
	for _, job := range order {
		for range stages[job].Tasks {
			s := &slots.items[0]
			if arrived != nil {
				s.free = max(s.free, arrived[job])
			}
			s.free += stages[job].on(s.machine)
			ends[job] = max(ends[job], s.free)
			runs[s.machine] = add(runs[s.machine], job)
			slots.sift(0)
		}
	}
	return runs
}

// sufferage dispatches tasks that are all there: again and again the one that would
// lose most if it did not get the machine where it completes first, that is the
// difference between its two least completion times; ties by job. A job's two least
// change only when one of those machines is given a task, as completion times rise.
func sufferage(machines []Machine, stages []Stage) [][]Run {
	free, runs := make([]heap[float64], len(machines)), make([][]Run, len(machines))
	for m := range machines {
		free[m] = newHeap(slices.Clone(machines[m].Free), earlier)
	}
	type best struct {
		first, second int     // machines; -1: none
		lost          float64 // seconds
	}
	find := func(s *Stage) best {
		b, least, next := best{-1, -1, 0}, math.Inf(1), math.Inf(1)
		for m := range machines {
			switch c := free[m].items[0] + s.on(m); {
			case c < least:
				b.second, next = b.first, least
				b.first, least = m, c
			case c < next:
				b.second, next = m, c
			}
		}
		b.lost = next - least
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
			if n > 0 && (job < 0 || bests[i].lost > bests[job].lost) {
				job = i
			}
		}
		if job < 0 {
			return runs
		}
		m := bests[job].first
		free[m].items[0] += stages[job].on(m)
		free[m].sift(0)
		runs[m] = add(runs[m], job)
		left[job]--
		for i, n := range left {
			if n > 0 && (bests[i].first == m || bests[i].second == m) {
				bests[i] = find(&stages[i])
			}
		}
	}
}
