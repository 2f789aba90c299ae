package overlap

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/scheduler/overlap"
	"github.com/quernmr/quern/sim/papers"
)

func twins() map[string]overlap.Policy {
	return map[string]overlap.Policy{
		"maxsrpt":   overlap.MaxSRPT{},
		"splitsrpt": overlap.SplitSRPT{},
		"srpt":      overlap.SRPT{},
		"k-lps":     overlap.LPS{K: 100},
	}
}

// TestTwins: each engine gives what the policy itself gives, rate by rate.
func TestTwins(t *testing.T) {
	for name, policy := range twins() {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(30) {
				w := paperWorkload(0.9)
				if seed%2 == 0 {
					w.mapSigma, w.ratioSigma = 0.3, 0.3
				}
				s := &source{workload: w, rand: papers.Rand(seed, "twins", 0)}
				jobs := make([]arrival, 3000)
				s.fill(jobs)
				compare(t, engines()[name](), policy, jobs)
			}
		})
	}
}

func TestTwinsRapid(t *testing.T) {
	for name, policy := range twins() {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				// Nearly equal sizes may be served either way round, so none are.
				noise := papers.Rand(rapid.Uint64().Draw(t, "noise"), "noise", 0)
				size := rapid.Float64Range(0.1, 10)
				jobs := make([]arrival, rapid.IntRange(1, 30).Draw(t, "jobs"))
				at := 0.0
				for i := range jobs {
					jobs[i] = arrival{at, size.Draw(t, "x") + noise.Float64(), size.Draw(t, "ratio") + noise.Float64()}
					at += rapid.Float64Range(0, 5).Draw(t, "gap")
				}
				compare(t, engines()[name](), policy, jobs)
			})
		})
	}
}

type fataler interface{ Fatalf(string, ...any) }

func compare(t fataler, e engine, policy overlap.Policy, jobs []arrival) {
	arrivals := make([]overlap.Arrival, len(jobs))
	for i, j := range jobs {
		arrivals[i] = overlap.Arrival{At: j.at, Map: j.x, Shuffle: j.x * j.ratio}
		e.arrive(j)
	}
	e.finish()
	ends, err := overlap.Run(policy, arrivals, nil)
	if err != nil {
		t.Fatalf("%v", err)
	}
	want := 0.0
	for i, end := range ends {
		want += end - arrivals[i].At
	}
	got := e.result()
	if got.finished != len(jobs) || math.Abs(got.responses-want) > 1e-6*want {
		t.Fatalf("%d jobs took %v in all, want %v", got.finished, got.responses, want)
	}
}
