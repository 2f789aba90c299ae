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

// holds lists what keeps a job's tasks from free slots, and until when. A lack of free slots is
// no hold.
func (l *Live) holds(j *job) []wire.Hold {
	h := holdList{wall: l.c.wall}
	h.ofJob(l, j)
	if j.runnable() {
		h.ofFailures(j)
		h.ofPool(l, j)
		h.ofDrains(l, j)
		h.ofWaits(l, j)
	}
	return h.list
}

type holdList struct {
	wall int64 // as in Core
	list []wire.Hold
}

// add notes a hold. At until 0 or never its end is unknown.
func (h *holdList) add(until time.Duration, format string, args ...any) {
	x := wire.Hold{Reason: fmt.Sprintf(format, args...)}
	if until > 0 && until != never {
		x.Until = h.wall + until.Milliseconds()
	}
	h.list = append(h.list, x)
}

// ofJob lists holds of all tasks of a job, and of its service tasks.
func (h *holdList) ofJob(l *Live, j *job) {
	if j.recovering {
		h.add(l.recovery.awaitDue, "it waits for the inventories of %s", strings.Join(slices.Sorted(maps.Keys(l.recovery.awaiting)), ", "))
	}
	if j.facts.Submission().Suspended() {
		h.add(0, "it is suspended, until it is resumed")
	}
	if kind, ok := j.queuedService(); ok {
		h.add(0, "its %v waits for room on a task tracker: each runs as many attempts without slots as it has slots, or %d; %d wait in order of arrival, setups last",
			kind, minServiceAttempts, len(l.services.queues[endsWork])+len(l.services.queues[beginsWork]))
	}
}

// ofFailures lists holds after failures and losses.
func (h *holdList) ofFailures(j *job) {
	for _, name := range slices.Sorted(maps.Keys(j.outputs.expected)) {
		e := j.outputs.expected[name]
		h.add(e.due, "%s waiting for the outputs of tracker %s, which restarted", count(e.maps.Len(), "map"), name)
	}
	for phase, kind := range phaseNames {
		if n, until := j.waitingRetries(phase, j.faults.RetryAt); n > 0 {
			h.add(until, "%s waiting for a relaunch after a failure", count(n, kind))
		}
		if n, until := j.waitingRetries(phase, j.avoidsUntil); n > 0 {
			h.add(until, "%s waiting for a slot on a tracker where it has not failed", count(n, kind))
		}
	}
}

var phaseNames = [2]string{mapPhase: "map", reducePhase: "reduce"}

// ofPool lists the pool limits that a job has reached.
func (h *holdList) ofPool(l *Live, j *job) {
	p := j.assign.Pool()
	if p == nil {
		return
	}
	if j.assign.Barred() {
		h.add(0, "pool %s runs %s at a time, until %s", p.Name, count(p.MaxRunning, "job"), limitEnd(p.MaxRunning, "one of them has ended"))
	}
	for i, kind := range phaseNames {
		if p.Full(i) && l.toLaunch(j, i) > 0 {
			h.add(0, "pool %s uses all of its %s, until %s", p.Name, count(p.Max[i], kind+" slot"), limitEnd(p.Max[i], "one is free"))
		}
	}
}

// ofDrains lists slots that stay empty because their trackers drain.
func (h *holdList) ofDrains(l *Live, j *job) {
	for i, kind := range phaseNames {
		empty := func(t *tracker) bool { return t.usable() && t.assign.Free(i) > 0 }
		if names := l.drainingNames(empty); names != "" && l.toLaunch(j, i) > 0 {
			h.add(0, "%s slots stay empty on draining trackers: %s, until the drain is undone", kind, names)
		}
	}
}

// ofWaits lists tasks that wait for a better slot than the free ones.
func (h *holdList) ofWaits(l *Live, j *job) {
	if n := min(j.assign.Queued(mapPhase), j.assign.Pending()); n > 0 {
		h.add(l.assign.QueuedUntil(mapPhase), "%s in queues of trackers, where the plan expects the earliest end", count(n, "map"))
	}
	if until, deferred := j.assign.Deferred(); deferred && j.assign.AwaitLocal() > 0 {
		h.add(until, "%s waiting for a slot on a node with their input", count(j.assign.AwaitLocal(), "map"))
	}
	n := j.waitingReady()
	switch {
	case n == 0 || !j.assign.May(reducePhase) || l.assign.FreeTrackers(reducePhase).Len() == 0:
	case j.outputs.recomputing:
		h.add(0, "%s waiting for a slot at the home of the partition until it can move: lost map output is recomputed", count(n, "reduce"))
	default:
		h.add(j.housing.movesDue, "%s waiting for a slot at the home of the partition, else it moves", count(n, "reduce"))
	}
}

// waitingRetries counts the failed tasks of a phase that wait until a time, and returns the
// first such time.
func (j *job) waitingRetries(phase int, until func(faults.Task) time.Duration) (n int, first time.Duration) {
	for _, r := range j.faults.Reminders() {
		if phaseOf(r.Task.Kind) == phase && until(r.Task) == r.At && !j.taskDone(r.Task.ID(j.id)) {
			if n++; n == 1 || r.At < first {
				first = r.At
			}
		}
	}
	return n, first
}

// avoidsUntil is until when a task avoids free slots where it failed, else 0.
func (j *job) avoidsUntil(t faults.Task) time.Duration {
	if n := int(t.N); t.Kind == wire.Map && j.assign.IsAside(n) || t.Kind == wire.Reduce && j.partitionsToGather() > 0 && j.housing.homeless.Has(n) {
		return j.faults.Elsewhere(t)
	}
	return 0
}

// limitEnd says what ends a hold by a pool limit.
func limitEnd(limit int, otherwise string) string {
	if limit == 0 {
		return "it may have some"
	}
	return otherwise
}

// waitingReady is how many ready partitions wait for slots at home while other trackers have
// free slots.
func (j *job) waitingReady() int {
	n := 0
	for p := range j.housing.homes {
		if h := &j.housing.homes[p]; h.waitsSince > 0 {
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
