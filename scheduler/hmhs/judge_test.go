package hmhs_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/scheduler/hmhs"
	"github.com/quernmr/quern/scheduler/hmhs/hmhstest"
)

// firstPair returns the task and machine that complete first, with ties as in H2.
func firstPair(s *hmhstest.Reference, tasks []int, stages []hmhs.Stage, machines int, arrived []float64) (task, machine int, end float64) {
	end, seconds := math.Inf(1), 0.0
	for at, job := range tasks {
		for m := range machines {
			taskSeconds := stages[job].Seconds(m)
			completion := max(s.Available(m), arrived[job]) + taskSeconds
			if completion < end || completion == end && taskSeconds < seconds {
				task, machine, end, seconds = at, m, completion, taskSeconds
			}
		}
	}
	return task, machine, end
}

// slowMinMin dispatches by Min-Min as section 3.2 describes it.
func slowMinMin(machines []hmhs.Machine, stages []hmhs.Stage) *hmhstest.Reference {
	s := hmhstest.NewReference(machines, len(stages))
	for tasks := hmhstest.Tasks(stages); len(tasks) > 0; {
		at, m, end := firstPair(s, tasks, stages, len(machines), make([]float64, len(stages)))
		s.Assign(m, tasks[at], end)
		tasks = slices.Delete(tasks, at, at+1)
	}
	return s
}

// slowDynamic dispatches by Algorithm 1, line by line. Numbers in comments are its lines.
func slowDynamic(machines []hmhs.Machine, stages []hmhs.Stage, arrived []float64) *hmhstest.Reference {
	s := hmhstest.NewReference(machines, len(stages))
	var u, jw []int
	left := make([]int, len(stages))
	for i, stage := range stages {
		if left[i] = stage.Tasks; left[i] > 0 {
			u = append(u, i)
		}
	}
	for len(u) > 0 || len(jw) > 0 { // 1
		eat := math.Inf(1) // 2
		for m := range machines {
			eat = min(eat, s.Available(m))
		}
		for _, i := range slices.Clone(u) { // 3 to 7
			if arrived[i] <= eat {
				jw = append(jw, i)
				u = slices.DeleteFunc(u, func(j int) bool { return j == i })
			}
		}
		if len(jw) == 0 { // 8 to 10
			first := slices.MinFunc(u, func(a, b int) int {
				return int(math.Copysign(1, arrived[a]-arrived[b]))*2 + map[bool]int{true: -1, false: 1}[a < b]
			})
			jw = append(jw, first)
			u = slices.DeleteFunc(u, func(j int) bool { return j == first })
		}
		slices.Sort(jw)
		at, m, end := firstPair(s, jw, stages, len(machines), arrived) // 11 to 16
		s.Assign(m, jw[at], end)                                       // 17, 18
		if left[jw[at]]--; left[jw[at]] == 0 {                         // 19 to 21
			jw = slices.Delete(jw, at, at+1)
		}
	}
	return s
}

func checkSame(t *rapid.T, name string, runs, want [][]hmhs.Run, ends, wantEnds []float64) {
	if !slices.EqualFunc(runs, want, slices.Equal) || !slices.Equal(ends, wantEnds) {
		t.Fatalf("%s: got %v with ends %v, want %v with ends %v", name, runs, ends, want, wantEnds)
	}
}

// TestDispatchers compares MinMin with dispatchers that assign task by task.
func TestDispatchers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := hmhstest.Draw(t, 5, 6, rapid.Bool().Draw(t, "whole"))
		stages, n := b.MapStages(), len(b.Jobs)
		ends, want := make([]float64, n), slowMinMin(b.Maps, stages)
		checkSame(t, "Min-Min", hmhs.MinMin(b.Maps, stages, make([]float64, n), ends), want.Runs, ends, want.Ends)

		arrived := make([]float64, n)
		for i := range arrived {
			arrived[i] = float64(rapid.IntRange(0, 20).Draw(t, "arrived"))
		}
		ends, want = make([]float64, n), slowDynamic(b.Maps, stages, arrived)
		checkSame(t, "Dynamic-Min-Min", hmhs.MinMin(b.Maps, stages, arrived, ends), want.Runs, ends, want.Ends)
	})
}
