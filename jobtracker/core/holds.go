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

// holds lists the reasons why a job's tasks do not use free slots, and when each ends.
func (l *leader) holds(j *job) []wire.Hold {
	h := holdList{wallAtZero: l.c.wallAtZero}
	h.addJob(l, j)
	if j.runnable() {
		h.addFailures(j)
		h.addPool(l, j)
		h.addRoom(l, j)
		h.addDrains(l, j)
		h.addMissing(l, j)
		h.addWaits(l, j)
	}
	return h.list
}

type holdList struct {
	wallAtZero int64 // see Core.wallAtZero
	list       []wire.Hold
}

// add adds a hold. If until is 0 or never, its end is unknown.
func (h *holdList) add(until time.Duration, format string, args ...any) {
	x := wire.Hold{Reason: fmt.Sprintf(format, args...)}
	if until > 0 && until != never {
		x.Until = h.wallAtZero + until.Milliseconds()
	}
	h.list = append(h.list, x)
}

// addJob adds holds of all tasks of a job, and of its service tasks.
func (h *holdList) addJob(l *leader, j *job) {
	if j.recovering {
		h.add(l.recovery.awaitUntil, "it waits for the inventories of %s", strings.Join(slices.Sorted(maps.Keys(l.recovery.awaiting)), ", "))
	}
	if j.facts.Submission().Suspended() {
		h.add(0, "it is suspended, until it is resumed")
	}
	if why := l.limited.quota.Why(j.facts.N()); why != "" {
		h.add(0, "%s", why)
	}
	kind, queued := j.queuedService()
	if why, all := l.allWithdrawn(); queued && all {
		h.add(0, "its %v waits for a task tracker; %s", kind, why)
	} else if queued && kind == wire.Setup && !l.mayRunSetup() {
		h.add(0, "its setup waits: the cluster runs at most %s at a time (setups); %d wait", plural(l.c.cfg.Limits.Setups, "setup"), len(l.services.queues[setupQueue]))
	} else if queued && kind == wire.Setup && l.services.setupRoom.Len() < l.services.room.Len() {
		h.add(0, "its setup waits: each task tracker runs at most %s at a time (tracker-setups); %d wait", plural(l.c.cfg.Limits.TrackerSetups, "setup"), len(l.services.queues[setupQueue]))
	} else if queued {
		h.add(0, "its %v waits for a task tracker with room: each runs as many setups, commits, cleanups and fences as it has slots, and at least %d; %d wait, setups last",
			kind, minServiceAttempts, l.services.waiting())
	}
}

// addFailures adds holds after failures and losses.
func (h *holdList) addFailures(j *job) {
	for _, name := range slices.Sorted(maps.Keys(j.outputs.expected)) {
		e := j.outputs.expected[name]
		h.add(e.until, "%s waiting for the outputs of tracker %s, which restarted", plural(e.maps.Len(), "map"), name)
	}
	for _, name := range j.trackers.Excluded() {
		h.add(j.trackers.ExcludedUntil(name), "it does not use tracker %s: %s", name, j.trackers.Why(name, j.spec.TrackerLimits))
	}
	for _, name := range j.trackers.Probation() {
		h.add(0, "it uses tracker %s for one attempt at a time, until one succeeds there", name)
	}
	for phase, kind := range phaseNames {
		if n, until := j.waitingRetries(phase, j.faults.RetryAt); n > 0 {
			h.add(until, "%s waiting for a relaunch after a failure", plural(n, kind))
		}
		if n, until := j.waitingRetries(phase, j.avoidsUntil); n > 0 {
			h.add(until, "%s waiting for a slot on a tracker where it has not failed", plural(n, kind))
		}
	}
}

var phaseNames = [2]string{mapPhase: "map", reducePhase: "reduce"}

// addPool adds pool limits that a job has reached.
func (h *holdList) addPool(l *leader, j *job) {
	if j.heldBy != "" {
		h.add(0, "%s", j.heldBy)
	}
	p := j.assign.Pool()
	if p == nil {
		return
	}
	if j.assign.Barred() {
		h.add(0, "pool %s runs %s at a time, until %s", p.Name, plural(p.MaxRunning, "job"), limitEnd(p.MaxRunning, "one of them has ended"))
	}
	for i, kind := range phaseNames {
		if p.Full(i) && l.toLaunch(j, i) > 0 {
			h.add(0, "pool %s uses all of its %s, until %s", p.Name, plural(p.Max[i], kind+" slot"), limitEnd(p.Max[i], "one is free"))
		}
	}
}

