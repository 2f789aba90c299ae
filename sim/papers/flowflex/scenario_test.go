package flowflex

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/flowflex"
)

// TestScenarios runs testdata/*.txt. The problem is given as in the scenarios
// of scheduler/flowflex:
//
//	flow NAME [due=T] [weight=W] [steps=T:COST,T:COST…]
//	JOB work=W [max=M] [after=JOB,JOB…]
//
// and the directive is
//
//	solve slots=N metric=M [relax] [printed]   the schedule found, and the bounds
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
	if d.Cmd != "solve" {
		d.Fatalf(t, "unknown directive")
	}
	var name string
	d.ScanArgs(t, "metric", &name)
	metric, err := scheduler.ParseMetric(name)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	p := readProblem(t, d, metric)
	d.ScanArgs(t, "slots", &p.Slots)
	var out strings.Builder
	writeSolved(t, d, &out, p, metric)
	return out.String()
}

func readProblem(t *testing.T, d *datadriven.TestData, metric scheduler.Metric) (p flowflex.Problem) {
	number := func(text string) float64 {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		return x
	}
	for line := range strings.Lines(d.Input) {
		fields := strings.Fields(line)
		if fields[0] == "flow" {
			f := flowflex.Flow{ID: fields[1], Cost: scheduler.Cost{Penalty: metric.Penalty, Weight: 1, Due: 1e9}}
			for _, field := range fields[2:] {
				name, value, _ := strings.Cut(field, "=")
				switch name {
				case "due":
					f.Cost.Due = number(value)
				case "weight":
					f.Cost.Weight = number(value)
				case "steps":
					for step := range strings.SplitSeq(value, ",") {
						due, cost, _ := strings.Cut(step, ":")
						f.Cost.Levels = append(f.Cost.Levels, scheduler.Level{Due: number(due), Cost: number(cost)})
					}
				}
			}
			p.Flows = append(p.Flows, f)
			continue
		}
		f := &p.Flows[len(p.Flows)-1]
		j := flowflex.Job{ID: fields[0], Max: 1}
		for _, field := range fields[1:] {
			name, value, _ := strings.Cut(field, "=")
			switch name {
			case "work":
				j.Work = number(value)
			case "max":
				j.Max = int(number(value))
			case "after":
				for before := range strings.SplitSeq(value, ",") {
					j.After = append(j.After, named(f.Jobs, before))
				}
			}
		}
		f.Jobs = append(f.Jobs, j)
	}
	return p
}

// named returns the position of a job, given by name or as a number; -1 if neither.
func named(jobs []flowflex.Job, id string) int {
	if i := slices.IndexFunc(jobs, func(j flowflex.Job) bool { return j.ID == id }); i >= 0 {
		return i
	}
	n, err := strconv.Atoi(id)
	if err != nil {
		return -1
	}
	return n
}

func writeSolved(t *testing.T, d *datadriven.TestData, out *strings.Builder, p flowflex.Problem, metric scheduler.Metric) {
	v := variant{relax: d.HasArg("relax")}
	if d.HasArg("printed") {
		v.name = asPrinted
	}
	deadlines, err := relaxedDeadlines(p)
	fatal(t, err)
	s, err := v.solve(p, metric.Aggregate, deadlines)
	if err != nil {
		fmt.Fprintln(out, err)
		return
	}
	fmt.Fprintf(out, "cost %.6g", s.Cost)
	if metric.Aggregate == scheduler.Max {
		bound, err := maxBound(p)
		fmt.Fprintf(out, ", bound %.6g", bound)
		fatal(t, err)
	} else {
		whole, err := integralBound(p)
		fatal(t, err)
		flow, err := flowBound(p, boundGrid)
		fatal(t, err)
		fmt.Fprintf(out, ", integral bound %.6g, flow bound %.6g", whole, flow)
	}
	fmt.Fprintln(out)
	for _, i := range s.Order {
		fmt.Fprintf(out, "%s ends at %.6g\n", p.Flows[i].ID, s.Completion[i])
	}
	fmt.Fprint(out, "now:")
	for _, share := range s.Now {
		f := p.Flows[share.Flow]
		fmt.Fprintf(out, " %s.%s×%d", f.ID, f.Jobs[share.Job].ID, share.Slots)
	}
	fmt.Fprintln(out)
}

func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
