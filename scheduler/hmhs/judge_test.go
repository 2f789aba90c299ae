package hmhs_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/scheduler/hmhs"
	"github.com/quernmr/quern/scheduler/hmhs/hmhstest"
)

// least is the pair of task and machine that completes first, with the ties of H2.
func firstPair(s *hmhstest.Reference, tasks []int, stages []hmhs.Stage, machines int, arrived []float64) (task, machine int, end float64) {
	end, takes := math.Inf(1), 0.0
	for at, job := range tasks {
		for m := range machines {
			e := stages[job].Seconds(m)
			c := max(s.Available(m), arrived[job]) + e
			if c < end || c == end && e < takes {
				task, machine, end, takes = at, m, c, e
			}
		}
	}
	return task, machine, end
}

// slowMinMin is section 3.2's Min-Min.
func slowMinMin(machines []hmhs.Machine, stages []hmhs.Stage) *hmhstest.Reference {
	s := hmhstest.NewReference(machines, len(stages))
	for tasks := hmhstest.Tasks(stages); len(tasks) > 0; {
		at, m, end := firstPair(s, tasks, stages, len(machines), make([]float64, len(stages)))
		s.Assign(m, tasks[at], end)
		tasks = slices.Delete(tasks, at, at+1)
	}
	return s
}

// slowDynamic is Algorithm 1 line by line.
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

func same(t *rapid.T, what string, runs, want [][]hmhs.Run, ends, wantEnds []float64) {
	if !slices.EqualFunc(runs, want, slices.Equal) || !slices.Equal(ends, wantEnds) {
		t.Fatalf("%s: %v ends %v, task by task %v ends %v", what, runs, ends, want, wantEnds)
	}
}

// TestDispatchers compares the fast dispatchers with the task by task ones.
func TestDispatchers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := hmhstest.Draw(t, 5, 6, rapid.Bool().Draw(t, "whole"))
		stages, n := b.MapStages(), len(b.Jobs)
		ends, want := make([]float64, n), slowMinMin(b.Maps, stages)
		same(t, "Min-Min", hmhs.MinMin(b.Maps, stages, make([]float64, n), ends), want.Runs, ends, want.Ends)

		arrived := make([]float64, n)
		for i := range arrived {
			arrived[i] = float64(rapid.IntRange(0, 20).Draw(t, "arrived"))
		}
		ends, want = make([]float64, n), slowDynamic(b.Maps, stages, arrived)
		same(t, "Dynamic-Min-Min", hmhs.MinMin(b.Maps, stages, arrived, ends), want.Runs, ends, want.Ends)
	})
}
