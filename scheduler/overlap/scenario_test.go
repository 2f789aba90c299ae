package overlap_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/overlap"
	"github.com/quernmr/quern/wire"
)

// TestScenarios runs testdata/plan.txt, with one directive:
//
//	plan policy=P slots=N bandwidth=B [reduce]   the plan for jobs, one a line as in
//	                  "job1 max=4 min=1 work=10 alone=20", and shuffles, as in
//	                  "shuffle1 ready=10 left=20 whole=40 maps=20"; omitted fields are 0
//
// Policies are maxsrpt, splitsrpt, srpt.
func TestScenarios(t *testing.T) {
	datadriven.RunTest(t, "testdata/plan.txt", planDirective)
}

func planners() map[string]scheduler.Policy {
	return map[string]scheduler.Policy{"maxsrpt": overlap.MaxSRPT{}, "splitsrpt": overlap.SplitSRPT{}, "srpt": overlap.SRPT{}}
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

func planDirective(t *testing.T, d *datadriven.TestData) string {
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
	var name string
	d.ScanArgs(t, "policy", &name)
	policy, ok := planners()[name]
	if !ok {
		d.Fatalf(t, "unknown policy %s", name)
	}
	plan, err := policy.Plan(s)
	if err != nil {
		return fmt.Sprintln(err)
	}
	var out strings.Builder
	for _, target := range plan.Targets {
		fmt.Fprintf(&out, "job%d %d\n", target.Job.N, target.Slots)
	}
	for _, shuffle := range plan.ShuffleShares {
		fmt.Fprintf(&out, "shuffle%d %.4g\n", shuffle.Job.N, shuffle.Share)
	}
	if err := plan.Validate(s); err != nil {
		fmt.Fprintln(&out, err)
	}
	return out.String()
}

func id(n int) wire.JobID { return wire.JobID{Start: 1, N: n} }
