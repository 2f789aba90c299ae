package core

import (
	"slices"

	"github.com/quernmr/quern/wire"
)

// A failed task is relaunched after faults.RetryDelay, on another tracker if there is one. It
// waits only for a limited time for a slot on another tracker. If a reduce failed, its partition
// moves to another home. If the task has failed on all trackers in service, the leader ends an exclusion
// early: the excluded tracker may have healed, and all of those in service may be sick.

// delayTask delays the next attempt of a failed task with a slot.
func (l *leader) delayTask(j *job, tk *task) {
	if j.faults.DelayRetry(tk.key(), l.now, l.seekAlternative(j, tk)) {
		l.alarmRetries(j)
	}
	n := int(tk.n)
	if tk.kind == wire.Reduce {
		j.partitions.failedAtHome.Add(n)
		l.updateReduce(j, n)
		return
	}
	if j.assign.IsPending(n) { // after a late result, the map may wait for a relaunch already
		l.assign.RemovePending(&j.assign, n)
	}
	l.updateMap(j, n)
}

// alarmRetries sets an alarm for the job's next retry.
func (l *leader) alarmRetries(j *job) {
	if at, ok := j.faults.NextReminder(); ok {
		l.alarm(j, at)
	}
}

// retryDelayed makes tasks runnable again after their retry delay.
func (l *leader) retryDelayed(j *job) {
	for t := range j.faults.EndWaits(l.now) {
		if t.Kind == wire.Reduce {
			l.updateReduce(j, int(t.N))
		} else {
			l.assign.BringBack(&j.assign, int(t.N))
			l.updateMap(j, int(t.N))
		}
	}
	l.alarmRetries(j)
}

// mustAvoid reports whether a task must not run on t now: its job does not use t, or it waits for
// another tracker.
func (j *job) mustAvoid(tk *task, t *tracker) bool {
	return !j.uses(t) || j.avoids(tk, t) && j.faults.AvoidUntil(tk.key()) != 0
}

// hasAlternative reports whether a usable tracker exists on which the task has not failed.
func (l *leader) hasAlternative(j *job, tk *task) bool {
	if tk.kind == wire.Reduce {
		return l.hasOtherHome(j, tk) || l.triedHome(j, tk) != nil
	}
	avoided := 0
	for name := range j.faults.Avoided(tk.key()) {
		if t := l.fleet.trackers[name]; t != nil && t.assign.TakesMaps() {
			avoided++
		}
	}
	for _, name := range j.trackers.Excluded() {
		if t := l.fleet.trackers[name]; t != nil && t.assign.TakesMaps() && !j.avoids(tk, t) {
			avoided++
		}
	}
	return avoided < l.assign.MapTrackers()
}

// hasOtherHome reports whether a usable tracker can be the home of a partition, and its reduce has not
// failed there.
func (l *leader) hasOtherHome(j *job, tk *task) bool {
	return slices.ContainsFunc(l.fleet.byIndex, func(t *tracker) bool {
		return t != nil && t.usable() && l.canHost(j, t) && j.uses(t) && !j.avoids(tk, t)
	})
}

// triedHome returns a home for a reduce that has failed on all trackers that can be homes: the first
// tracker on probation where it has not failed, or nil.
func (l *leader) triedHome(j *job, tk *task) *tracker {
	if j.faults.Failures(tk.key()) == 0 || l.hasOtherHome(j, tk) {
		return nil
	}
	for _, t := range l.fleet.byIndex {
		if t != nil && t.takesWork() && t.health.OnProbation() && t.slots[reducePhase] > 0 && j.uses(t) && !j.avoids(tk, t) {
			return t
		}
	}
	return nil
}

// seekAlternative reports whether a failed task may wait for a tracker where it has not failed. If none
// is in service, it ends an exclusion early.
func (l *leader) seekAlternative(j *job, tk *task) bool {
	return l.hasAlternative(j, tk) || j.faults.Failures(tk.key()) > 0 && l.tryExcluded(j, tk)
}

// moveFailed moves partitions away from homes where their reduces failed, if other trackers can
// be homes.
func (l *leader) moveFailed(j *job) {
	for p := range j.partitions.failedAtHome.All() {
		t := j.partitions.homes[p].tracker
		if _, grant := j.facts.Grant(p); grant || t != nil && j.reduces[p].runsOn(t) {
			continue
		}
		j.partitions.failedAtHome.Remove(p)
		if t != nil && j.avoids(&j.reduces[p], t) && l.seekAlternative(j, &j.reduces[p]) {
			l.rehome(j, p)
		}
	}
}
