package sim

import (
	"flag"
	"testing"
	"time"
)

var rotatingSeeds = flag.Int("rotating", 12, "number of seeds for TestRotating")

// TestRotating: faults that last on one half of the task trackers, then on others, fail no job, and all
// jobs end in time.
func TestRotating(t *testing.T) {
	withoutRace(t)
	t.Parallel()
	missing := make(map[Kind]bool)
	for _, k := range rotatingKinds() {
		missing[k] = true
	}
	seeds := []uint64{2, 15} // they have failed
	for seed := range uint64(*rotatingSeeds) {
		seeds = append(seeds, seed+16)
	}
	for _, seed := range seeds {
		r := Run(Options{Seed: seed, Rotating: true})
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

// TestDrawRotating: at any time at most half of the task trackers have a fault, and each only one.
func TestDrawRotating(t *testing.T) {
	for seed := range uint64(100) {
		trackers, faults := drawRotating(seed)
		for at := time.Duration(0); at < rotatingTime; at += time.Second {
			sick := make(map[string]bool)
			for _, f := range faults {
				if f.At <= at && at < f.At+f.For {
					if sick[f.Node] {
						t.Fatalf("seed %d: at %v %s has two faults", seed, at, f.Node)
					}
					sick[f.Node] = true
				}
			}
			if 2*len(sick) > trackers {
				t.Fatalf("seed %d: at %v %d of %d task trackers have a fault", seed, at, len(sick), trackers)
			}
		}
	}
}
