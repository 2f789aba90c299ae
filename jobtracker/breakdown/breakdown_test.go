package breakdown

import (
	"cmp"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/wire"
)

// TestOf compares a breakdown with lists of all attempts.
func TestOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const now = 1_000_000
		var all []wire.AttemptStatus
		for n := range rapid.IntRange(0, 80).Draw(t, "attempts") {
			kind := rapid.SampledFrom([]wire.Kind{wire.Setup, wire.Map, wire.Map, wire.Reduce}).Draw(t, "kind")
			a := wire.AttemptStatus{
				Attempt: wire.AttemptID{Task: wire.TaskID{Kind: kind, N: n}, N: 1},
				State:   rapid.SampledFrom([]wire.AttemptState{wire.AttemptRunning, wire.AttemptReady, wire.AttemptSucceeded, wire.AttemptSucceeded, wire.AttemptFailed, wire.AttemptKilled}).Draw(t, "state"),
				Began:   now - rapid.Int64Range(0, 5000).Draw(t, "age"), Level: wire.Level(rapid.IntRange(0, int(wire.Remote)).Draw(t, "level")),
			}
			if a.State.Final() {
				a.Took = rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(0, 5000)).Draw(t, "took")
			}
			all = append(all, a)
		}
		b := Of(slices.Values(all), now)
		failed := slices.DeleteFunc(slices.Clone(all), func(a wire.AttemptStatus) bool { return a.State != wire.AttemptFailed })
		slices.SortStableFunc(failed, func(a, b wire.AttemptStatus) int { return cmp.Compare(a.Began+a.Took, b.Began+b.Took) })
		if b.Failed != len(failed) || (b.Failure == nil) != (len(failed) == 0) || b.Failure != nil && b.Failure.Began+b.Failure.Took != failed[0].Began+failed[0].Took {
			t.Fatalf("%d failures, the first %+v; want %d, %+v", b.Failed, b.Failure, len(failed), failed)
		}
		levels := 0
		for _, n := range b.Levels {
			levels += n
		}
		if levels != b.Phases[0].Tasks {
			t.Fatalf("%d maps by locality, %d have succeeded", levels, b.Phases[0].Tasks)
		}
		for phase, kind := range []wire.Kind{wire.Map, wire.Reduce} {
			checkPhase(t, &b.Phases[phase], slices.DeleteFunc(slices.Clone(all), func(a wire.AttemptStatus) bool { return a.Attempt.Task.Kind != kind }), now)
		}
	})
}

func checkPhase(t *rapid.T, p *Phase, all []wire.AttemptStatus, now int64) {
	var times []int64
	running := 0
	for i := range all {
		a := &all[i]
		switch {
		case a.State == wire.AttemptSucceeded:
			times = append(times, a.Took)
		case !a.State.Final():
			running++
			a.Took = now - a.Began
		}
	}
	if p.Running != running || p.Tasks != len(times) {
		t.Fatalf("%d running, %d tasks; want %d, %d", p.Running, p.Tasks, running, len(times))
	}
	if len(times) == 0 {
		if len(p.Buckets)+len(p.Slow) > 0 {
			t.Fatalf("%+v without tasks", p)
		}
		return
	}
	slices.Sort(times)
	if p.Least != times[0] || p.Median != times[len(times)/2] || p.Most != times[len(times)-1] || len(p.Buckets) > MaxBuckets {
		t.Fatalf("%+v of %v", p, times)
	}
	for i, bucket := range p.Buckets {
		n := 0
		for _, x := range times {
			if bucket.From <= x && x < bucket.To {
				n++
			}
		}
		if n != bucket.Tasks || bucket.To-bucket.From != p.Buckets[0].To-p.Buckets[0].From || i > 0 && bucket.From != p.Buckets[i-1].To {
			t.Fatalf("bucket %+v of %v has %d tasks", bucket, times, n)
		}
	}
	slow := slices.DeleteFunc(all, func(a wire.AttemptStatus) bool {
		return a.State != wire.AttemptSucceeded && a.State.Final() || a.Took < 2*p.Median || a.Took < p.Median+1000
	})
	slices.SortStableFunc(slow, func(a, b wire.AttemptStatus) int { return cmp.Compare(b.Took, a.Took) })
	slow = slow[:min(len(slow), MaxSlow)]
	if len(slow) != len(p.Slow) || len(slow) > 0 && !reflect.DeepEqual(slow, p.Slow) {
		t.Fatalf("stragglers %+v, want %+v", p.Slow, slow)
	}
}
