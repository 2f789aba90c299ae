package flowflex

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/wire"
)

// drawSnapshot draws flows and jobs outside flows. Some jobs have ended, and some wait.
func drawSnapshot(t *rapid.T) scheduler.Snapshot {
	s := scheduler.Snapshot{
		Phase:  rapid.SampledFrom([]wire.Kind{wire.Map, wire.Reduce}).Draw(t, "phase"),
		Slots:  rapid.IntRange(0, 12).Draw(t, "slots"),
		Now:    time.Duration(rapid.IntRange(0, 9).Draw(t, "now")) * time.Second,
		Metric: rapid.SampledFrom(scheduler.Metrics()).Draw(t, "metric"),
	}
	next := 1
	for range rapid.IntRange(0, 4).Draw(t, "submissions") {
		first, jobs := next, rapid.IntRange(1, 4).Draw(t, "jobs")
		if next += jobs; rapid.Bool().Draw(t, "whole") {
			s.Flows = append(s.Flows, scheduler.Flow{First: first, Alone: rapid.Float64Range(0, 50).Draw(t, "alone")})
		}
		flow, goal := 0, drawGoal(t)
		if jobs > 1 {
			flow = first
		}
		for n := first; n < next; n++ {
			id := wire.JobID{Start: 1, N: n}
			switch rapid.SampledFrom([]string{"ready", "ready", "waits", "ended"}).Draw(t, "state") {
			case "ready":
				drawReady(t, &s, id, flow, goal)
			case "waits":
				drawWaiting(t, &s, id, flow, goal)
			}
		}
	}
	return s
}

// drawReady draws a job that can use slots, and perhaps its other phase.
func drawReady(t *rapid.T, s *scheduler.Snapshot, id wire.JobID, flow int, goal scheduler.Goal) {
	j := scheduler.Job{
		ID: id, Flow: flow, Goal: goal,
		Arrived: time.Duration(rapid.IntRange(-3, 3).Draw(t, "arrived")),
		Max:     rapid.IntRange(0, 9).Draw(t, "max"),
		Min:     rapid.IntRange(0, 3).Draw(t, "min"),
		Work:    float64(rapid.IntRange(0, 30).Draw(t, "work")),
	}
	s.Jobs = append(s.Jobs, j)
	if !rapid.Bool().Draw(t, "other") {
		return
	}
	l := scheduler.LaterPhase{ID: id, Phase: wire.Map, Flow: flow, Max: j.Max, Work: j.Work, Goal: goal}
	if s.Phase == wire.Map {
		l.Phase, l.After = wire.Reduce, []scheduler.PhaseID{{Job: id, Phase: wire.Map}}
	}
	s.Later = append(s.Later, l)
}

// drawWaiting draws a job that comes after some earlier jobs of its flow, some time after their
// end.
func drawWaiting(t *rapid.T, s *scheduler.Snapshot, id wire.JobID, flow int, goal scheduler.Goal) {
	maps := scheduler.LaterPhase{
		ID: id, Phase: wire.Map, Flow: flow, Goal: goal,
		Max:  rapid.IntRange(0, 9).Draw(t, "max"),
		Work: float64(rapid.IntRange(0, 30).Draw(t, "work")),
		Lag:  rapid.SampledFrom([]float64{0, 0.2, 7}).Draw(t, "lag"),
	}
	for n := flow; flow > 0 && n < id.N; n++ {
		if rapid.Bool().Draw(t, "after") {
			maps.After = append(maps.After, scheduler.PhaseID{Job: wire.JobID{Start: 1, N: n}, Phase: wire.Reduce})
		}
	}
	reduces := scheduler.LaterPhase{
		ID: id, Phase: wire.Reduce, Flow: flow, Max: 1, Goal: goal, After: []scheduler.PhaseID{{Job: id, Phase: wire.Map}},
	}
	s.Later = append(s.Later, maps, reduces)
}

func drawGoal(t *rapid.T) scheduler.Goal {
	return scheduler.Goal{
		Weight:   float64(rapid.IntRange(0, 3).Draw(t, "weight")),
		Deadline: time.Duration(rapid.IntRange(0, 20).Draw(t, "deadline")) * time.Second,
		Steps: []scheduler.Step{
			{By: time.Duration(rapid.IntRange(0, 9).Draw(t, "by")) * time.Second, Cost: 1},
			{By: 10 * time.Second, Cost: float64(rapid.IntRange(1, 5).Draw(t, "cost"))},
		},
	}
}

// TestPolicy checks S1, S2 and S4, and that no usable slot stays idle.
func TestPolicy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		plan, err := Policy{}.Plan(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{plan.Validate(s), plan.CheckMinima(s)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		useful, given := 0, 0
		for _, j := range s.Jobs {
			useful += j.Max
		}
		for _, target := range plan.Targets {
			given += target.Slots
		}
		if given != min(useful, s.Slots) {
			t.Fatalf("%d slots given, of %d, to jobs that can use %d", given, s.Slots, useful)
		}
		other := s
		other.Jobs, other.Later, other.Flows = slices.Clone(s.Jobs), slices.Clone(s.Later), slices.Clone(s.Flows)
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "shuffle"), 0))
		random.Shuffle(len(other.Jobs), func(i, j int) { other.Jobs[i], other.Jobs[j] = other.Jobs[j], other.Jobs[i] })
		random.Shuffle(len(other.Later), func(i, j int) { other.Later[i], other.Later[j] = other.Later[j], other.Later[i] })
		random.Shuffle(len(other.Flows), func(i, j int) { other.Flows[i], other.Flows[j] = other.Flows[j], other.Flows[i] })
		for _, again := range []scheduler.Snapshot{s, other} {
			if p, err := (Policy{}).Plan(again); err != nil || !reflect.DeepEqual(p, plan) {
				t.Fatalf("plan %+v, but %+v (%v) of %+v", plan, p, err, again)
			}
		}
	})
}
