package hmhs

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// draw makes a small batch; whole times make ties frequent.
func draw(t *rapid.T, jobs, tasks int, whole bool) *Batch {
	number := func(label string) float64 {
		if whole {
			return float64(rapid.IntRange(1, 4).Draw(t, label))
		}
		return rapid.Float64Range(0.1, 10).Draw(t, label)
	}
	machines := func(label string) []Machine {
		all := make([]Machine, rapid.IntRange(1, 4).Draw(t, label))
		for m := range all {
			for range rapid.IntRange(1, 2).Draw(t, "slots") {
				all[m].Free = append(all[m].Free, float64(rapid.IntRange(0, 3).Draw(t, "free")))
			}
		}
		return all
	}
	b := &Batch{Maps: machines("maps"), Reduces: machines("reduces")}
	stage := func(machines []Machine) Stage {
		s := Stage{Tasks: rapid.IntRange(0, tasks).Draw(t, "tasks"), Time: number("time")}
		for range machines {
			s.Factor = append(s.Factor, number("factor"))
		}
		return s
	}
	for range rapid.IntRange(0, jobs).Draw(t, "jobs") {
		b.Jobs = append(b.Jobs, Job{Map: stage(b.Maps), Reduce: stage(b.Reduces)})
	}
	return b
}

// slow is a dispatch written down task by task: no heaps, no counts.
type slow struct {
	free [][]float64 // by machine and slot
	runs [][]Run
	ends []float64
}

func newSlow(machines []Machine, jobs int) *slow {
	s := &slow{runs: make([][]Run, len(machines)), ends: make([]float64, jobs)}
	for _, m := range machines {
		s.free = append(s.free, slices.Clone(m.Free))
	}
	return s
}

func (s *slow) available(m int) float64 { return slices.Min(s.free[m]) }

func (s *slow) give(m, job int, end float64) {
	s.free[m][slices.Index(s.free[m], s.available(m))] = end
	s.runs[m] = add(s.runs[m], job)
	s.ends[job] = max(s.ends[job], end)
}

// least is the pair of task and machine that completes first, as H2 breaks ties.
func (s *slow) least(tasks []int, stages []Stage, arrived []float64) (task, machine int, end float64) {
	end, takes := math.Inf(1), 0.0
	for at, job := range tasks {
		for m := range s.free {
			e := stages[job].on(m)
			c := max(s.available(m), arrived[job]) + e
			if c < end || c == end && e < takes {
				task, machine, end, takes = at, m, c, e
			}
		}
	}
	return task, machine, end
}

// tasksOf lists a stage's tasks, each by its job.
func tasksOf(stages []Stage) []int {
	var tasks []int
	for i, s := range stages {
		tasks = append(tasks, slices.Repeat([]int{i}, s.Tasks)...)
	}
	return tasks
}

// slowMinMin is section 3.2's Min-Min.
func slowMinMin(machines []Machine, stages []Stage) *slow {
	s := newSlow(machines, len(stages))
	for tasks := tasksOf(stages); len(tasks) > 0; {
		at, m, end := s.least(tasks, stages, make([]float64, len(stages)))
		s.give(m, tasks[at], end)
		tasks = slices.Delete(tasks, at, at+1)
	}
	return s
}

// slowDynamic is Algorithm 1 by its lines.
func slowDynamic(machines []Machine, stages []Stage, arrived []float64) *slow {
	s := newSlow(machines, len(stages))
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
			eat = min(eat, s.available(m))
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
		at, m, end := s.least(jw, stages, arrived) // 11 to 16
		s.give(m, jw[at], end)                     // 17, 18
		if left[jw[at]]--; left[jw[at]] == 0 {     // 19 to 21
			jw = slices.Delete(jw, at, at+1)
		}
	}
	return s
}

// slowFIFO looks for the slot that is free first, task by task.
func slowFIFO(machines []Machine, stages []Stage, order []int, arrived []float64) *slow {
	s := newSlow(machines, len(stages))
	for _, job := range order {
		for range stages[job].Tasks {
			m := 0
			for k := range machines {
				if s.available(k) < s.available(m) {
					m = k
				}
			}
			s.give(m, job, max(s.available(m), arrived[job])+stages[job].on(m))
		}
	}
	return s
}

