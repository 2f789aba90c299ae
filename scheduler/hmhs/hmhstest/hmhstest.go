// Package hmhstest has random batches and a simple reference dispatcher for tests of
// dispatchers.
package hmhstest

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/scheduler/hmhs"
)

// Draw returns a random batch of up to jobs jobs, with up to tasks maps and reduces each. With
// whole, times are whole numbers, so that ties are frequent.
func Draw(t *rapid.T, jobs, tasks int, whole bool) *hmhs.Batch {
	number := func(label string) float64 {
		if whole {
			return float64(rapid.IntRange(1, 4).Draw(t, label))
		}
		return rapid.Float64Range(0.1, 10).Draw(t, label)
	}
	machines := func(label string) []hmhs.Machine {
		all := make([]hmhs.Machine, rapid.IntRange(1, 4).Draw(t, label))
		for m := range all {
			for range rapid.IntRange(1, 2).Draw(t, "slots") {
				all[m].Free = append(all[m].Free, float64(rapid.IntRange(0, 3).Draw(t, "free")))
			}
		}
		return all
	}
	b := &hmhs.Batch{Maps: machines("maps"), Reduces: machines("reduces")}
	stage := func(machines []hmhs.Machine) hmhs.Stage {
		s := hmhs.Stage{Tasks: rapid.IntRange(0, tasks).Draw(t, "tasks"), Time: number("time")}
		for range machines {
			s.Factor = append(s.Factor, number("factor"))
		}
		return s
	}
	for range rapid.IntRange(0, jobs).Draw(t, "jobs") {
		b.Jobs = append(b.Jobs, hmhs.Job{Map: stage(b.Maps), Reduce: stage(b.Reduces)})
	}
	return b
}

// Reference is a slow dispatcher without heaps and counts: it assigns task by task.
type Reference struct {
	free [][]float64 // by machine and slot
	Runs [][]hmhs.Run
	Ends []float64
}

// NewReference returns a dispatcher without tasks.
func NewReference(machines []hmhs.Machine, jobs int) *Reference {
	s := &Reference{Runs: make([][]hmhs.Run, len(machines)), Ends: make([]float64, jobs)}
	for _, m := range machines {
		s.free = append(s.free, slices.Clone(m.Free))
	}
	return s
}

// Available returns the time at which a machine has a free slot.
func (s *Reference) Available(m int) float64 { return slices.Min(s.free[m]) }

// Assign adds a task of the job to a machine. The task ends at end.
func (s *Reference) Assign(m, job int, end float64) {
	s.free[m][slices.Index(s.free[m], s.Available(m))] = end
	s.Runs[m] = hmhs.Add(s.Runs[m], job)
	s.Ends[job] = max(s.Ends[job], end)
}

// Tasks lists the tasks of stages, each by the index of its job.
func Tasks(stages []hmhs.Stage) []int {
	var tasks []int
	for i, s := range stages {
		tasks = append(tasks, slices.Repeat([]int{i}, s.Tasks)...)
	}
	return tasks
}
