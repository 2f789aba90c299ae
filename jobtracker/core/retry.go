package core

import (
	"slices"

	"github.com/quernmr/quern/wire"
)

// A failed task is relaunched after faults.RetryDelay, on another tracker if there is one. It
// waits for another tracker for a limited time only. A map that failed wherever slots are free is
// set aside meanwhile. A partition whose reduce failed moves to another home.

// delayTask delays the next attempt of a failed task with a slot.
func (l *Live) delayTask(j *job, tk *task) {
	if j.faults.DelayRetry(tk.key(), l.now, l.hasAlternative(j, tk)) {
		l.alarmRetries(j)
	}
	n := int(tk.n)
	if tk.kind == wire.Reduce {
		j.housing.failedAtHome.Add(n)
		l.updateReduce(j, n)
		return
	}
	if j.assign.IsPending(n) { // an earlier leader's attempt counted as lost
		l.assign.RemovePending(&j.assign, n)
	}
	l.updateMap(j, n)
}

// alarmRetries sets an alarm for the job's next retry.
func (l *Live) alarmRetries(j *job) {
	if at, ok := j.faults.NextReminder(); ok {
		l.alarm(j, at)
	}
}

// retryDue makes tasks runnable whose retry delay is over.
func (l *Live) retryDue(j *job) {
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

// mustAvoid says whether a task still waits for another tracker than t.
func (j *job) mustAvoid(tk *task, t *tracker) bool {
	return j.avoids(tk, t) && j.faults.AvoidUntil(tk.key()) != 0
}

// hasAlternative says whether a usable tracker exists on which the task has not failed.
func (l *Live) hasAlternative(j *job, tk *task) bool {
	if tk.kind == wire.Reduce {
		return slices.ContainsFunc(l.fleet.byIndex, func(t *tracker) bool {
			return t != nil && t.usable() && t.canBeHome() && !j.avoids(tk, t)
		})
	}
	avoided := 0
	for _, name := range j.faults.Avoided(tk.key()) {
		if t := l.fleet.trackers[name]; t != nil && t.assign.TakesMaps() {
			avoided++
		}
	}
	return avoided < l.assign.MapTrackers()
}

// moveFailed moves partitions away from homes where their reduces failed, if there are other
// homes.
func (l *Live) moveFailed(j *job) {
	for p := range j.housing.failedAtHome.All() {
		if _, grant := j.facts.Grant(p); grant || j.reduces[p].runs() {
			continue
		}
		j.housing.failedAtHome.Remove(p)
		if t := j.housing.homes[p].tracker; t != nil && j.avoids(&j.reduces[p], t) && l.hasAlternative(j, &j.reduces[p]) {
			l.rehome(j, p)
		}
	}
}
