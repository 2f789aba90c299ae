package sim

import (
	"flag"
	"slices"
	"testing"
)

var (
	lastingSeeds = flag.Int("lasting", 0, "number of seeds for TestLasting; 0: 60, or fewer with the race detector")
	unanswered   = flag.Bool("unanswered", false, "TestLasting: run faults that Quern does not answer yet, too")
)

// unansweredKinds lists the lasting faults that still delay jobs of one seed in a hundred beyond the
// bound: a slow home, map or reduce of a short job is noticed too late.
func unansweredKinds() []Kind {
	return []Kind{SlowProcessor, SlowDisk, SlowNetwork}
}

// TestLasting: lasting faults of up to half of the task trackers fail no job, and all jobs end in
// time.
func TestLasting(t *testing.T) {
	t.Parallel()
	left := *lastingSeeds
	switch {
	case left > 0:
	case raceEnabled:
		left = 15
	default:
		left = 60
	}
	missing := make(map[Kind]bool)
	for _, k := range lastingKinds() {
		missing[k] = *unanswered || !slices.Contains(unansweredKinds(), k)
	}
	for seed := uint64(1); left > 0; seed++ {
		_, faults := drawLasting(seed)
		if !*unanswered && slices.ContainsFunc(faults, func(f Fault) bool { return slices.Contains(unansweredKinds(), f.Kind) }) {
			continue
		}
		left--
		for _, f := range faults {
			missing[f.Kind] = false
		}
		if r := Run(Options{Seed: seed, Lasting: true}); r.Violation != "" {
			t.Errorf("%s", explain(Shrink(r, 20)))
		}
	}
	for k, none := range missing {
		if none {
			t.Errorf("no run has the fault: %s", k)
		}
	}
}
