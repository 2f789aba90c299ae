package core

import (
	"slices"

	"github.com/quernmr/quern/wire"
)

// A task that has failed is launched again after faults.RetryDelay, and on another tracker as
// long as one may take it: for some time at most, since those may be busy for hours. A
// map that has failed wherever a slot is free is set aside meanwhile, so that the slots
// and the line of jobs need not be looked at for it. A partition whose reduce has failed
// moves to another home.

// holdBack has a task with a slot that has failed wait.
func (l *Live) holdBack(j *job, tk *task) {
	if j.faults.DelayRetry(tk.key(), l.now, l.mayGoElsewhere(j, tk)) {
		l.alarmRetries(j)
	}
	n := int(tk.n)
	if tk.kind == wire.Reduce {
		j.housing.leaving.Add(n)
		l.updateReduce(j, n)
		return
	}
	if j.assign.IsPending(n) { // since an earlier leader's attempt was taken for lost
		l.assign.Leave(&j.assign, n)
	}
	l.updateMap(j, n)
}

// alarmRetries has the job looked at when its next task that has failed is due.
func (l *Live) alarmRetries(j *job) {
	if at, ok := j.faults.Next(); ok {
		l.alarm(j, at)
	}
}

// remind ends the waits of a job's tasks that are over.
func (l *Live) remind(j *job) {
	for t := range j.faults.Due(l.now) {
		if t.Kind == wire.Reduce {
			l.updateReduce(j, int(t.N))
		} else {
			l.assign.BringBack(&j.assign, int(t.N))
			l.updateMap(j, int(t.N))
		}
	}
	l.alarmRetries(j)
}

// waitsFor says whether a task waits for another tracker than this one.
func (j *job) waitsFor(tk *task, t *tracker) bool {
	return j.avoids(tk, t) && j.faults.Elsewhere(tk.key()) != 0
}

// mayGoElsewhere says whether there is a tracker on which a task has not failed.
func (l *Live) mayGoElsewhere(j *job, tk *task) bool {
	if tk.kind == wire.Reduce {
		return slices.ContainsFunc(l.fleet.byIndex, func(t *tracker) bool {
			return t != nil && t.usable() && t.mayHome() && !j.avoids(tk, t)
		})
	}
	avoided := 0
	for _, name := range j.faults.Avoided(tk.key()) {
		if t := l.fleet.trackers[name]; t != nil && t.assign.Works() {
			avoided++
		}
	}
	return avoided < l.assign.Working()
}

// leaveFailed moves the homes at which reduces have failed, if there are others.
func (l *Live) leaveFailed(j *job) {
	for p := range j.housing.leaving.All() {
		if _, grant := j.facts.Grant(p); grant || j.reduces[p].runs() {
			continue
		}
		j.housing.leaving.Remove(p)
		if t := j.housing.homes[p].tracker; t != nil && j.avoids(&j.reduces[p], t) && l.mayGoElsewhere(j, &j.reduces[p]) {
			l.moveHome(j, p)
		}
	}
}
