package flex

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

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/wire"
)

// TestScenarios runs testdata/*.txt. Each line is a job, as in "work=10 min=1 max=6 weight=2
// due=3 levels=1:2,3:4". Jobs are numbered from 1. Directives:
//
//	mps slots=N order=(1,2,…) metric=M   the schedule of an ordering
//	solve slots=N metric=M               the best schedule and how it was found
//	orderings slots=N metric=M           the best schedule without local search
//	moldable slots=N metric=M            the slots and the value of the moldable problem
//	fair slots=N metric=M                FAIR's schedule with divisible slots
//	plan slots=N metric=M                the policy's plan; job N is the Nth line
//	check slots=N                        the result of Problem.Check
//
// A schedule is printed as the metric's value, then one interval a line with every job's slots.
func TestScenarios(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			datadriven.RunTest(t, path, scenario)
		})
	}
}

func scenario(t *testing.T, d *datadriven.TestData) string {
	p, order := readProblem(t, d)
	if d.Cmd == "plan" {
		return planDirective(t, d, p)
	}
	err := p.Check()
	if d.Cmd == "check" || err != nil {
		return fmt.Sprintln(err)
	}
	var out strings.Builder
	switch d.Cmd {
	case "mps":
		s := newPacker(p).schedule(order)
		show(&out, p, s, p.Value(s.Ends))
	case "fair":
		r := newRecorder(len(p.Jobs))
		ends := packFair(p, r)
		show(&out, p, r.schedule(order, ends), p.Value(ends))
	case "solve", "orderings":
		find := map[string]func(*Problem) (*Solution, error){"solve": Solve, "orderings": Orderings}[d.Cmd]
		s, err := find(p)
		if err != nil {
			return err.Error()
		}
		fmt.Fprintf(&out, "by %s: ", s.Method)
		show(&out, p, s.Schedule, s.Value)
	case "moldable":
		slots := p.moldable()
		ends := p.keys(func(j *Job) float64 { return 0 })
		for j, s := range slots {
			ends[j] = p.Jobs[j].Work / float64(s)
		}
		fmt.Fprintf(&out, "%.4g with slots %v, order %v\n", p.Value(ends), slots, names(p.moldableOrder(slots)))
	default:
		d.Fatalf(t, "no directive %q", d.Cmd)
	}
	return out.String()
}

func planDirective(t *testing.T, d *datadriven.TestData, p *Problem) string {
	var name string
	d.ScanArgs(t, "metric", &name)
	m, err := scheduler.ParseMetric(name)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	s := scheduler.Snapshot{Slots: p.Slots, Metric: m}
	for i, j := range p.Jobs {
		s.Jobs = append(s.Jobs, scheduler.Job{
			ID: wire.JobID{Start: 1, N: i + 1}, Work: j.Work, Min: j.Min, Max: j.Max,
			Goal: scheduler.Goal{Weight: j.Cost.Weight, Deadline: time.Duration(j.Cost.Due * float64(time.Second))},
		})
	}
	plan, err := Policy{}.Plan(s)
	if err != nil {
		return err.Error()
	}
	var out strings.Builder
	for _, target := range plan.Targets {
		fmt.Fprintf(&out, "job%d %d", target.Job.N, target.Slots)
		if target.End > 0 {
			fmt.Fprintf(&out, ", should end at %.4g", target.End)
		}
		fmt.Fprintln(&out)
	}
	return out.String()
}

// names converts indexes of jobs to their numbers in a scenario.
func names(order []int) []int {
	named := slices.Clone(order)
	for i := range named {
		named[i]++
	}
	return named
}

// show prints a schedule by intervals.
func show(out *strings.Builder, p *Problem, s *Schedule, value float64) {
	fmt.Fprintf(out, "%.4g\n", value)
	times := []float64{0}
	times = append(times, s.Ends...)
	slices.Sort(times)
	times = slices.CompactFunc(times, func(a, b float64) bool { return math.Abs(b-a) < 1e-9 })
	for i := range len(times) - 1 {
		fmt.Fprintf(out, "%.4g – %.4g:", times[i], times[i+1])
		for j := range p.Jobs {
			fmt.Fprintf(out, " %.4g", s.at(j, (times[i]+times[i+1])/2))
		}
		fmt.Fprintln(out)
	}
}

// at returns job j's slots at a time.
func (s *Schedule) at(j int, now float64) float64 {
	for _, piece := range s.Pieces {
		if piece.Job == j && piece.From <= now && now < piece.To {
			return piece.Slots
		}
	}
	return 0
}

func readProblem(t *testing.T, d *datadriven.TestData) (*Problem, []int) {
	p := new(Problem)
	m := scheduler.Metric{Penalty: scheduler.Response}
	var order []int
	for _, arg := range d.CmdArgs {
		var err error
		switch arg.Key {
		case "slots":
			p.Slots, err = strconv.Atoi(arg.Vals[0])
		case "metric":
			m, err = scheduler.ParseMetric(arg.Vals[0])
		case "order":
			for _, v := range arg.Vals {
				var n int
				if n, err = strconv.Atoi(v); err != nil {
					break
				}
				order = append(order, n-1)
			}
		}
		if err != nil {
			d.Fatalf(t, "%v: %v", arg, err)
		}
	}
	p.Aggregate = m.Aggregate
	for line := range strings.Lines(d.Input) {
		j := Job{Max: p.Slots, Cost: scheduler.Cost{Penalty: m.Penalty, Weight: 1}}
		for _, field := range strings.Fields(line) {
			if err := setField(&j, field); err != nil {
				d.Fatalf(t, "%q: %v", line, err)
			}
		}
		if m.Penalty == scheduler.Stretch {
			j.Cost.Penalty = scheduler.Response
			j.Cost.Weight /= j.Work
		}
		p.Jobs = append(p.Jobs, j)
	}
	return p, order
}

func setField(j *Job, field string) (err error) {
	name, value, _ := strings.Cut(field, "=")
	switch name {
	case "work":
		j.Work, err = strconv.ParseFloat(value, 64)
	case "min":
		j.Min, err = strconv.Atoi(value)
	case "max":
		j.Max, err = strconv.Atoi(value)
	case "weight":
		j.Cost.Weight, err = strconv.ParseFloat(value, 64)
	case "due":
		j.Cost.Due, err = strconv.ParseFloat(value, 64)
	case "levels":
		for level := range strings.SplitSeq(value, ",") {
			var l scheduler.Level
			if _, err = fmt.Sscanf(level, "%g:%g", &l.Due, &l.Cost); err != nil {
				break
			}
			j.Cost.Levels = append(j.Cost.Levels, l)
		}
	default:
		err = fmt.Errorf("no field %q", name)
	}
	return err
}
