package sim

import (
	"flag"
	"fmt"
	"testing"

	"github.com/quernmr/quern/wire"
)

var (
	seeds     = flag.Int("seeds", 0, "how many seeds TestStorms plays; 0: as many as fit")
	firstSeed = flag.Uint64("seed", 1, "the first of them")
)

// TestStorms plays random clusters. A failing seed is shrunk and printed as the
// command that plays it again.
func TestStorms(t *testing.T) {
	outcomes := make(map[wire.State]int)
	n := *seeds
	if n == 0 {
		n = 500
		if raceEnabled {
			n = 60
		}
	}
	for i := range n {
		r := Run(Options{Seed: *firstSeed + uint64(i)})
		for s, n := range r.Outcomes {
			outcomes[s] += n
		}
		if r.Violation != "" {
			t.Errorf("%s", explain(r))
		}
	}
	t.Logf("succeeded %d, failed %d, killed %d", outcomes[wire.Succeeded], outcomes[wire.Failed], outcomes[wire.Killed])
}

func explain(r *Result) string {
	r = Shrink(r, 40)
	text := fmt.Sprintf("%s\n  %s\n", r.Violation, r.Command())
	for _, i := range r.Kept {
		text += fmt.Sprintf("  fault %d: %v\n", i, r.Faults[i])
	}
	return text
}

// TestCalm: without faults every job succeeds.
func TestCalm(t *testing.T) {
	for seed := range uint64(20) {
		r := Run(Options{Seed: seed, Calm: true})
		if r.Violation != "" {
			t.Errorf("%s: %s\n", r.Command(), r.Violation)
			for _, l := range r.Trace[max(0, len(r.Trace)-60):] {
				t.Log(l)
			}
			t.FailNow()
		}
	}
}

// TestSabotage: each rule of the models that is switched off is missed.
func TestSabotage(t *testing.T) {
	for _, s := range sabotages() {
		t.Run(string(s), func(t *testing.T) {
			const enough = 400
			for seed := uint64(1); seed <= enough; seed++ {
				if r := Run(Options{Seed: seed, sabotage: s}); r.Violation != "" {
					t.Logf("seed %d: %.200s", seed, r.Violation)
					return
				}
			}
			t.Errorf("%d seeds did not find out that %s", enough, s)
		})
	}
}
