package flowflex

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/wire"
)

// planScenario prints the Plan of a snapshot: plan slots=N [metric=M] [phase=reduce]
//
//	job N [arrived=D] [min=N] max=N [work=W] [flow=N] [deadline=D] [weight=W]
//	later N phase=reduce max=N [work=W] [flow=N] [lag=T] [after=N.map,N.reduce…] …
//	whole N alone=T                  Flow.Alone of flow N, or of job N outside flows
func planScenario(t *testing.T, d *datadriven.TestData) string {
	s := scheduler.Snapshot{Phase: wire.Map}
	d.ScanArgs(t, "slots", &s.Slots)
	if d.HasArg("metric") {
		var name string
		var err error
		d.ScanArgs(t, "metric", &name)
		if s.Metric, err = scheduler.ParseMetric(name); err != nil {
			d.Fatalf(t, "%v", err)
		}
	}
	if d.HasArg("phase") {
		s.Phase = wire.Reduce
	}
	for line := range strings.Lines(d.Input) {
		readPhase(t, d, &s, line)
	}
	plan, err := Policy{}.Plan(s)
	if err != nil {
		return err.Error()
	}
	var out strings.Builder
	for _, target := range plan.Targets {
		fmt.Fprintf(&out, "job%d %d, ends in %.6g\n", target.Job.N, target.Slots, target.End)
	}
	for _, err := range []error{plan.Validate(s), plan.CheckMinima(s)} {
		if err != nil {
			fmt.Fprintln(&out, err)
		}
	}
	return out.String()
}

func readPhase(t *testing.T, d *datadriven.TestData, s *scheduler.Snapshot, line string) {
	fields := strings.Fields(line)
	var n int
	fmt.Sscan(fields[1], &n)
	j := scheduler.Job{ID: wire.JobID{Start: 1, N: n}}
	l := scheduler.LaterPhase{ID: j.ID}
	whole := scheduler.Flow{First: n}
	for _, field := range fields[2:] {
		name, value, _ := strings.Cut(field, "=")
		var err error
		switch name {
		case "arrived":
			j.Arrived, err = time.ParseDuration(value)
		case "deadline":
			j.Goal.Deadline, err = time.ParseDuration(value)
		case "weight":
			_, err = fmt.Sscan(value, &j.Goal.Weight)
		case "min":
			_, err = fmt.Sscan(value, &j.Min)
		case "max":
			_, err = fmt.Sscan(value, &j.Max)
		case "work":
			_, err = fmt.Sscan(value, &j.Work)
		case "flow":
			_, err = fmt.Sscan(value, &j.Flow)
		case "lag":
			_, err = fmt.Sscan(value, &l.Lag)
		case "alone":
			_, err = fmt.Sscan(value, &whole.Alone)
		case "phase":
			l.Phase = phaseNamed(value)
		case "after":
			for before := range strings.SplitSeq(value, ",") {
				number, phase, _ := strings.Cut(before, ".")
				id := scheduler.PhaseID{Job: wire.JobID{Start: 1}, Phase: phaseNamed(phase)}
				_, err = fmt.Sscan(number, &id.Job.N)
				l.After = append(l.After, id)
			}
		default:
			d.Fatalf(t, "%q", field)
		}
		if err != nil {
			d.Fatalf(t, "%q: %v", field, err)
		}
	}
	switch fields[0] {
	case "job":
		s.Jobs = append(s.Jobs, j)
	case "whole":
		s.Flows = append(s.Flows, whole)
	default:
		l.Max, l.Work, l.Flow, l.Goal = j.Max, j.Work, j.Flow, j.Goal
		s.Later = append(s.Later, l)
	}
}

func phaseNamed(name string) wire.Kind {
	if name == "reduce" {
		return wire.Reduce
	}
	return wire.Map
}
