package health

import (
	"math"
	"slices"
	"time"

	"github.com/quernmr/quern/wire"
)

// What an event says. Only these are kept, and every question is answered by all of them.
const (
	succeeded    byte = iota
	failed            // an attempt that counts
	blamed            // a failure whose task has succeeded elsewhere
	disksChanged      // how often a process has left a disk alone
	pardoned
	spared    // an exclusion is proposed, which is to end at once
	dropped   // it does not come
	excludes  // the log has it
	cancelled // it ends at once
	readmits
)

type event struct {
	what     byte
	at       time.Duration
	launched time.Duration
	phase    int
	task     wire.TaskID
	attempt  int
	drops    int
}

// last is the place of the last of some events, -1 if there is none.
func (t *tracker) last(what ...byte) int {
	for i, e := range slices.Backward(t.events) {
		if slices.Contains(what, e.what) {
			return i
		}
	}
	return -1
}

func (t *tracker) dumbExcluded() bool { return t.last(excludes) > t.last(readmits) }

// dumbCounts reports whether what was launched at a time was launched after the last pardon.
func (t *tracker) dumbCounts(launched time.Duration) bool {
	i := t.last(pardoned)
	return i < 0 || launched > t.events[i].at
}

// dumbStreak is the failures of a phase since the last success there, and since whatever
// clears the record. A gap of ten minutes ends it, and while a tracker is excluded it has none.
func (t *tracker) dumbStreak(phase int) (streak []event) {
	for i, e := range t.events {
		switch {
		case e.what == succeeded && e.phase == phase, e.what == excludes, e.what == readmits, e.what == pardoned:
			streak = nil
		case e.what == failed && e.phase == phase && !(&tracker{events: t.events[:i]}).dumbExcluded():
			if n := len(streak); n > 0 && e.at-streak[n-1].at > 10*time.Minute {
				streak = nil
			}
			streak = append(streak, e)
		}
	}
	return streak
}

// fails reports whether a streak makes a tracker suspect that has so many slots.
func makesSuspect(streak []event, slots int) bool {
	tasks := make(map[wire.TaskID]bool)
	for _, e := range streak {
		tasks[e.task] = true
	}
	return len(tasks) >= 4 && len(tasks) > 2*slots
}

func (t *tracker) dumbSuspect(phase int) bool { return makesSuspect(t.dumbStreak(phase), t.slots) }

// toCompare reports whether the failure that has come last has a tracker compared: the first one
// that makes it suspect does, and then each that comes a tenth of a second after such a one.
func (w *world) toCompare(t *tracker, phase int) bool {
	compared, before := false, time.Duration(math.MinInt32)
	streak := t.dumbStreak(phase)
	for i, e := range streak {
		if compared = makesSuspect(streak[:i+1], t.slots) && e.at-before >= 100*time.Millisecond; compared {
			before = e.at
		}
	}
	return compared && !t.dumbExcluded()
}

// remain lists the other trackers that are given work, if a tracker may be excluded: one of
// them is usable, and they and those that cannot be spoken to are half of all.
func (w *world) workingOthers(t *tracker) (fit []*tracker, may bool) {
	given := 0
	for _, o := range w.trackers {
		if o == t || w.getsNoWork(o) {
			continue
		}
		given++
		if o.usable {
			fit = append(fit, o)
		}
	}
	return fit, len(fit) > 0 && given >= len(w.trackers)-given
}

func (w *world) mayStandOut(t *tracker, phase int) bool {
	fit, may := w.workingOthers(t)
	suspects := 0
	for _, o := range w.trackers {
		if o.dumbSuspect(phase) {
			suspects++
		}
	}
	return may && (suspects <= 1 || 4*suspects <= len(fit)+1)
}

// standsOut reports whether enough attempts of the jobs that a tracker fails did well.
func (w *world) standsOut(t *tracker, phase int) bool {
	fit, _ := w.workingOthers(t)
	streak := t.dumbStreak(phase)
	last := streak[len(streak)-1]
	well, bad := 0, 0
	for _, a := range w.attempts {
		ofJob := slices.ContainsFunc(streak, func(e event) bool { return e.task.Job == a.task.Job })
		if !ofJob || w.ended[a.task.Job.N] || phaseOf(a.task) != phase || a.began < streak[0].launched || a.on.dumbSuspect(phase) {
			continue
		}
		switch {
		case a.state == wire.AttemptSucceeded:
			well++
		case a.state == wire.AttemptRunning && w.now-a.began > 2*(last.at-last.launched)+time.Second:
			well++
		case a.state == wire.AttemptFailed && !a.on.dumbExcluded():
			bad++
		}
	}
	return well >= 10*bad && (well >= 3 || well >= len(fit))
}

// blamedFor is the attempts whose failure has counted already, or never will.
func (t *tracker) blamedFor() (attempts []int) {
	for _, e := range t.events {
		if e.what == blamed {
			attempts = append(attempts, e.attempt)
		}
	}
	return attempts
}

// dumbBlame is how many failures count against a tracker.
func (t *tracker) dumbBlame(now time.Duration) (blame int) {
	for i, e := range t.events {
		before := &tracker{events: t.events[:i]}
		if e.what == blamed && i > t.last(excludes, readmits, pardoned) && now-e.at <= 10*time.Minute && before.dumbCounts(e.launched) {
			blame++
		}
	}
	return blame
}

func (w *world) muchWorse(t *tracker) bool {
	fit, may := w.workingOthers(t)
	others := 0
	for _, o := range w.trackers {
		if o != t && !w.getsNoWork(o) {
			others += o.dumbBlame(w.now)
		}
	}
	return may && !t.dumbExcluded() && float64(t.dumbBlame(w.now)) > 2*float64(others)/float64(len(fit))
}

// dumbPardons reports whether a tracker is pardoned that has just said how often it has left a
// disk alone.
func (t *tracker) dumbPardons(now time.Duration) bool {
	most, said := 0, 0
	for _, e := range t.events[:len(t.events)-1] {
		if e.what == disksChanged {
			most, said = max(most, e.drops), said+1
		}
	}
	i := t.last(pardoned)
	return said > 0 && t.events[len(t.events)-1].drops > most && (i < 0 || now-t.events[i].at >= 10*time.Minute)
}

func (t *tracker) dumbSpared() bool {
	return t.last(spared) > t.last(dropped, excludes, readmits)
}

// dumbLength doubles ten minutes for each exclusion since the last success with an attempt
// that was launched after the last one began or ended. One that a pardon ends is no exclusion.
func (t *tracker) dumbLength() time.Duration {
	var exclusions []time.Duration
	switched, is := time.Duration(math.MinInt64), false
	for _, e := range t.events {
		switch {
		case e.what == succeeded && e.launched > switched:
			exclusions = nil
		case e.what == excludes:
			exclusions, switched, is = append(exclusions, e.at), e.at, true
		case e.what == cancelled, e.what == pardoned && is:
			exclusions = exclusions[:max(0, len(exclusions)-1)]
		case e.what == readmits:
			switched, is = e.at, false
		}
	}
	length := 10 * time.Minute
	for range exclusions {
		length = min(2*length, 80*time.Minute)
	}
	return length
}
