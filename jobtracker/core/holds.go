package core

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/jobtracker/core/faults"
	"github.com/quernmr/quern/wire"
)

// holds lists what keeps tasks of a job from free slots, each with its end. That there
// are no free slots is none.
func (l *Live) holds(j *job) []wire.Hold {
	h := holdList{wall: l.c.wall}
	h.ofJob(l, j)
	if j.runnable() {
		h.ofFailures(j)
		h.ofPool(l, j)
		h.ofDrains(l, j)
		h.ofPlaces(l, j)
	}
	return h.list
}

type holdList struct {
	wall int64 // as in Core
	list []wire.Hold
}

// add notes a hold until a time; at 0 and at never it is not known when it ends.
func (h *holdList) add(until time.Duration, format string, args ...any) {
	x := wire.Hold{What: fmt.Sprintf(format, args...)}
	if until > 0 && until != never {
		x.Until = h.wall + until.Milliseconds()
	}
	h.list = append(h.list, x)
}

// ofJob lists what keeps all tasks of a job, and those without slots.
func (h *holdList) ofJob(l *Live, j *job) {
	if j.held {
		h.add(l.recovery.awaitDue, "it waits for the inventories of %s", strings.Join(slices.Sorted(maps.Keys(l.recovery.awaiting)), ", "))
	}
	if j.facts.Submission().Suspended() {
		h.add(0, "it is suspended, until it is resumed")
	}
	if kind, ok := j.queuedService(); ok {
		h.add(0, "its %v waits until task trackers have room: each runs at most as many attempts without slots as it has slots, or %d; %d wait in the order in which they came, setups last",
			kind, leastServices, len(l.services.queues[endsWork])+len(l.services.queues[beginsWork]))
	}
}

// ofFailures lists what waits since something was lost or has failed.
func (h *holdList) ofFailures(j *job) {
	for _, name := range slices.Sorted(maps.Keys(j.outputs.expected)) {
		e := j.outputs.expected[name]
		h.add(e.due, "%s waiting for the outputs of tracker %s, which began anew", count(e.maps.Len(), "map"), name)
	}
	for phase, kind := range phaseNames {
		if n, until := j.waitsAgain(phase, j.faults.RetryAt); n > 0 {
			h.add(until, "%s waiting to be launched again after failing", count(n, kind))
		}
		if n, until := j.waitsAgain(phase, j.passesBy); n > 0 {
			h.add(until, "%s waiting for a slot of another tracker, after failing where slots are free", count(n, kind))
		}
	}
}

var phaseNames = [2]string{mapPhase: "map", reducePhase: "reduce"}

// ofPool lists which limits of its pool a job has reached.
func (h *holdList) ofPool(l *Live, j *job) {
	p := j.assign.Pool()
	if p == nil {
		return
	}
	if j.assign.Barred() {
		h.add(0, "pool %s runs %s at a time, until %s", p.Name, count(p.MaxRunning, "job"), ends(p.MaxRunning, "one of them has ended"))
	}
	for i, kind := range phaseNames {
		if p.Full(i) && l.toLaunch(j, i) > 0 {
			h.add(0, "pool %s has all of its %s, until %s", p.Name, count(p.Max[i], kind+" slot"), ends(p.Max[i], "one is free"))
		}
	}
}

// ofDrains lists where slots stay empty since trackers drain.
func (h *holdList) ofDrains(l *Live, j *job) {
	for i, kind := range phaseNames {
		empty := func(t *tracker) bool { return t.usable() && t.assign.Free(i) > 0 }
		if names := l.drainingNames(empty); names != "" && l.toLaunch(j, i) > 0 {
			h.add(0, "%s slots stay empty where trackers drain: %s, until that is undone", kind, names)
		}
	}
}

// ofPlaces lists what waits for a better slot than those that are free.
func (h *holdList) ofPlaces(l *Live, j *job) {
	if n := min(j.assign.Queued(mapPhase), j.assign.Pending()); n > 0 {
		h.add(l.assign.QueuedUntil(mapPhase), "%s in the queues of trackers where they should end soonest, by the plan", count(n, "map"))
	}
	if until, deferred := j.assign.Deferred(); deferred && j.assign.AwaitLocal() > 0 {
		h.add(until, "%s waiting for a slot on a node with their input", count(j.assign.AwaitLocal(), "map"))
	}
	n := j.stuck()
	switch {
	case n == 0 || !j.assign.May(reducePhase) || l.assign.FreeTrackers(reducePhase).Len() == 0:
	case j.outputs.remaking:
		h.add(0, "%s waiting for a slot where the partition is at home, until it can move: map output that was lost is made again", count(n, "reduce"))
	default:
		h.add(j.housing.movesDue, "%s waiting for a slot where the partition is at home, else it moves", count(n, "reduce"))
	}
}

// waitsAgain counts the tasks of a phase that have failed and wait until some time, and
// says when the first waits no longer.
func (j *job) waitsAgain(phase int, until func(faults.Task) time.Duration) (n int, first time.Duration) {
	for _, r := range j.faults.Reminders() {
		if phaseOf(r.Task.Kind) == phase && until(r.Task) == r.At && !j.taskDone(r.Task.ID(j.id)) {
			if n++; n == 1 || r.At < first {
				first = r.At
			}
		}
	}
	return n, first
}

// passesBy is until when a task waits though a slot is free where it has failed, else 0.
func (j *job) passesBy(t faults.Task) time.Duration {
	if n := int(t.N); t.Kind == wire.Map && j.assign.IsAside(n) || t.Kind == wire.Reduce && j.toGather() > 0 && j.housing.homeless.Has(n) {
		return j.faults.Elsewhere(t)
	}
	return 0
}

// ends says what ends that a limit of a pool holds jobs back.
func ends(limit int, otherwise string) string {
	if limit == 0 {
		return "it may have some"
	}
	return otherwise
}

// stuck is how many ready partitions wait for slots of their homes' trackers while
// others have some.
func (j *job) stuck() int {
	n := 0
	for p := range j.housing.homes {
		if h := &j.housing.homes[p]; h.stuck > 0 {
			n++
		}
	}
	return n
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
