package sim

import (
	"flag"
	"testing"
)

var lastingSeeds = flag.Int("lasting", 0, "number of seeds for TestLasting; 0: 60, or fewer with the race detector")

// TestLasting: lasting faults of up to half of the task trackers fail no job, and all jobs end in
// time.
func TestLasting(t *testing.T) {
	t.Parallel()
	n := *lastingSeeds
	switch {
	case n > 0:
	case raceEnabled:
		n = 16
	default:
		n = 60
	}
	seeds := []uint64{70, 2389} // they have failed
	for seed := range uint64(n) {
		seeds = append(seeds, seed+1)
	}
	missing := make(map[Kind]bool)
	for _, k := range lastingKinds() {
		missing[k] = true
	}
	for _, seed := range seeds {
		r := Run(Options{Seed: seed, Lasting: true})
		for _, f := range r.Faults {
			delete(missing, f.Kind)
		}
		if r.Violation != "" {
			t.Errorf("%s", explain(Shrink(r, 20)))
		}
	}
	for k := range missing {
		t.Errorf("no run has the fault: %s", k)
	}
}
