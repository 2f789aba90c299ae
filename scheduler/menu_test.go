package scheduler_test

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/quernmr/quern/scheduler"
)

// TestMenu runs testdata/menu/*.txt, with more fields of a job than TestScenarios.
// Jobs are given one a line, as in "job1 max=4 min=2 work=10 weight=2 deadline=3s
// steps=1s:2,3s:4". Directives:
//
//	normal slots=N     the jobs as Normal returns them, or its error
//	fair slots=N       FAIR's Plan
//	fifo slots=N       FIFO's Plan
//	minima slots=N     the result of Plan.CheckMinima, for targets such as "give job1 3"
//	cost metric=M at=T,T,…  job1's cost at times in seconds
//	metric             the metrics named below, as parsed
func TestMenu(t *testing.T) {
	paths, err := filepath.Glob("testdata/menu/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			datadriven.RunTest(t, path, menu)
		})
	}
}

func menu(t *testing.T, d *datadriven.TestData) string {
	var out strings.Builder
	if d.Cmd == "metric" {
		for line := range strings.Lines(d.Input) {
			m, err := scheduler.ParseMetric(strings.TrimSpace(line))
			if err != nil {
				fmt.Fprintln(&out, err)
				continue
			}
			fmt.Fprintf(&out, "%v of %v, weighted %v\n", m.Aggregate, m.Penalty, m.Weighted)
		}
		return out.String()
	}
	var s scheduler.Snapshot
	plan := readMenu(t, d, &s)
	for _, arg := range d.CmdArgs {
		var err error
		switch arg.Key {
		case "slots":
			s.Slots, err = strconv.Atoi(arg.Vals[0])
		case "metric":
			s.Metric, err = scheduler.ParseMetric(arg.Vals[0])
		case "now":
			s.Now, err = time.ParseDuration(arg.Vals[0])
		}
		if err != nil {
			d.Fatalf(t, "%v: %v", arg, err)
		}
	}
	switch d.Cmd {
	case "normal":
		normal, err := s.Normal()
		if err != nil {
			return err.Error()
		}
		for _, j := range normal.Jobs {
			fmt.Fprintf(&out, "job%d max=%d min=%d work=%v alone=%v weight=%v\n", j.ID.N, j.Max, j.Min, j.Work, j.Alone, j.Goal.Weight)
		}
	case "fair", "fifo":
		policy := map[string]scheduler.Policy{"fair": scheduler.Fair{}, "fifo": scheduler.FIFO{}}[d.Cmd]
		var err error
		if plan, err = policy.Plan(s); err != nil {
			return err.Error()
		}
		for _, target := range plan.Targets {
			fmt.Fprintf(&out, "job%d %d\n", target.Job.N, target.Slots)
		}
	case "minima":
		if err := plan.CheckMinima(s); err != nil {
			return err.Error()
		}
		return "kept"
	case "cost":
		c := s.Metric.Cost(s.Jobs[0].Goal, s.Jobs[0].Alone, s.Now)
		arg, _ := d.Arg("at")
		for _, at := range arg.Vals {
			seconds, err := strconv.ParseFloat(at, 64)
			if err != nil {
				d.Fatalf(t, "%q: %v", at, err)
			}
			fmt.Fprintf(&out, "%s: %v\n", at, c.At(seconds))
		}
	}
	return out.String()
}

// readMenu reads jobs and, as "give job1 3", a plan.
func readMenu(t *testing.T, d *datadriven.TestData, s *scheduler.Snapshot) (p scheduler.Plan) {
	for line := range strings.Lines(d.Input) {
		fields := strings.Fields(line)
		if fields[0] == "give" {
			var n, slots int
			if _, err := fmt.Sscanf(line, "give job%d %d", &n, &slots); err != nil {
				d.Fatalf(t, "%q: %v", line, err)
			}
			p.Targets = append(p.Targets, scheduler.Target{Job: job(n), Slots: slots})
			continue
		}
		n, err := strconv.Atoi(strings.TrimPrefix(fields[0], "job"))
		if err != nil {
			d.Fatalf(t, "%q: %v", line, err)
		}
		j := scheduler.Job{ID: job(n), Arrived: time.Duration(n)}
		for _, field := range fields[1:] {
			if err := setField(&j, field); err != nil {
				d.Fatalf(t, "%q: %v", line, err)
			}
		}
		s.Jobs = append(s.Jobs, j)
	}
	return p
}

