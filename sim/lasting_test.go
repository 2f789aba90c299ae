package sim

import (
	"flag"
	"strings"
	"testing"
)

var lastingSeeds = flag.Int("lasting", 60, "number of seeds for TestLasting")

// One run in lateShare may be late. Of the seeds from 1 to 3,300 one is: 1225. Of the later ones
// that were late with an earlier core these still are: 7172, 8068, 8682.
// Several kinds of faults, one after the other, delay each of the short jobs of a flow; or half of
// the task trackers are split from the rest, or slow, and one home after the other finds that out.
const lateShare = 500

// TestLasting: lasting faults of up to half of the task trackers fail no job, and all jobs end in
// time.
func TestLasting(t *testing.T) {
	withoutRace(t)
	t.Parallel()
	seeds := []uint64{70, 2310, 2389, 3546, 4504, 5448} // they have failed
	for seed := range uint64(*lastingSeeds) {
		seeds = append(seeds, seed+1)
	}
	missing := make(map[Kind]bool)
	for _, k := range lastingKinds() {
		missing[k] = true
	}
	allowed := *lastingSeeds / lateShare
	for _, seed := range seeds {
		r := Run(Options{Seed: seed, Lasting: true})
		for _, f := range r.Faults {
			delete(missing, f.Kind)
		}
		if late := strings.HasPrefix(r.Violation, "L1"); late && allowed > 0 {
			allowed--
			t.Logf("late: %s", r.Command())
		} else if r.Violation != "" {
			t.Errorf("%s", explain(Shrink(r, 20)))
		}
	}
	for k := range missing {
		t.Errorf("no run has the fault: %s", k)
	}
}
