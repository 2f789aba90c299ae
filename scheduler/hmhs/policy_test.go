package hmhs_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/hmhs"
	"github.com/quernmr/quern/wire"
)

func id(n int) wire.JobID { return wire.JobID{Start: 1, N: n} }

// TestPlans runs testdata/plan.txt. One directive:
//
//	plan map|reduce   the plan of a snapshot, one entry a line:
//	    tracker ID FREE...               seconds until each slot is free
//	    job N max=M running=R min=I work=W
//	    later N max=M work=W             the job's reduces
//	    measured N TRACKER TASKS SECONDS
func TestPlans(t *testing.T) {
	datadriven.RunTest(t, "testdata/plan.txt", func(t *testing.T, d *datadriven.TestData) string {
		s := snapshot(t, d)
		plan, err := (hmhs.Policy{}).Plan(s)
		if err != nil {
			return err.Error()
		}
		if err := plan.Validate(s); err != nil {
			return err.Error()
		}
		return show(plan)
	})
}

func snapshot(t *testing.T, d *datadriven.TestData) scheduler.Snapshot {
	s := scheduler.Snapshot{Phase: wire.Map}
	if d.HasArg("reduce") {
		s.Phase = wire.Reduce
	}
	for line := range strings.Lines(d.Input) {
		words := strings.Fields(line)
		fields := make(map[string]float64)
		for _, w := range words[2:] {
			name, text, ok := strings.Cut(w, "=")
			if !ok {
				continue
			}
			var value float64
			if _, err := fmt.Sscan(text, &value); err != nil {
				d.Fatalf(t, "%q: %v", line, err)
			}
			fields[name] = value
		}
		number := func(text string) (x float64) {
			if _, err := fmt.Sscan(text, &x); err != nil {
				d.Fatalf(t, "%q: %v", line, err)
			}
			return x
		}
		switch words[0] {
		case "tracker":
			tr := scheduler.Tracker{ID: words[1]}
			for _, w := range words[2:] {
				tr.Free = append(tr.Free, number(w))
			}
			s.Trackers = append(s.Trackers, tr)
			s.Slots += len(tr.Free)
		case "slots":
			s.Slots = int(number(words[1]))
		case "job":
			s.Jobs = append(s.Jobs, scheduler.Job{
				ID: id(int(number(words[1]))), Max: int(fields["max"]), Running: int(fields["running"]), Min: int(fields["min"]), Work: fields["work"],
			})
		case "later":
			s.Later = append(s.Later, scheduler.LaterPhase{ID: id(int(number(words[1]))), Phase: wire.Reduce, Max: int(fields["max"]), Work: fields["work"]})
		case "measured":
			s.Measured = append(s.Measured, scheduler.Measured{
				Job: id(int(number(words[1]))), Tracker: words[2], Tasks: int(number(words[3])), Seconds: number(words[4]),
			})
		default:
			d.Fatalf(t, "%q", line)
		}
	}
	return s
}

func show(plan scheduler.Plan) string {
	var out strings.Builder
	for _, target := range plan.Targets {
		fmt.Fprintf(&out, "job%d %d slots, ends %.3g, best on %v\n", target.Job.N, target.Slots, target.End, target.Trackers)
	}
	for _, q := range plan.Queues {
		fmt.Fprintf(&out, "%s:", q.Tracker)
		for _, r := range q.Runs {
			fmt.Fprintf(&out, " job%d*%d", r.Job.N, r.Tasks)
		}
		out.WriteString("\n")
	}
	return out.String()
}

// TestPlanProperties: every Plan is valid, keeps the minima, and queues every task that has not
// started.
func TestPlanProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := scheduler.Snapshot{Phase: rapid.SampledFrom([]wire.Kind{wire.Map, wire.Reduce}).Draw(t, "phase")}
		for i := range rapid.IntRange(0, 4).Draw(t, "trackers") {
			tr := scheduler.Tracker{ID: fmt.Sprint("t", i)}
			for range rapid.IntRange(0, 3).Draw(t, "slots") {
				tr.Free = append(tr.Free, float64(rapid.IntRange(0, 5).Draw(t, "free")))
			}
			s.Slots += len(tr.Free)
			s.Trackers = append(s.Trackers, tr)
		}
		for n := range rapid.IntRange(0, 6).Draw(t, "jobs") {
			j := scheduler.Job{ID: id(n + 1), Max: rapid.IntRange(0, 10).Draw(t, "max"), Min: rapid.IntRange(0, 3).Draw(t, "min")}
			j.Running = rapid.IntRange(0, j.Max).Draw(t, "running")
			j.Work = float64(rapid.IntRange(0, 100).Draw(t, "work"))
			s.Jobs = append(s.Jobs, j)
			s.Later = append(s.Later, scheduler.LaterPhase{ID: j.ID, Phase: wire.Reduce, Max: rapid.IntRange(0, 3).Draw(t, "reduces")})
			for _, tr := range s.Trackers {
				s.Measured = append(s.Measured, scheduler.Measured{
					Job: j.ID, Tracker: tr.ID, Tasks: rapid.IntRange(0, 3).Draw(t, "ended"), Seconds: rapid.Float64Range(0, 100).Draw(t, "seconds"),
				})
			}
		}
		plan, err := (hmhs.Policy{}).Plan(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := plan.Validate(s); err != nil {
			t.Fatal(err)
		}
		if err := plan.CheckMinima(s); err != nil {
			t.Fatal(err)
		}
		if s.Slots == 0 {
			return
		}
		queued := make(map[wire.JobID]int)
		for _, q := range plan.Queues {
			for _, r := range q.Runs {
				queued[r.Job] += r.Tasks
			}
		}
		for _, j := range s.Jobs {
			if queued[j.ID] != j.Max-j.Running {
				t.Fatalf("%v has %d tasks queued of %d", j.ID, queued[j.ID], j.Max-j.Running)
			}
		}
	})
}

