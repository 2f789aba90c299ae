package sim

import (
	"flag"
	"testing"
)

var lastingSeeds = flag.Int("lasting", 0, "number of seeds for TestLasting")

func TestLasting(t *testing.T) {
	type tally struct{ runs, failed int }
	kinds := make(map[Kind]*tally)
	shown := make(map[Kind]int)
	for seed := uint64(1); seed <= uint64(*lastingSeeds); seed++ {
		r := RunLasting(Options{Seed: seed})
		for _, k := range lastingKinds() {
			if kinds[k] == nil {
				kinds[k] = &tally{}
			}
		}
		k := r.Faults[0].Kind
		kinds[k].runs++
		if r.Violation != "" {
			kinds[k].failed++
			if shown[k]++; shown[k] <= 2 {
				t.Logf("seed %d %v: %.600s", seed, r.Faults, r.Violation)
			}
		}
	}
	for _, k := range lastingKinds() {
		t.Logf("%s: %d of %d fail", k, kinds[k].failed, kinds[k].runs)
	}
}
