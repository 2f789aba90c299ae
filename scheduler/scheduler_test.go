package scheduler_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/wire"
)

// TestScenarios runs testdata/*.txt. Directives:
//
//	fifo slots=N       FIFO's Plan, or its error; jobs are given one a line as in
//	                   "job1 arrived=2s running=1 max=4"
//	validate slots=N   the result of Plan.Validate; targets are given after the jobs, one a
//	                   line as in "give job1 3"
func TestScenarios(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			datadriven.RunTest(t, path, run)
		})
	}
}

func run(t *testing.T, d *datadriven.TestData) string {
	s := scheduler.Snapshot{Phase: wire.Map}
	d.ScanArgs(t, "slots", &s.Slots)
	plan := readInput(t, d, &s)
	var out strings.Builder
	if d.Cmd == "fifo" {
		var err error
		if plan, err = (scheduler.FIFO{}).Plan(s); err != nil {
			return err.Error()
		}
		for _, target := range plan.Targets {
			fmt.Fprintf(&out, "job%d %d\n", target.Job.N, target.Slots)
		}
	}
	if err := plan.Validate(s); err != nil {
		fmt.Fprintln(&out, err)
	} else if d.Cmd == "validate" {
		fmt.Fprintln(&out, "valid")
	}
	return out.String()
}

func readInput(t *testing.T, d *datadriven.TestData, s *scheduler.Snapshot) (p scheduler.Plan) {
	for line := range strings.Lines(d.Input) {
		var n, slots int
		if _, err := fmt.Sscanf(line, "give job%d %d", &n, &slots); err == nil {
			p.Targets = append(p.Targets, scheduler.Target{Job: job(n), Slots: slots})
			continue
		}
		var arrived string
		j := scheduler.Job{}
		if _, err := fmt.Sscanf(line, "job%d arrived=%s running=%d max=%d", &n, &arrived, &j.Running, &j.Max); err != nil {
			d.Fatalf(t, "%q: %v", line, err)
		}
		var err error
		if j.Arrived, err = time.ParseDuration(arrived); err != nil {
			d.Fatalf(t, "%q: %v", line, err)
		}
		j.ID = job(n)
		s.Jobs = append(s.Jobs, j)
	}
	return p
}

func job(n int) wire.JobID { return wire.JobID{Start: 1, N: n} }

// policies lists every policy that must keep the package's invariants.
func policies() map[string]scheduler.Policy {
	return map[string]scheduler.Policy{"fifo": scheduler.FIFO{}, "fair": scheduler.Fair{}}
}

// TestPolicies checks S1 and S2 for every policy: the Plan of any snapshot is valid,
// repeatable, independent of the order of the jobs, and leaves the snapshot unchanged.
func TestPolicies(t *testing.T) {
	for name, policy := range policies() {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				s := snapshot(t)
				before := clone(s)
				plan, err := policy.Plan(s)
				if err != nil {
					t.Fatalf("plan: %v", err)
				}
				if !reflect.DeepEqual(s, before) {
					t.Fatalf("the snapshot has changed to %+v", s)
				}
				if err := plan.Validate(s); err != nil {
					t.Fatal(err)
				}
				if name != "fifo" { // S4
					if err := plan.CheckMinima(s); err != nil {
						t.Fatal(err)
					}
				}
				seed := rapid.Uint64().Draw(t, "shuffle")
				other := clone(s)
				rand.New(rand.NewPCG(seed, 0)).Shuffle(len(other.Jobs), func(i, j int) {
					other.Jobs[i], other.Jobs[j] = other.Jobs[j], other.Jobs[i]
				})
				for _, again := range []scheduler.Snapshot{before, other} {
					if p, err := policy.Plan(again); err != nil || !reflect.DeepEqual(p, plan) {
						t.Fatalf("plan %+v of %+v, but %+v (%v) of %+v", plan, s, p, err, again)
					}
				}
			})
		})
	}
}

// TestFIFOServesInOrder: no job has slots while an earlier job needs more, and no slot is free
// while a job needs one.
func TestFIFOServesInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := snapshot(t)
		plan, err := scheduler.FIFO{}.Plan(s)
		if err != nil || len(plan.Targets) != len(s.Jobs) {
			t.Fatalf("%d targets for %d jobs: %v", len(plan.Targets), len(s.Jobs), err)
		}
		given, total := make(map[wire.JobID]int), 0
		for _, target := range plan.Targets {
			given[target.Job] = target.Slots
			total += target.Slots
		}
		for _, a := range s.Jobs {
			if given[a.ID] < a.Max && total < s.Slots {
				t.Fatalf("%v lacks slots and %d are left", a.ID, s.Slots-total)
			}
			for _, b := range s.Jobs {
				earlier := a.Arrived < b.Arrived || a.Arrived == b.Arrived && a.ID.N < b.ID.N
				if earlier && given[a.ID] < a.Max && given[b.ID] > 0 {
					t.Fatalf("%v has %d of %d slots, %v after it %d", a.ID, given[a.ID], a.Max, b.ID, given[b.ID])
				}
			}
		}
	})
}

func clone(s scheduler.Snapshot) scheduler.Snapshot {
	s.Jobs = slices.Clone(s.Jobs)
	return s
}

func snapshot(t *rapid.T) scheduler.Snapshot {
	s := scheduler.Snapshot{
		Phase: rapid.SampledFrom([]wire.Kind{wire.Map, wire.Reduce}).Draw(t, "phase"),
		Slots: rapid.IntRange(0, 20).Draw(t, "slots"),
	}
	for n := range rapid.IntRange(0, 8).Draw(t, "jobs") {
		most := rapid.IntRange(0, 10).Draw(t, "max")
		s.Jobs = append(s.Jobs, scheduler.Job{
			ID:      job(n + 1),
			Arrived: time.Duration(rapid.Int64Range(-3, 3).Draw(t, "arrived")), // many ties
			Running: rapid.IntRange(0, most).Draw(t, "running"),
			Max:     most,
			Min:     rapid.IntRange(0, 4).Draw(t, "min"),
			Work:    float64(rapid.IntRange(0, 2).Draw(t, "work")),
		})
	}
	return s
}

// TestSays: lateness says something only where jobs without a deadline do not decide it.
func TestSays(t *testing.T) {
	value := func(m scheduler.Metric, deadlines ...time.Duration) float64 {
		var costs []scheduler.Cost
		var ends []float64
		for _, d := range deadlines {
			costs, ends = append(costs, m.Cost(scheduler.Goal{Deadline: d}, 1, 0)), append(ends, 20)
		}
		return m.Aggregate.Combine(costs, ends)
	}
	sum, latest := scheduler.Metric{Penalty: scheduler.Lateness, Aggregate: scheduler.Sum}, scheduler.Metric{Penalty: scheduler.Lateness, Aggregate: scheduler.Max}
	for _, c := range []struct {
		metric    scheduler.Metric
		deadlines []time.Duration
		want      bool
	}{
		{sum, []time.Duration{5 * time.Second, 30 * time.Second}, true},
		{sum, []time.Duration{5 * time.Second, 0}, false},
		{latest, []time.Duration{30 * time.Second, 0}, true},
		{latest, []time.Duration{0, 0}, false},
		{scheduler.Metric{Penalty: scheduler.Tardiness, Aggregate: scheduler.Sum}, []time.Duration{0, 0}, true},
	} {
		if v := value(c.metric, c.deadlines...); c.metric.Says(v) != c.want {
			t.Errorf("%v of deadlines %v is %v: it says something: %v, want %v", c.metric, c.deadlines, v, !c.want, c.want)
		}
	}
}
