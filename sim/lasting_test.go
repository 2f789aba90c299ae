package sim

import (
	"flag"
	"slices"
	"testing"
)

var (
	lastingSeeds = flag.Int("lasting", 0, "number of seeds for TestLasting; 0: some")
	unanswered   = flag.Bool("unanswered", false, "TestLasting: run faults that Quern does not answer yet, too")
)

// unansweredKinds lists the lasting faults that still delay jobs beyond the bound: a slow home or a
// slow reduce is noticed too late for short jobs.
func unansweredKinds() []Kind {
	return []Kind{SlowProcessor, SlowDisk, SlowNetwork}
}

// TestLasting: lasting faults of up to half of the task trackers fail no job, and the jobs end in
// time. The bound is in RunLasting.
func TestLasting(t *testing.T) {
	runs := make(map[Kind]int)
	left := 100
	if *lastingSeeds > 0 {
		left = *lastingSeeds
	}
	for seed := uint64(1); left > 0; seed++ {
		_, faults := drawLasting(seed)
		if !*unanswered && slices.ContainsFunc(faults, func(f Fault) bool { return slices.Contains(unansweredKinds(), f.Kind) }) {
			continue
		}
		left--
		for _, f := range faults {
			runs[f.Kind]++
		}
		if r := RunLasting(Options{Seed: seed}); r.Violation != "" {
			t.Errorf("seed %d: %v: %.500s", seed, r.Faults, r.Violation)
		}
	}
	for _, k := range lastingKinds() {
		if runs[k] == 0 && (*unanswered || !slices.Contains(unansweredKinds(), k)) {
			t.Errorf("no run had the fault: %s", k)
		}
	}
}
