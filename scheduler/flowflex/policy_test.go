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

// drawSnapshot draws jobs that stand alone and flows, with phases that wait.
func drawSnapshot(t *rapid.T) scheduler.Snapshot {
	s := scheduler.Snapshot{
		Phase:  rapid.SampledFrom([]wire.Kind{wire.Map, wire.Reduce}).Draw(t, "phase"),
		Slots:  rapid.IntRange(0, 12).Draw(t, "slots"),
		Now:    time.Duration(rapid.IntRange(0, 9).Draw(t, "now")) * time.Second,
		Metric: rapid.SampledFrom(scheduler.Metrics()).Draw(t, "metric"),
	}
	for n := range rapid.IntRange(0, 7).Draw(t, "jobs") {
		j := scheduler.Job{
			ID:      wire.JobID{Start: 1, N: n + 1},
			Arrived: time.Duration(rapid.IntRange(-3, 3).Draw(t, "arrived")),
			Max:     rapid.IntRange(0, 9).Draw(t, "max"),
			Min:     rapid.IntRange(0, 3).Draw(t, "min"),
			Work:    float64(rapid.IntRange(0, 30).Draw(t, "work")),
			Flow:    rapid.IntRange(0, 2).Draw(t, "flow"),
			Goal:    drawGoal(t),
		}
		if rapid.Bool().Draw(t, "waits") {
			s.Later = append(s.Later, scheduler.Later{
				ID: j.ID, Phase: wire.Reduce, Flow: j.Flow, Max: j.Max, Work: j.Work, Goal: j.Goal,
				After: []scheduler.PhaseID{{Job: j.ID, Phase: wire.Map}},
			})
			if s.Phase == wire.Reduce {
				s.Later[len(s.Later)-1].Phase = wire.Map
				s.Later[len(s.Later)-1].After = nil
			}
		}
		s.Jobs = append(s.Jobs, j)
	}
	return s
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

// TestPolicy holds the policy to S1, S2 and S4, and to leaving no slot idle that
// could be used.
func TestPolicy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		plan, err := Policy{}.Plan(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{plan.Validate(s), plan.KeepsMinima(s)} {
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
		other.Jobs, other.Later = slices.Clone(s.Jobs), slices.Clone(s.Later)
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "shuffle"), 0))
		random.Shuffle(len(other.Jobs), func(i, j int) { other.Jobs[i], other.Jobs[j] = other.Jobs[j], other.Jobs[i] })
		random.Shuffle(len(other.Later), func(i, j int) { other.Later[i], other.Later[j] = other.Later[j], other.Later[i] })
		for _, again := range []scheduler.Snapshot{s, other} {
			if p, err := (Policy{}).Plan(again); err != nil || !reflect.DeepEqual(p, plan) {
				t.Fatalf("plan %+v, but %+v (%v) of %+v", plan, p, err, again)
			}
		}
	})
}
