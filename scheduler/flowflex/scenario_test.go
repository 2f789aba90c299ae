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
)

// TestScenarios runs testdata/*.txt. The problem is given as
//
//	flow NAME [due=T] [weight=W] [steps=T:COST,T:COST…]
//	JOB work=W [max=M] [after=JOB,JOB…]
//
// and the directives are
//
//	chain slots=N                      stage 1: each flow's pseudo-jobs, volume, critical path, Q
//	pack slots=N order=(F,F…) [chains] stage 2a: intervals with the slots of each job
//	pack slots=N by=start|end          the same with jobs by the latest time of their start or end
//	reject slots=N                     the error of the problem
//	shift slots=N order=(F,F…)         stage 3: the chains' schedule as slots of jobs
func TestScenarios(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				if d.Cmd == "plan" {
					return planScenario(t, d)
				}
				return scenario(t, d)
			})
		})
	}
}

func scenario(t *testing.T, d *datadriven.TestData) string {
	p := readProblem(t, d)
	d.ScanArgs(t, "slots", &p.Slots)
	made, err := prepare(p)
	if err != nil {
		return err.Error()
	}
	var out strings.Builder
	switch d.Cmd {
	case "chain":
		writeChains(&out, p, made)
	case "pack", "shift":
		writePacked(t, d, &out, p, made)
	default:
		d.Fatalf(t, "unknown directive")
	}
	return out.String()
}

func readProblem(t *testing.T, d *datadriven.TestData) (p Problem) {
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
			f := Flow{ID: fields[1], Cost: scheduler.Cost{Weight: 1, Due: 1e9}}
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
		j := Job{ID: fields[0], Max: 1}
		for _, field := range fields[1:] {
			name, value, _ := strings.Cut(field, "=")
			switch name {
			case "work":
				j.Work = number(value)
			case "max":
				j.Max = int(number(value))
			case "after":
				for before := range strings.SplitSeq(value, ",") {
					j.After = append(j.After, jobNumber(f.Jobs, before))
				}
			}
		}
		f.Jobs = append(f.Jobs, j)
	}
	return p
}

// jobNumber returns the index of the job with this id, or the number in id if there is none.
func jobNumber(jobs []Job, id string) int {
	if i := slices.IndexFunc(jobs, func(j Job) bool { return j.ID == id }); i >= 0 {
		return i
	}
	n, err := strconv.Atoi(id)
	if err != nil {
		return -1
	}
	return n
}

func writeChains(out *strings.Builder, p Problem, made *problem) {
	for i := range made.chains {
		c := &made.chains[i]
		fmt.Fprintf(out, "%s: volume %.6g, critical path %.6g, Q %.6g\n", p.Flows[i].ID, c.volume, c.path, c.q)
		for k, j := range c.jobs {
			fmt.Fprintf(out, "  %d: work %.6g max %g:", k+1, j.work, j.max)
			for _, part := range c.allocations(int32(k)) {
				fmt.Fprintf(out, " %s×%d", p.Flows[i].Jobs[part.job].ID, part.slots)
			}
			fmt.Fprintln(out)
		}
	}
}

func writePacked(t *testing.T, d *datadriven.TestData, out *strings.Builder, p Problem, made *problem) {
	var order []int32
	arg, _ := d.Arg("order")
	for _, name := range arg.Vals {
		order = append(order, int32(slices.IndexFunc(p.Flows, func(f Flow) bool { return f.ID == name })))
	}
	if slices.Contains(order, -1) {
		d.Fatalf(t, "order names no flow")
	}
	packer, chains := newPacker(p.Slots, made.graphFlows()), d.HasArg("chains") || d.Cmd == "shift"
	if chains {
		packer = newPacker(p.Slots, made.chainFlows())
	}
	packer.record = func(at span) {
		fmt.Fprintf(out, "%.6g to %.6g:", at.from, at.to)
		for _, r := range at.runs {
			r.job = packer.local(r)
			id := strconv.Itoa(int(r.job) + 1)
			if !chains {
				id = p.Flows[r.flow].Jobs[r.job].ID
			}
			fmt.Fprintf(out, " %s.%s×%g", p.Flows[r.flow].ID, id, r.slots)
		}
		fmt.Fprintln(out)
		for _, r := range at.runs {
			if d.Cmd != "shift" {
				break
			}
			r.job = packer.local(r)
			c := &made.chains[r.flow]
			for _, a := range c.shift(nil, c.allocations(r.job), at, r) {
				fmt.Fprintf(out, "  %s.%s×%d from %.6g to %.6g\n", p.Flows[r.flow].ID, p.Flows[r.flow].Jobs[a.Job].ID, a.Slots, a.From, a.To)
			}
			fmt.Fprintf(out, "  in proportion:")
			for _, s := range c.proportional(nil, c.allocations(r.job), r) {
				fmt.Fprintf(out, " %s.%s×%d", p.Flows[r.flow].ID, p.Flows[r.flow].Jobs[s.Job].ID, s.Slots)
			}
			fmt.Fprintln(out)
		}
	}
	pack := packer.pack
	if d.HasArg("by") {
		deadlines := make([]float64, len(p.Flows))
		for i, f := range p.Flows {
			deadlines[i] = f.Cost.Due
		}
		var name string
		d.ScanArgs(t, "by", &name)
		by := map[string]packRule{"start": byStart, "end": byEnd}[name]
		pack = func([]int32) []float64 { return packer.packJobs(deadlines, by) }
	}
	for i, end := range pack(order) {
		fmt.Fprintf(out, "%s ends at %.6g\n", p.Flows[i].ID, end)
	}
}