func setField(j *scheduler.Job, field string) (err error) {
	name, value, _ := strings.Cut(field, "=")
	switch name {
	case "max":
		j.Max, err = strconv.Atoi(value)
	case "min":
		j.Min, err = strconv.Atoi(value)
	case "running":
		j.Running, err = strconv.Atoi(value)
	case "arrived":
		j.Arrived, err = time.ParseDuration(value)
	case "submitted":
		j.Goal.Submitted, err = time.ParseDuration(value)
	case "work":
		j.Work, err = strconv.ParseFloat(value, 64)
	case "alone":
		j.Alone, err = strconv.ParseFloat(value, 64)
	case "share":
		j.Share, err = strconv.ParseFloat(value, 64)
	case "priority":
		j.Priority, err = strconv.Atoi(value)
	case "batch":
		j.Batch = value
	case "weight":
		j.Goal.Weight, err = strconv.ParseFloat(value, 64)
	case "deadline":
		j.Goal.Deadline, err = time.ParseDuration(value)
	case "penalty":
		var m scheduler.Metric
		m, err = scheduler.ParseMetric("sum-" + value)
		j.Goal.Penalty = m.Penalty
	case "steps":
		for step := range strings.SplitSeq(value, ",") {
			by, cost, _ := strings.Cut(step, ":")
			var s scheduler.Step
			if s.By, err = time.ParseDuration(by); err == nil {
				s.Cost, err = strconv.ParseFloat(cost, 64)
			}
			j.Goal.Steps = append(j.Goal.Steps, s)
		}
	default:
		err = fmt.Errorf("no field %q", name)
	}
	return err
}

func TestMetricNames(t *testing.T) {
	for _, m := range scheduler.Metrics() {
		if again, err := scheduler.ParseMetric(m.String()); err != nil || again != m {
			t.Errorf("%v is read as %v: %v", m, again, err)
		}
	}
}

// TestCosts: costs do not fall, Latest is the inverse of At, and breakpoints are sorted.
func TestCosts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := cost(t)
		times := rapid.SliceOfN(rapid.Float64Range(-20, 100), 2, 20).Draw(t, "times")
		slices.Sort(times)
		for i, at := range times {
			if i > 0 && c.At(at) < c.At(times[i-1]) {
				t.Fatalf("%+v falls from %v at %v to %v at %v", c, c.At(times[i-1]), times[i-1], c.At(at), at)
			}
			limit := c.At(at)
			latest := c.Latest(limit)
			if latest < at-1e-6 || !math.IsInf(latest, 0) && c.At(latest-1e-6) > limit+1e-6 {
				t.Fatalf("%+v costs %v at %v; latest for that is %v", c, limit, at, latest)
			}
			if !math.IsInf(latest, 0) && c.At(latest+1e-3) <= limit {
				t.Fatalf("%+v still costs %v after %v", c, limit, latest)
			}
		}
		if times := c.Breakpoints(); !slices.IsSorted(times) {
			t.Fatalf("breakpoints %v are not sorted", times)
		}
	})
}

func cost(t *rapid.T) scheduler.Cost {
	c := scheduler.Cost{
		Penalty: rapid.SampledFrom([]scheduler.Penalty{scheduler.Response, scheduler.Tardy, scheduler.Tardiness, scheduler.Lateness, scheduler.SLA}).Draw(t, "penalty"),
		Weight:  rapid.Float64Range(0.1, 10).Draw(t, "weight"),
		Due:     rapid.Float64Range(-10, 50).Draw(t, "due"),
	}
	if c.Penalty == scheduler.SLA {
		due, cost := 0.0, 0.0
		for range rapid.IntRange(0, 4).Draw(t, "levels") {
			due += rapid.Float64Range(1, 20).Draw(t, "gap")
			cost += rapid.Float64Range(0.1, 5).Draw(t, "rise")
			c.Levels = append(c.Levels, scheduler.Level{Due: due, Cost: cost})
		}
	}
	return c
}

