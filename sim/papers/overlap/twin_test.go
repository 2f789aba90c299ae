package overlap

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/sim/papers"
)

func twins() map[string]ratesOf {
	return map[string]ratesOf{
		maxSRPTName: maxSRPTRates,
		splitName:   splitSRPTRates,
		strictName:  strictRates,
		srptName:    srptRates,
		lpsName:     modelLPS(lpsLimit),
	}
}

// TestTwins compares each engine with its policy in the model.
func TestTwins(t *testing.T) {
	for name, policy := range twins() {
		t.Run(name, func(t *testing.T) {
			load := 0.9
			if name == strictName {
				load = 0.5
			}
			for seed := range uint64(20) {
				w := paperWorkload(load)
				if seed%2 == 0 {
					w.mapSigma, w.ratioSigma = 0.3, 0.3
				}
				s := &source{workload: w, rand: papers.Rand(seed, "twins", 0)}
				jobs := make([]arrival, 1000)
				s.fill(jobs)
				compare(t, newEngine(name), policy, jobs)
			}
		})
	}
}

func TestTwinsRapid(t *testing.T) {
	for name, policy := range twins() {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				// Nearly equal sizes may be served in either order, so noise avoids them.
				noise := papers.Rand(rapid.Uint64().Draw(t, "noise"), "noise", 0)
				size := rapid.Float64Range(0.1, 10)
				jobs := make([]arrival, rapid.IntRange(1, 30).Draw(t, "jobs"))
				at := 0.0
				for i := range jobs {
					jobs[i] = arrival{at, size.Draw(t, "x") + noise.Float64(), size.Draw(t, "ratio") + noise.Float64()}
					at += rapid.Float64Range(0, 5).Draw(t, "gap")
				}
				compare(t, newEngine(name), policy, jobs)
			})
		})
	}
}

type fataler interface{ Fatalf(string, ...any) }

func compare(t fataler, e engine, policy ratesOf, jobs []arrival) {
	arrivals := make([]modelArrival, len(jobs))
	for i, j := range jobs {
		arrivals[i] = modelArrival{At: j.at, Map: j.x, Shuffle: j.x * j.ratio}
		e.arrive(j)
	}
	e.finish()
	ends, err := runModel(policy, arrivals, nil)
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

// TestBoundTwin compares the engine's bound with the model's.
func TestBoundTwin(t *testing.T) {
	for seed := range uint64(20) {
		s := &source{workload: paperWorkload(0.9), rand: papers.Rand(seed, "twins", 0)}
		jobs := make([]arrival, 1000)
		s.fill(jobs)
		arrivals := make([]modelArrival, len(jobs))
		e := newEngine(boundName)
		for i, j := range jobs {
			arrivals[i] = modelArrival{At: j.at, Map: j.x, Shuffle: j.x * j.ratio}
			e.arrive(j)
		}
		e.finish()
		want, err := modelBound(arrivals)
		if got := e.result().responses; err != nil || math.Abs(got-want) > 1e-6*want {
			t.Fatalf("seed %d: %v, want %v (%v)", seed, got, want, err)
		}
	}
}

// TestFewLPS compares k-LPS with a small k, so that jobs wait for the map.
func TestFewLPS(t *testing.T) {
	s := &source{workload: paperWorkload(0.9), rand: papers.Rand(1, "few", 0)}
	for _, k := range []int{1, 2, 5} {
		jobs := make([]arrival, 1000)
		s.fill(jobs)
		compare(t, newLPS(k, false), modelLPS(k), jobs)
		s.now = 0
	}
}
