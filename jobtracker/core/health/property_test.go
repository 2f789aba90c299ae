package health

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/wire"
)

// TestModel compares Records with the model under random events. One tracker fails most of its
// attempts.
func TestModel(t *testing.T) {
	counts := make(map[string]int)
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(rapid.IntRange(2, 6).Draw(t, "trackers"), rapid.IntRange(0, 2).Draw(t, "slots"))
		faulty := rapid.SampledFrom(w.trackers).Draw(t, "faulty")
		pauses := []time.Duration{
			0, time.Millisecond, 30 * time.Millisecond, 40 * time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond,
			time.Second, 3 * time.Second, 3 * time.Second, 10 * time.Second, time.Minute, 11 * time.Minute,
		}
		for range rapid.IntRange(200, 400).Draw(t, "steps") {
			w.now += rapid.SampledFrom(pauses).Draw(t, "pause")
			w.act(t, faulty)
			w.check()
			if len(w.differences) > 0 {
				t.Fatal(w.differences[0])
			}
		}
		for what, n := range w.counts {
			counts[what] += n
		}
	})
	t.Log(counts)
	for _, what := range []string{"suspect", "compared", "not compared", "compared well", "stands out", "no worse", "worse", "pardoned", "pardoned early", "spared", "dropped"} {
		if counts[what] == 0 {
			t.Errorf("never happened: %s", what)
		}
	}
}

// act makes a random event happen.
func (w *world) act(t *rapid.T, faulty *tracker) {
	on := rapid.SampledFrom(append(w.trackers, faulty, faulty)).Draw(t, "tracker")
	n := rapid.IntRange(0, 99).Draw(t, "act")
	switch {
	case n < 45: // an attempt is launched
		w.launch(on, wire.TaskID{
			Job:  wire.JobID{Start: 1, N: rapid.IntRange(1, 3).Draw(t, "job")},
			Kind: rapid.SampledFrom([]wire.Kind{wire.Map, wire.Map, wire.Reduce}).Draw(t, "kind"),
			N:    rapid.IntRange(0, 7).Draw(t, "task"),
		})
		if rapid.Bool().Draw(t, "long") {
			return
		}
		w.endOne(t, faulty, len(w.attempts)-1)
	case n < 75: // a running attempt ends
		for i, a := range w.attempts {
			if a.state == wire.AttemptRunning {
				w.endOne(t, faulty, i)
				return
			}
		}
	case n < 83: // the log decides on proposals
		for _, o := range w.trackers {
			switch {
			case o.proposed && n < 81:
				w.applyExclusion(o, true)
			case o.proposed:
				w.dropProposal(o)
			case o.Excluded() && n < 78:
				w.applyExclusion(o, false)
			}
		}
	case n < 95:
		on.disksDropped += rapid.IntRange(0, 1).Draw(t, "disks")
		w.dropDisks(on, on.disksDropped)
	case n < 97:
		on.usable = !on.usable
	case n < 99:
		on.draining = !on.draining
	default:
		w.ended[rapid.IntRange(1, 3).Draw(t, "ends")] = true
	}
}

// endOne ends an attempt, with the likely outcome on its tracker.
func (w *world) endOne(t *rapid.T, faulty *tracker, i int) {
	bad := rapid.IntRange(0, 19).Draw(t, "luck") == 0
	if w.attempts[i].on == faulty {
		bad = !bad
	}
	if bad {
		w.end(i, wire.AttemptFailed)
	} else {
		w.end(i, wire.AttemptSucceeded)
	}
}