// TestWaterline compares Waterline with a loop that gives each slot to the lowest share below
// its maximum.
func TestWaterline(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var shares []scheduler.Share
		slots := rapid.IntRange(0, 30).Draw(t, "slack")
		for range rapid.IntRange(0, 8).Draw(t, "jobs") {
			least := rapid.IntRange(0, 6).Draw(t, "min")
			shares = append(shares, scheduler.Share{Min: least, Max: least + rapid.IntRange(0, 6).Draw(t, "more")})
			slots += least
		}
		want, left := make([]int, len(shares)), slots
		for i, s := range shares {
			want[i] = s.Min
			left -= s.Min
		}
		for ; left > 0; left-- {
			lowest := -1
			for i, s := range shares {
				if want[i] < s.Max && (lowest < 0 || want[i] < want[lowest]) {
					lowest = i
				}
			}
			if lowest < 0 {
				break
			}
			want[lowest]++
		}
		if got := scheduler.Waterline(shares, slots); !slices.Equal(got, want) {
			t.Fatalf("%v of %d slots to %v, want %v", got, slots, shares, want)
		}
	})
}

// TestWaterlineWeighted: weighted shares are within a slot of the water level, use up all
// usable slots, and keep their bounds.
func TestWaterlineWeighted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var shares []scheduler.Share
		slots, most := rapid.IntRange(0, 30).Draw(t, "slack"), 0
		for range rapid.IntRange(0, 8).Draw(t, "jobs") {
			least := rapid.IntRange(0, 6).Draw(t, "min")
			shares = append(shares, scheduler.Share{
				Min: least, Max: least + rapid.IntRange(0, 6).Draw(t, "more"),
				Weight: rapid.SampledFrom([]float64{0, 1e-6, 0.1, 1.0 / 3, 1, 2.5, 1e6}).Draw(t, "weight"),
			})
			slots += least
			most += shares[len(shares)-1].Max
		}
		level, total := scheduler.WaterLevel(shares, float64(slots)), 0
		for i, got := range scheduler.Waterline(shares, slots) {
			total += got
			if s := shares[i]; got < s.Min || got > s.Max || math.Abs(float64(got)-s.At(level)) > 1 {
				t.Fatalf("%d to %+v at level %v", got, s, level)
			}
		}
		if want := min(slots, most); total != want {
			t.Fatalf("%d slots of %d are given, not %d", total, slots, want)
		}
	})
}

// TestNormalMinima: the minima fit the slots. No minimum grows, except to one slot for an
// unmeasured phase. As many unmeasured phases as there are slots keep one.
func TestNormalMinima(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := snapshot(t)
		for i := range s.Jobs {
			s.Jobs[i].Min = rapid.IntRange(0, 12).Draw(t, "min")
			s.Jobs[i].Work = float64(rapid.IntRange(0, 3).Draw(t, "work"))
		}
		normal, err := s.Normal()
		if err != nil {
			t.Fatal(err)
		}
		total, unmeasured, measurable := 0, 0, 0
		for _, j := range normal.Jobs {
			original := s.Jobs[j.ID.N-1]
			total += j.Min
			if original.Work == 0 {
				unmeasured++
				measurable += min(1, j.Min)
			}
			if j.Min > max(original.Min, 1) || j.Min > j.Max || original.Work > 0 && j.Min > original.Min {
				t.Fatalf("%+v has become %+v", original, j)
			}
			if !(j.Work > 0) || j.Alone < j.Work {
				t.Fatalf("%+v has become %+v", original, j)
			}
		}
		if total > s.Slots {
			t.Fatalf("minima of %d for %d slots", total, s.Slots)
		}
		if measurable < min(unmeasured, s.Slots) {
			t.Fatalf("%d of %d new phases can be measured with %d slots", measurable, unmeasured, s.Slots)
		}
	})
}
