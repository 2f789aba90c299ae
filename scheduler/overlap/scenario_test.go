package overlap_test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/overlap"
	"github.com/quernmr/quern/wire"
)

// TestScenarios runs testdata/*.txt. Directives:
//
//	run policy=P      the policy's spans and ends for the arrivals given, one a line as in
//	                  "at=0 x=1 y=2"; rates are map, shuffle for each job served
//	ends policy=P     the ends alone
//	bound             the lower bound of the sum of response times
//	plan policy=P slots=N bandwidth=B [reduce]   the plan for jobs, one a line as in
//	                  "job1 max=4 min=1 work=10 alone=20", and shuffles, as in
//	                  "shuffle1 ready=10 left=20 whole=40 maps=20"; what is left out is 0
//
// Policies are maxsrpt, splitsrpt, strict, srpt, lps=K, order=0,2,1 (at both stations).
func TestScenarios(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			datadriven.RunTest(t, path, directive)
		})
	}
}

func directive(t *testing.T, d *datadriven.TestData) string {
	var out strings.Builder
	switch d.Cmd {
	case "run", "ends":
		runDirective(t, d, &out)
	case "bound":
		sum, err := overlap.Bound(readArrivals(t, d))
		if err != nil {
			return err.Error()
		}
		fmt.Fprintf(&out, "%.6g\n", sum)
	case "plan":
		planDirective(t, d, &out)
	default:
		d.Fatalf(t, "unknown directive %s", d.Cmd)
	}
	return out.String()
}

func runDirective(t *testing.T, d *datadriven.TestData, out *strings.Builder) {
	arrivals := readArrivals(t, d)
	observe := func(s *overlap.Span) {
		fmt.Fprintf(out, "%.6g to %.6g:", s.From, s.To)
		for i, j := range s.Jobs {
			if s.Maps[i] > 0 || s.Shuffles[i] > 0 {
				fmt.Fprintf(out, " %d (%.4g, %.4g)", j.Number, s.Maps[i], s.Shuffles[i])
			}
		}
		fmt.Fprintln(out)
	}
	if d.Cmd == "ends" {
		observe = nil
	}
	ends, err := overlap.Run(readPolicy(t, d), arrivals, observe)
	if err != nil {
		fmt.Fprintln(out, err)
		return
	}
	fmt.Fprint(out, "ends")
	sum := 0.0
	for i, end := range ends {
		fmt.Fprintf(out, " %.6g", end)
		sum += end - arrivals[i].At
	}
	fmt.Fprintf(out, "; responses %.6g\n", sum)
}

func readPolicy(t *testing.T, d *datadriven.TestData) overlap.Policy {
	var name string
	d.ScanArgs(t, "policy", &name)
	name, arg, _ := strings.Cut(name, "=")
	switch name {
	case "maxsrpt":
		return overlap.MaxSRPT{}
	case "splitsrpt":
		return overlap.SplitSRPT{}
	case "strict":
		return overlap.SplitSRPT{Strict: true}
	case "srpt":
		return overlap.SRPT{}
	case "lps":
		k, err := strconv.Atoi(arg)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		return overlap.LPS{K: k}
	case "order":
		var order []int
		for _, number := range strings.Split(arg, "-") {
			n, err := strconv.Atoi(number)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			order = append(order, n)
		}
		return overlap.InOrder{Maps: order, Shuffles: order}
	}
	d.Fatalf(t, "unknown policy %s", name)
	return nil
}

// fields reads "name a=1 b=2".
func fields(t *testing.T, d *datadriven.TestData, line string) (name string, values map[string]float64) {
	values = make(map[string]float64)
	for _, word := range strings.Fields(line) {
		key, text, ok := strings.Cut(word, "=")
		if !ok {
			name = word
			continue
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			d.Fatalf(t, "%q: %v", line, err)
		}
		values[key] = v
	}
	return name, values
}

func readArrivals(t *testing.T, d *datadriven.TestData) (arrivals []overlap.Arrival) {
	for line := range strings.Lines(d.Input) {
		_, v := fields(t, d, line)
		arrivals = append(arrivals, overlap.Arrival{At: v["at"], Map: v["x"], Shuffle: v["y"]})
	}
	return arrivals
}

func planDirective(t *testing.T, d *datadriven.TestData, out *strings.Builder) {
	s := scheduler.Snapshot{Phase: wire.Map}
	for _, arg := range d.CmdArgs {
		switch arg.Key {
		case "slots":
			s.Slots, _ = strconv.Atoi(arg.Vals[0])
		case "bandwidth":
			s.Bandwidth, _ = strconv.ParseFloat(arg.Vals[0], 64)
		case "reduce":
			s.Phase = wire.Reduce
		}
	}
	for line := range strings.Lines(d.Input) {
		name, v := fields(t, d, line)
		var n int
		if _, err := fmt.Sscanf(name, "shuffle%d", &n); err == nil {
			s.Transfers = append(s.Transfers, scheduler.Transfer{ID: id(n), Ready: v["ready"], Left: v["left"], Whole: v["whole"], Maps: v["maps"]})
			continue
		}
		if _, err := fmt.Sscanf(name, "job%d", &n); err != nil {
			d.Fatalf(t, "%q: %v", line, err)
		}
		s.Jobs = append(s.Jobs, scheduler.Job{ID: id(n), Max: int(v["max"]), Min: int(v["min"]), Work: v["work"], Alone: v["alone"]})
	}
	planner, ok := readPolicy(t, d).(scheduler.Policy)
	if !ok {
		d.Fatalf(t, "the policy makes no plans")
	}
	plan, err := planner.Plan(s)
	if err != nil {
		fmt.Fprintln(out, err)
		return
	}
	for _, target := range plan.Targets {
		fmt.Fprintf(out, "job%d %d\n", target.Job.N, target.Slots)
	}
	for _, portion := range plan.Portions {
		fmt.Fprintf(out, "shuffle%d %.4g\n", portion.Job.N, portion.Share)
	}
	if err := plan.Validate(s); err != nil {
		fmt.Fprintln(out, err)
	}
}

func id(n int) wire.JobID { return wire.JobID{Start: 1, N: n} }
