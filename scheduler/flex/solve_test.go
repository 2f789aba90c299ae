package flex_test

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/flex"
	"github.com/quernmr/quern/scheduler/flex/optimum"
	"github.com/quernmr/quern/wire"
)

func seconds(x float64) time.Duration { return time.Duration(math.Round(x * float64(time.Second))) }

// snapshots draws a snapshot under any metric; some of it is past, unmeasured, or
// more than there are slots for.
func snapshots(t *rapid.T, most int) scheduler.Snapshot {
	s := scheduler.Snapshot{
		Phase: wire.Map, Slots: rapid.IntRange(0, 20).Draw(t, "slots"), Now: seconds(5),
		Metric: rapid.SampledFrom(scheduler.Metrics()).Draw(t, "metric"),
	}
	for n := range rapid.IntRange(0, most).Draw(t, "jobs") {
		j := scheduler.Job{
			ID: wire.JobID{Start: 1, N: n + 1}, Arrived: time.Duration(rapid.IntRange(-3, 3).Draw(t, "arrived")),
			Max: rapid.IntRange(0, 25).Draw(t, "max"), Min: rapid.IntRange(0, 8).Draw(t, "min"),
			Work: float64(rapid.IntRange(0, 60).Draw(t, "work")),
		}
		j.Goal.Weight = float64(rapid.IntRange(0, 3).Draw(t, "weight"))
		j.Goal.Deadline = seconds(float64(rapid.IntRange(0, 20).Draw(t, "deadline")))
		if rapid.Bool().Draw(t, "own") {
			j.Goal.Penalty = scheduler.Penalty(rapid.IntRange(0, int(scheduler.SLA)).Draw(t, "penalty"))
		}
		for k := range rapid.IntRange(0, 3).Draw(t, "steps") {
			j.Goal.Steps = append(j.Goal.Steps, scheduler.Step{By: seconds(float64(3 + 4*k)), Cost: float64(1 + k)})
		}
		s.Jobs = append(s.Jobs, j)
	}
	return s
}

// TestPolicy: plans are valid, keep the minima, leave no slack that a job could use,
// do not depend on the order of the jobs given, and do not touch the snapshot.
func TestPolicy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := snapshots(t, 8)
		before := slices.Clone(s.Jobs)
		plan, err := flex.Policy{}.Plan(s)
		if err == nil {
			err = plan.Validate(s)
		}
		if err == nil {
			err = plan.KeepsMinima(s)
		}
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(s.Jobs, before) {
			t.Fatal("the snapshot has changed")
		}
		given, useful := 0, 0
		for _, target := range plan.Targets {
			given += target.Slots
			if math.IsNaN(target.End) || math.IsInf(target.End, 0) {
				t.Fatalf("%+v", target)
			}
		}
		for _, j := range s.Jobs {
			useful += j.Max
		}
		if given != min(s.Slots, useful) {
			t.Fatalf("%d slots given of %d, useful are %d", given, s.Slots, useful)
		}
		slices.Reverse(s.Jobs)
		if again, err := (flex.Policy{}).Plan(s); err != nil || !reflect.DeepEqual(again, plan) {
			t.Fatalf("%+v, and the other way round %+v (%v)", plan, again, err)
		}
	})
}

// TestAddOn: FAIR with FLEX's allocations as minima gives FLEX's allocations.
func TestAddOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := snapshots(t, 8)
		for i := range s.Jobs {
			s.Jobs[i].Work++ // FAIR gives an unmeasured phase a slot even where FLEX could not
		}
		want, err := flex.Policy{}.Plan(s)
		if err != nil {
			t.Fatal(err)
		}
		got, err := flex.AddOn{}.Plan(s)
		if err != nil {
			t.Fatal(err)
		}
		slots := func(p scheduler.Plan) map[wire.JobID]int {
			m := make(map[wire.JobID]int)
			for _, target := range p.Targets {
				m[target.Job] = target.Slots
			}
			return m
		}
		if !reflect.DeepEqual(slots(got), slots(want)) {
			t.Fatalf("FAIR gives %v, FLEX %v", slots(got), slots(want))
		}
	})
}

// problem is a measured snapshot's, drawn until there is something to do.
func problem(t *rapid.T, most int, alike bool) *flex.Problem {
	s := snapshots(t, most)
	s.Slots++
	for i := range s.Jobs {
		s.Jobs[i].Work++
		s.Jobs[i].Max++
		s.Jobs[i].Goal.Penalty = 0
		if alike {
			s.Jobs[i].Max = s.Slots
		}
	}
	normal, err := s.Normal()
	if err != nil {
		t.Fatal(err)
	}
	return flex.FromSnapshot(normal)
}

// TestOptimum: the judges agree with each other and with trying every ordering.
func TestOptimum(t *testing.T) {
	for _, alike := range []bool{false, true} {
		rapid.Check(t, func(t *rapid.T) {
			p := problem(t, 5, alike)
			got, err := optimum.Value(p)
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

// TestSolve: on small problems of every metric the best ordering is found, or
// something better where maxima allow it.
func TestSolve(t *testing.T) {
	for _, alike := range []bool{false, true} {
		rapid.Check(t, func(t *rapid.T) {
			p := problem(t, 6, alike)
			best, err := optimum.Value(p)
			if err != nil {
				t.Fatal(err)
			}
			s, err := flex.Solve(p)
			if err != nil {
				t.Fatal(err)
			}
			rounding := 1e-7 * max(1, math.Abs(best))
			if s.Value > best+rounding || alike && s.Value < best-rounding {
				t.Fatalf("%+v: %v by %s, the optimum is %v", p, s.Value, s.By, best)
			}
			if v := p.Value(s.Ends); math.Abs(v-s.Value) > rounding {
				t.Fatalf("the schedule costs %v, said to be %v", v, s.Value)
			}
			without, err := flex.Orderings(p)
			if err != nil || without.Value < s.Value-rounding {
				t.Fatalf("without search %v by %s: %v; with it %v by %s", without.Value, without.By, err, s.Value, s.By)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	for _, p := range []*flex.Problem{
		{Slots: 1, Jobs: []flex.Job{{Work: math.NaN(), Max: 1, Cost: scheduler.Cost{Weight: 1}}}},
		{Slots: 1, Jobs: []flex.Job{{Work: 1, Min: 2, Max: 1, Cost: scheduler.Cost{Weight: 1}}}},
	} {
		if s, err := flex.Solve(p); err == nil {
			t.Errorf("%+v is solved: %+v", p, s)
		}
		if v, err := optimum.Value(p); err == nil {
			t.Errorf("%+v has an optimum of %v", p, v)
		}
	}
	s := scheduler.Snapshot{Slots: 1, Jobs: []scheduler.Job{{ID: wire.JobID{N: 7}, Work: -1}}}
	for _, policy := range []scheduler.Policy{flex.Policy{}, flex.AddOn{}} {
		if plan, err := policy.Plan(s); err == nil {
			t.Errorf("%T plans %+v", policy, plan)
		}
	}
}

// TestLarge: a thousand jobs go through the same code; nothing but validity is asked.
func TestLarge(t *testing.T) {
	for _, name := range []string{"sum-response", "sum-tardy-weighted", "sum-tardiness", "max-stretch", "max-sla"} {
		m, err := scheduler.ParseMetric(name)
		if err != nil {
			t.Fatal(err)
		}
		s := crowd(1000, 10000, m)
		plan, err := flex.Policy{}.Plan(s)
		if err == nil {
			err = plan.Validate(s)
		}
		if err == nil {
			err = plan.KeepsMinima(s)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
