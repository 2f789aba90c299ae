package health

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/wire"
)

// TestDumbRules: whatever happens to some trackers, of which one fails most of what it runs,
// the Records answer as rules do that look through all that has happened each time.
func TestDumbRules(t *testing.T) {
	counts := make(map[string]int)
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(rapid.IntRange(2, 6).Draw(t, "trackers"), rapid.IntRange(0, 2).Draw(t, "slots"))
		sick := rapid.SampledFrom(w.trackers).Draw(t, "sick")
		pauses := []time.Duration{
			0, time.Millisecond, 30 * time.Millisecond, 40 * time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond,
			time.Second, 3 * time.Second, 3 * time.Second, 10 * time.Second, time.Minute, 11 * time.Minute,
		}
		for range rapid.IntRange(200, 400).Draw(t, "steps") {
			w.now += rapid.SampledFrom(pauses).Draw(t, "pause")
			w.act(t, sick)
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
	for _, what := range []string{"suspect", "compared", "closed", "compared well", "stands out", "no worse", "worse", "pardoned", "pardoned early", "spared", "dropped"} {
		if counts[what] == 0 {
			t.Errorf("it never happened: %s", what)
		}
	}
}

// act has something happen.
func (w *world) act(t *rapid.T, sick *tracker) {
	on := rapid.SampledFrom(append(w.trackers, sick, sick)).Draw(t, "tracker")
	n := rapid.IntRange(0, 99).Draw(t, "act")
	switch {
	case n < 45: // something is run
		w.launch(on, wire.TaskID{
			Job:  wire.JobID{Start: 1, N: rapid.IntRange(1, 3).Draw(t, "job")},
			Kind: rapid.SampledFrom([]wire.Kind{wire.Map, wire.Map, wire.Reduce}).Draw(t, "kind"),
			N:    rapid.IntRange(0, 7).Draw(t, "task"),
		})
		if rapid.Bool().Draw(t, "for long") {
			return
		}
		w.endOne(t, sick, len(w.attempts)-1)
	case n < 75: // something ends that runs
		for i, a := range w.attempts {
			if a.state == wire.AttemptRunning {
				w.endOne(t, sick, i)
				return
			}
		}
	case n < 83: // the log goes on
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

// endOne has an attempt end as it is likely to on its tracker.
func (w *world) endOne(t *rapid.T, sick *tracker, i int) {
	bad := rapid.IntRange(0, 19).Draw(t, "luck") == 0
	if w.attempts[i].on == sick {
		bad = !bad
	}
	if bad {
		w.end(i, wire.AttemptFailed)
	} else {
		w.end(i, wire.AttemptSucceeded)
	}
}