// addDrains adds slots that stay empty because operators drain or exclude their trackers. If no
// tracker takes work, that holds for slots in use too.
func (h *holdList) addDrains(l *leader, j *job) {
	_, all := l.allWithdrawn()
	for i, kind := range phaseNames {
		empty := func(t *tracker) bool { return t.usable() && (all || t.assign.Free(i) > 0) }
		if names := l.drainingNames(empty); names != "" && l.toLaunch(j, i) > 0 {
			h.add(0, "%s slots stay empty on draining trackers: %s, until the drain is undone", kind, names)
		}
		if names := l.unhealthyNames(empty); names != "" && l.toLaunch(j, i) > 0 {
			h.add(0, "%s slots stay empty on unhealthy trackers: %s, until their health scripts find no error", kind, names)
		}
		if names := l.operatorsExclude(empty); names != "" && l.toLaunch(j, i) > 0 {
			h.add(0, "%s slots stay empty on trackers that operators exclude: %s, until they are readmitted", kind, names)
		}
	}
}

// addMissing adds trackers without slots: their disks failed, or they are lost.
func (h *holdList) addMissing(l *leader, j *job) {
	waits := false
	for i, kind := range phaseNames {
		if l.toLaunch(j, i) == 0 {
			continue
		}
		waits = true
		noDisk := func(t *tracker) bool {
			return t.usable() && t.contact.trouble != "" && t.slots[i] == 0 && [2]int{t.MapSlots, t.ReduceSlots}[i] > 0
		}
		if names := l.trackerNames(noDisk); names != "" {
			h.add(0, "%s slots are missing on trackers without a usable disk: %s, until a disk works again", kind, names)
		}
	}
	var lost []string
	for _, x := range l.fleet.losses.Current(l.now) {
		if x.Stopped {
			x.Tracker += " (stopped)"
		}
		lost = append(lost, x.Tracker)
	}
	if waits && len(lost) > 0 {
		h.add(0, "slots of lost trackers are missing: %s, until they register again", strings.Join(lost, ", "))
	}
}

// addWaits adds tasks that wait for a better slot than the free ones.
func (h *holdList) addWaits(l *leader, j *job) {
	if n := min(j.assign.Queued(mapPhase), j.assign.Pending()); n > 0 {
		h.add(l.assign.QueuedUntil(mapPhase), "%s in queues of trackers, where the plan expects the earliest end", plural(n, "map"))
	}
	if until, deferred := j.assign.Deferred(); deferred && j.assign.AwaitLocal() > 0 && j.assign.MayTake(mapPhase) {
		h.add(until, "%s waiting for a slot on a node with their input", plural(j.assign.AwaitLocal(), "map"))
	}
	n := j.waitingReady()
	switch {
	case n == 0 || !j.assign.MayTake(reducePhase) || l.assign.FreeTrackers(reducePhase).Len() == 0:
	case j.outputs.recomputing:
		h.add(0, "%s waiting for a slot at the home of the partition until it can move: lost map output is recomputed", plural(n, "reduce"))
	default:
		h.add(j.partitions.nextMoveCheck, "%s waiting for a slot at the home of the partition, else it moves", plural(n, "reduce"))
	}
}

// waitingRetries counts the failed tasks of a phase that wait, and returns the first end of a
// wait. until returns the end of a task's wait.
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

// avoidsUntil returns when a task stops avoiding free slots where it failed; 0: it avoids none.
func (j *job) avoidsUntil(t faults.Task) time.Duration {
	if n := int(t.N); t.Kind == wire.Map && j.assign.IsAside(n) || t.Kind == wire.Reduce && j.partitionsToGather() > 0 && j.partitions.homeless.Has(n) {
		return j.faults.AvoidUntil(t)
	}
	return 0
}

// limitEnd says what ends a hold by a pool limit. Only a change of the limit ends a limit of 0.
func limitEnd(limit int, otherwise string) string {
	if limit == 0 {
		return "its limit is raised"
	}
	return otherwise
}

// waitingReady counts the ready partitions that wait for a slot at home while other trackers
// have free slots.
func (j *job) waitingReady() int {
	n := 0
	for p := range j.partitions.homes {
		if h := &j.partitions.homes[p]; h.waitingSince > 0 {
			n++
		}
	}
	return n
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
