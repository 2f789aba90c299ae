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
	"github.com/quernmr/quern/wire"
)

func seconds(x float64) time.Duration { return time.Duration(math.Round(x * float64(time.Second))) }

// drawSnapshot draws up to most jobs and any metric. Some deadlines are past, some work is
// unmeasured, and some minima exceed the slots.
func drawSnapshot(t *rapid.T, most int) scheduler.Snapshot {
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

// TestPolicy: plans are valid, keep the minima, leave no slack that a job could use, do not
// depend on the order of the jobs, and do not change the snapshot.
func TestPolicy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t, 8)
		before := slices.Clone(s.Jobs)
		plan, err := flex.Policy{}.Plan(s)
		if err == nil {
			err = plan.Validate(s)
		}
		if err == nil {
			err = plan.CheckMinima(s)
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
			t.Fatalf("plan %+v, but with reversed jobs %+v (%v)", plan, again, err)
		}
	})
}

func TestRefused(t *testing.T) {
	for _, p := range []*flex.Problem{
		{Slots: 1, Jobs: []flex.Job{{Work: math.NaN(), Max: 1, Cost: scheduler.Cost{Weight: 1}}}},
		{Slots: 1, Jobs: []flex.Job{{Work: 1, Min: 2, Max: 1, Cost: scheduler.Cost{Weight: 1}}}},
	} {
		if s, err := flex.Solve(p); err == nil {
			t.Errorf("Solve accepts %+v: %+v", p, s)
		}
	}
	s := scheduler.Snapshot{Slots: 1, Jobs: []scheduler.Job{{ID: wire.JobID{N: 7}, Work: -1}}}
	if plan, err := (flex.Policy{}).Plan(s); err == nil {
		t.Errorf("Plan accepts negative work: %+v", plan)
	}
}

// TestLarge: plans of a thousand jobs are valid.
func TestLarge(t *testing.T) {
	for _, name := range []string{"sum-response", "sum-tardy-weighted", "sum-tardiness", "max-stretch", "max-sla"} {
		m, err := scheduler.ParseMetric(name)
		if err != nil {
			t.Fatal(err)
		}
		s := manyJobs(1000, 10000, m)
		plan, err := flex.Policy{}.Plan(s)
		if err == nil {
			err = plan.Validate(s)
		}
		if err == nil {
			err = plan.CheckMinima(s)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