// johnson is the steps of section 3.1.
func johnson(m, r []float64) []int {
	order := make([]int, len(m))
	for i := range order {
		order[i] = i
	}
	v := func(i int) float64 { return min(m[i], r[i]) }
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case v(a) < v(b):
			return -1
		case v(a) > v(b):
			return 1
		}
		return 0
	})
	var first, second []int
	for _, i := range order {
		if m[i] <= r[i] {
			first = append(first, i)
		} else {
			second = append([]int{i}, second...)
		}
	}
	return append(first, second...)
}

func same(t *rapid.T, what string, runs, want [][]Run, ends, wantEnds []float64) {
	if !slices.EqualFunc(runs, want, slices.Equal) || !slices.Equal(ends, wantEnds) {
		t.Fatalf("%s: %v ends %v, task by task %v ends %v", what, runs, ends, want, wantEnds)
	}
}

// TestDispatchers: the fast ones do the same as those written down task by task.
func TestDispatchers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := draw(t, 5, 6, rapid.Bool().Draw(t, "whole"))
		stages, n := b.stages(mapOf), len(b.Jobs)
		ends, want := make([]float64, n), slowMinMin(b.Maps, stages)
		same(t, "Min-Min", minMin(b.Maps, stages, make([]float64, n), ends), want.runs, ends, want.ends)

		arrived := make([]float64, n)
		for i := range arrived {
			arrived[i] = float64(rapid.IntRange(0, 20).Draw(t, "arrived"))
		}
		ends, want = make([]float64, n), slowDynamic(b.Maps, stages, arrived)
		same(t, "Dynamic-Min-Min", minMin(b.Maps, stages, arrived, ends), want.runs, ends, want.ends)

		order := rapid.Permutation(Sequence(b)).Draw(t, "order")
		ends, want = make([]float64, n), slowFIFO(b.Maps, stages, order, arrived)
		same(t, "FIFO", fifo(b.Maps, stages, order, arrived, ends), want.runs, ends, want.ends)
	})
}

// TestSequence: Pri orders as Johnson's steps do, up to jobs of equal V.
func TestSequence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := draw(t, 8, 3, true)
		var m, r []float64
		for i := range b.Jobs {
			m, r = append(m, b.Jobs[i].Map.work()), append(r, b.Jobs[i].Reduce.work())
		}
		key := func(i int) [2]float64 {
			if m[i] > r[i] {
				return [2]float64{1, -min(m[i], r[i])}
			}
			return [2]float64{0, min(m[i], r[i])}
		}
		got, want := Sequence(b), johnson(m, r)
		if !slices.EqualFunc(got, want, func(a, b int) bool { return key(a) == key(b) }) {
			t.Fatalf("Pri orders %v, Johnson %v; maps %v, reduces %v", got, want, m, r)
		}
	})
}

// TestJohnsonIsOptimal: on one map and one reduce slot with a task a stage, no other
// order ends earlier.
func TestJohnsonIsOptimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := draw(t, 5, 1, true)
		one := []Machine{{Free: []float64{0}}}
		b.Maps, b.Reduces = one, one
		for i := range b.Jobs {
			b.Jobs[i].Map.Tasks, b.Jobs[i].Reduce.Tasks = 1, 1
			b.Jobs[i].Map.Factor, b.Jobs[i].Reduce.Factor = []float64{1}, []float64{1}
		}
		s, err := Solve(b, FIFOPri)
		if err != nil {
			t.Fatal(err)
		}
		order := make([]int, len(b.Jobs))
		for i := range order {
			order[i] = i
		}
		permute(order, 0, func() {
			mapped, ends := make([]float64, len(order)), make([]float64, len(order))
			fifo(one, b.stages(mapOf), order, nil, mapped)
			fifo(one, b.stages(reduceOf), order, mapped, ends)
			if len(ends) > 0 && slices.Max(ends) < s.Makespan {
				t.Fatalf("%v ends at %v, by Pri at %v", order, slices.Max(ends), s.Makespan)
			}
		})
	})
}

func permute(order []int, from int, visit func()) {
	if from == len(order) {
		visit()
		return
	}
	for i := from; i < len(order); i++ {
		order[from], order[i] = order[i], order[from]
		permute(order, from+1, visit)
		order[from], order[i] = order[i], order[from]
	}
}
