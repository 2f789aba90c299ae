package optimum

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/flex"
)

// problem draws a problem of at most maxJobs jobs under any metric. With allSlots every job can
// use all slots.
func problem(t *rapid.T, maxJobs int, allSlots bool) *flex.Problem {
	m := rapid.SampledFrom(scheduler.Metrics()).Draw(t, "metric")
	p := &flex.Problem{Slots: rapid.IntRange(1, 21).Draw(t, "slots"), Aggregate: m.Aggregate}
	spare := p.Slots
	for range rapid.IntRange(0, maxJobs).Draw(t, "jobs") {
		j := flex.Job{Work: float64(rapid.IntRange(1, 61).Draw(t, "work")), Max: p.Slots}
		if !allSlots {
			j.Max = rapid.IntRange(1, 26).Draw(t, "max")
		}
		j.Min = rapid.IntRange(0, min(8, j.Max, spare)).Draw(t, "min")
		spare -= j.Min
		goal := scheduler.Goal{
			Weight:   float64(rapid.IntRange(0, 3).Draw(t, "weight")),
			Deadline: time.Duration(rapid.IntRange(0, 20).Draw(t, "deadline")) * time.Second,
		}
		for k := range rapid.IntRange(0, 3).Draw(t, "steps") {
			goal.Steps = append(goal.Steps, scheduler.Step{By: time.Duration(3+4*k) * time.Second, Cost: float64(1 + k)})
		}
		j.Cost = m.Cost(goal, j.Work, 5*time.Second) // some deadlines are in the past
		p.Jobs = append(p.Jobs, j)
	}
	return p
}

// TestOptimum compares both methods with each other and with every ordering.
func TestOptimum(t *testing.T) {
	for _, allSlots := range []bool{false, true} {
		rapid.Check(t, func(t *rapid.T) {
			p := problem(t, 5, allSlots)
			got, err := Value(p)
			if err != nil {
				t.Fatal(err)
			}
			best := math.Inf(1)
			order := make([]int, len(p.Jobs))
			for i := range order {
				order[i] = i
			}
			permute(order, 0, func() { best = min(best, flex.Pack(p, order).Value) })
			if math.Abs(got-best) > 1e-9*max(1, math.Abs(best)) {
				t.Fatalf("the optimum of %+v is %v, not %v", p, best, got)
			}
		})
	}
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

// TestFLEX: on small problems of every metric flex.Solve finds the best ordering, or a better
// allocation that is not an ordering if maxima are below the slots.
func TestFLEX(t *testing.T) {
	for _, allSlots := range []bool{false, true} {
		rapid.Check(t, func(t *rapid.T) {
			p := problem(t, 6, allSlots)
			best, err := Value(p)
			if err != nil {
				t.Fatal(err)
			}
			s, err := flex.Solve(p)
			if err != nil {
				t.Fatal(err)
			}
			rounding := 1e-7 * max(1, math.Abs(best))
			if s.Value > best+rounding || allSlots && s.Value < best-rounding {
				t.Fatalf("%+v: %v by %s, the optimum is %v", p, s.Value, s.Method, best)
			}
			if v := p.Value(s.Ends); math.Abs(v-s.Value) > rounding {
				t.Fatalf("the schedule costs %v, but its Value is %v", v, s.Value)
			}
			without, err := flex.Orderings(p)
			if err != nil || without.Value < s.Value-rounding {
				t.Fatalf("without search %v by %s: %v; with it %v by %s", without.Value, without.Method, err, s.Value, s.Method)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	p := &flex.Problem{Slots: 1, Jobs: []flex.Job{{Work: 1, Min: 2, Max: 1, Cost: scheduler.Cost{Weight: 1}}}}
	if v, err := Value(p); err == nil {
		t.Errorf("%+v has an optimum of %v", p, v)
	}
}