// TestEstimate: Estimate finds times that are a product of job and tracker. With enough tasks it
// finds a pair's own factor; without tasks the tracker's mean applies.
func TestEstimate(t *testing.T) {
	factors := map[string]float64{"a": 0.5, "b": 1, "c": 1.5}
	var measured []scheduler.Measured
	for n, seconds := range []float64{1, 40} {
		for _, tracker := range []string{"a", "b", "c"} {
			measured = append(measured, scheduler.Measured{Job: id(n + 1), Tracker: tracker, Tasks: 10, Seconds: 10 * seconds * factors[tracker]})
		}
	}
	measured = append(measured, scheduler.Measured{Job: id(3), Tracker: "b", Tasks: 4, Seconds: 28})
	s := hmhs.Estimate(measured)
	near := func(name string, got, want float64) {
		if math.Abs(got/want-1) > 0.01 {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	for n, want := range []float64{1, 40, 7} {
		seconds, ok := s.Time(id(n + 1))
		if !ok {
			t.Fatalf("job %d is unknown", n+1)
		}
		near(fmt.Sprint("time of job ", n+1), seconds, want)
	}
	near("factor measured", s.Factor(id(1), "c"), 1.5)
	near("factor of a tracker the job has not been on", s.Factor(id(3), "a"), 0.5)
	near("factor of a job not measured", s.Factor(id(9), "a"), 0.5)
	near("factor of a tracker not measured", s.Factor(id(1), "z"), 1)
	if _, ok := s.Time(id(9)); ok {
		t.Error("a job that has not been measured has a time")
	}

	// Job 3 is faster on tracker a than the tracker's mean shows.
	s = hmhs.Estimate(append(measured, scheduler.Measured{Job: id(3), Tracker: "a", Tasks: 100, Seconds: 70}))
	if got := s.Factor(id(3), "a") / s.Factor(id(3), "b"); got > 0.15 {
		t.Errorf("ten times as fast on a is estimated as %v", got)
	}
	if got := s.Factor(id(9), "a"); !(got > 0.1 && got < 0.5) {
		t.Errorf("tracker a is %v for a job not measured", got)
	}
}

// TestAnyMeasurement: every possible measurement leads to a plan.
func TestAnyMeasurement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seconds := rapid.SampledFrom([]float64{math.SmallestNonzeroFloat64, 1e-200, 1e-9, 1, 1e9, 1e15})
		var s scheduler.Snapshot
		s.Phase = wire.Map
		for i := range 3 {
			s.Slots++
			s.Trackers = append(s.Trackers, scheduler.Tracker{ID: fmt.Sprint("t", i), Free: []float64{0}})
		}
		for n := range 3 {
			s.Jobs = append(s.Jobs, scheduler.Job{ID: id(n + 1), Max: 3, Work: 3})
			for _, tr := range s.Trackers {
				s.Measured = append(s.Measured, scheduler.Measured{
					Job: id(n + 1), Tracker: tr.ID, Tasks: rapid.IntRange(0, 3).Draw(t, "ended"), Seconds: seconds.Draw(t, "seconds"),
				})
			}
		}
		plan, err := (hmhs.Policy{}).Plan(s)
		if err == nil {
			err = plan.Validate(s)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
}

// manyJobs returns the map phase of the paper's hybrid batch. Every pair of job and tracker is
// measured, with a factor of its own.
func manyJobs(jobs, trackers int) scheduler.Snapshot {
	r := rand.New(rand.NewPCG(1, 1))
	s := scheduler.Snapshot{Phase: wire.Map, Slots: trackers}
	for i := range trackers {
		s.Trackers = append(s.Trackers, scheduler.Tracker{ID: fmt.Sprintf("t%05d", i), Free: []float64{0}})
	}
	for n := range jobs {
		j := scheduler.Job{ID: id(n + 1), Max: 1 + r.IntN(300)}
		if n%20 == 0 {
			j.Max = 2000 + r.IntN(3000)
		}
		j.Work = float64(j.Max) * (5 + 40*r.Float64())
		s.Jobs = append(s.Jobs, j)
		for _, tr := range s.Trackers {
			s.Measured = append(s.Measured, scheduler.Measured{Job: j.ID, Tracker: tr.ID, Tasks: 2, Seconds: 10 * (0.1 + r.Float64())})
		}
	}
	return s
}

// BenchmarkPlan measures one allocation, from the snapshot to the plan.
func BenchmarkPlan(b *testing.B) {
	for _, jobs := range []int{100, 500} {
		b.Run(fmt.Sprintf("jobs=%d", jobs), func(b *testing.B) {
			s := manyJobs(jobs, 100)
			for b.Loop() {
				if _, err := (hmhs.Policy{}).Plan(s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
