package hmhs

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/scheduler/hmhs"
	"github.com/quernmr/quern/scheduler/hmhs/hmhstest"
)

// slowFIFO searches all slots for the first free slot, for each task.
func slowFIFO(machines []hmhs.Machine, stages []hmhs.Stage, order []int, arrived []float64) *hmhstest.Reference {
	s := hmhstest.NewReference(machines, len(stages))
	for _, job := range order {
		for range stages[job].Tasks {
			m := 0
			for k := range machines {
				if s.Available(k) < s.Available(m) {
					m = k
				}
			}
			s.Assign(m, job, max(s.Available(m), arrived[job])+stages[job].Seconds(m))
		}
	}
	return s
}

// johnson orders jobs by the steps of section 3.1.
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

// TestFIFO compares the heap of slots with a search of all slots.
func TestFIFO(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := hmhstest.Draw(t, 5, 6, rapid.Bool().Draw(t, "whole"))
		stages, arrived := b.MapStages(), make([]float64, len(b.Jobs))
		for i := range arrived {
			arrived[i] = float64(rapid.IntRange(0, 20).Draw(t, "arrived"))
		}
		order := rapid.Permutation(priOrder(b)).Draw(t, "order")
		ends, want := make([]float64, len(b.Jobs)), slowFIFO(b.Maps, stages, order, arrived)
		runs := fifo(b.Maps, stages, order, arrived, ends)
		if !slices.EqualFunc(runs, want.Runs, slices.Equal) || !slices.Equal(ends, want.Ends) {
			t.Fatalf("%v ends %v, task by task %v ends %v", runs, ends, want.Runs, want.Ends)
		}
	})
}

// TestSequence: Pri orders as Johnson's steps do, up to jobs of equal V.
func TestSequence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := hmhstest.Draw(t, 8, 3, true)
		var m, r []float64
		for i := range b.Jobs {
			m, r = append(m, work(&b.Jobs[i].Map)), append(r, work(&b.Jobs[i].Reduce))
		}
		key := func(i int) [2]float64 {
			if m[i] > r[i] {
				return [2]float64{1, -min(m[i], r[i])}
			}
			return [2]float64{0, min(m[i], r[i])}
		}
		got, want := priOrder(b), johnson(m, r)
		if !slices.EqualFunc(got, want, func(a, b int) bool { return key(a) == key(b) }) {
			t.Fatalf("Pri orders %v, Johnson %v; maps %v, reduces %v", got, want, m, r)
		}
	})
}

// TestJohnsonIsOptimal: on one map and one reduce slot with a task a stage, no other order ends
// earlier.
func TestJohnsonIsOptimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := hmhstest.Draw(t, 5, 1, true)
		one := []hmhs.Machine{{Free: []float64{0}}}
		b.Maps, b.Reduces = one, one
		for i := range b.Jobs {
			b.Jobs[i].Map.Tasks, b.Jobs[i].Reduce.Tasks = 1, 1
			b.Jobs[i].Map.Factor, b.Jobs[i].Reduce.Factor = []float64{1}, []float64{1}
		}
		s, err := solve(b, fifoPri)
		if err != nil {
			t.Fatal(err)
		}
		order := make([]int, len(b.Jobs))
		for i := range order {
			order[i] = i
		}
		permute(order, 0, func() {
			mapped, ends := make([]float64, len(order)), make([]float64, len(order))
			fifo(one, b.MapStages(), order, nil, mapped)
			fifo(one, b.ReduceStages(), order, mapped, ends)
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
