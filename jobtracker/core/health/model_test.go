package health

import (
	"math"
	"slices"
	"time"

	"github.com/quernmr/quern/wire"
)

// Kinds of events. The model keeps a tracker's events, and computes each answer from all of them.
const (
	succeeded    byte = iota
	failed            // counts against the tracker
	blamed            // the task of a failure has succeeded elsewhere
	disksChanged      // a report how often the process stopped using a disk
	pardoned
	spared    // pardoned while an exclusion is proposed, which then ends at once
	dropped   // a proposed exclusion
	excludes  // the log applies an exclusion
	cancelled // an exclusion, because it was spared
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

// last returns the index of the last event of these kinds, or -1.
func (t *tracker) last(what ...byte) int {
	for i, e := range slices.Backward(t.events) {
		if slices.Contains(what, e.what) {
			return i
		}
	}
	return -1
}

func (t *tracker) modelExcluded() bool { return t.last(excludes) > t.last(readmits) }

// modelCounts reports whether an attempt was launched after the last pardon.
func (t *tracker) modelCounts(launched time.Duration) bool {
	i := t.last(pardoned)
	return i < 0 || launched > t.events[i].at
}

// modelStreak lists the failures of a phase since the last success, exclusion, readmission or
// pardon. A gap of ten minutes ends the streak. An excluded tracker has none.
func (t *tracker) modelStreak(phase int) (streak []event) {
	for i, e := range t.events {
		switch {
		case e.what == succeeded && e.phase == phase, e.what == excludes, e.what == readmits, e.what == pardoned:
			streak = nil
		case e.what == failed && e.phase == phase && !(&tracker{events: t.events[:i]}).modelExcluded():
			if n := len(streak); n > 0 && e.at-streak[n-1].at > 10*time.Minute {
				streak = nil
			}
			streak = append(streak, e)
		}
	}
	return streak
}

// makesSuspect reports whether a streak makes a tracker with so many slots suspect.
func makesSuspect(streak []event, slots int) bool {
	tasks := make(map[wire.TaskID]bool)
	for _, e := range streak {
		tasks[e.task] = true
	}
	return len(tasks) >= 4 && len(tasks) > 2*slots
}

func (t *tracker) modelSuspect(phase int) bool { return makesSuspect(t.modelStreak(phase), t.slots) }

// toCompare reports whether the last failure leads to a comparison: the first one that makes the
// tracker suspect does, and then each that comes 100 ms after the last comparison.
func (w *world) toCompare(t *tracker, phase int) bool {
	compared, lastCompared := false, time.Duration(math.MinInt32)
	streak := t.modelStreak(phase)
	for i, e := range streak {
		if compared = makesSuspect(streak[:i+1], t.slots) && e.at-lastCompared >= 100*time.Millisecond; compared {
			lastCompared = e.at
		}
	}
	return compared && !t.modelExcluded()
}

// workingOthers lists the usable trackers with work, without t. t may be excluded if there is one,
// and at least half of all trackers have work.
func (w *world) workingOthers(t *tracker) (usable []*tracker, mayExclude bool) {
	working := 0
	for _, o := range w.trackers {
		if o == t || w.getsNoWork(o) {
			continue
		}
		working++
		if o.usable {
			usable = append(usable, o)
		}
	}
	return usable, len(usable) > 0 && working >= len(w.trackers)-working
}

func (w *world) mayExclude(t *tracker, phase int) bool {
	usable, mayExclude := w.workingOthers(t)
	suspects := 0
	for _, o := range w.trackers {
		if o.modelSuspect(phase) {
			suspects++
		}
	}
	return mayExclude && (suspects <= 1 || 4*suspects <= len(usable)+1)
}

// standsOut reports whether enough attempts of the failing jobs succeeded on other trackers.
func (w *world) standsOut(t *tracker, phase int) bool {
	usable, _ := w.workingOthers(t)
	streak := t.modelStreak(phase)
	last := streak[len(streak)-1]
	succeeded, failed := 0, 0
	for _, a := range w.attempts {
		ofJob := slices.ContainsFunc(streak, func(e event) bool { return e.task.Job == a.task.Job })
		if !ofJob || w.ended[a.task.Job.N] || phaseOf(a.task) != phase || a.began < streak[0].launched || a.on.modelSuspect(phase) {
			continue
		}
		switch {
		case a.state == wire.AttemptSucceeded:
			succeeded++
		case a.state == wire.AttemptRunning && w.now-a.began > 2*(last.at-last.launched)+time.Second:
			succeeded++
		case a.state == wire.AttemptFailed && !a.on.modelExcluded():
			failed++
		}
	}
	return succeeded >= 10*failed && (succeeded >= 3 || succeeded >= len(usable))
}

// blamedAttempts lists the failed attempts that were already blamed.
func (t *tracker) blamedAttempts() (attempts []int) {
	for _, e := range t.events {
		if e.what == blamed {
			attempts = append(attempts, e.attempt)
		}
	}
	return attempts
}

// modelBlame counts the failures that count against a tracker.
func (t *tracker) modelBlame(now time.Duration) (blame int) {
	for i, e := range t.events {
		before := &tracker{events: t.events[:i]}
		if e.what == blamed && i > t.last(excludes, readmits, pardoned) && now-e.at <= 10*time.Minute && before.modelCounts(e.launched) {
			blame++
		}
	}
	return blame
}

func (w *world) muchWorse(t *tracker) bool {
	usable, mayExclude := w.workingOthers(t)
	others := 0
	for _, o := range w.trackers {
		if o != t && !w.getsNoWork(o) {
			others += o.modelBlame(w.now)
		}
	}
	return mayExclude && !t.modelExcluded() && float64(t.modelBlame(w.now)) > 2*float64(others)/float64(len(usable))
}

// modelPardons reports whether the last report of unused disks pardons the tracker.
func (t *tracker) modelPardons(now time.Duration) bool {
	highest, reports := 0, 0
	for _, e := range t.events[:len(t.events)-1] {
		if e.what == disksChanged {
			highest, reports = max(highest, e.drops), reports+1
		}
	}
	i := t.last(pardoned)
	return reports > 0 && t.events[len(t.events)-1].drops > highest && (i < 0 || now-t.events[i].at >= 10*time.Minute)
}

func (t *tracker) modelSpared() bool {
	return t.last(spared) > t.last(dropped, excludes, readmits)
}

// modelLength doubles ten minutes for each exclusion since a success counted. A success counts if
// its attempt was launched after the last exclusion or readmission. Pardoned exclusions do not count.
func (t *tracker) modelLength() time.Duration {
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
