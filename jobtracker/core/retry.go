package core

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/quernmr/quern/wire"
)

// A task that has failed is launched again after retryDelay, and on another tracker as
// long as one may take it: for avoidance at most, since those may be busy for hours. A
// map that has failed wherever a slot is free is set aside meanwhile, so that the slots
// and the line of jobs need not be looked at for it. A partition whose reduce has failed
// moves to another home.

// avoidance is how long a task waits for a tracker on which it has not failed, for each
// of its failures; maxAvoidance bounds that.
const (
	avoidance    = 30 * time.Second
	maxAvoidance = 5 * time.Minute
)

// reminder is when a task that has failed is to be looked at again.
type reminder struct {
	at time.Duration
	tk *task
}

// reminders is a heap, by time and then by task.
type reminders []reminder

func (r reminders) Len() int { return len(r) }
func (r reminders) Less(a, b int) bool {
	x, y := &r[a], &r[b]
	return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.tk.kind, y.tk.kind), cmp.Compare(x.tk.n, y.tk.n)) < 0
}
func (r reminders) Swap(a, b int) { r[a], r[b] = r[b], r[a] }
func (r *reminders) Push(x any)   { *r = append(*r, x.(reminder)) }
func (r *reminders) Pop() any {
	last := (*r)[len(*r)-1]
	*r = (*r)[:len(*r)-1]
	return last
}

// holdBack has a task with a slot that has failed wait.
func (l *Live) holdBack(j *job, tk *task) {
	m := j.mishap(tk)
	m.retryAt, m.elsewhere = 0, 0
	if delay := retryDelay(len(m.failed)); delay > 0 {
		m.retryAt = l.now + delay
		l.remindAt(j, tk, m.retryAt)
	}
	if l.mayGoElsewhere(j, tk) {
		m.elsewhere = l.now + min(time.Duration(len(m.failed))*avoidance, maxAvoidance)
		l.remindAt(j, tk, m.elsewhere)
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

// remindAt has the job looked at when its next task is due. There is no alarm for each task:
// there may be many.
func (l *Live) remindAt(j *job, tk *task, at time.Duration) {
	heap.Push(&j.faults.reminded, reminder{at, tk})
	if at == j.faults.reminded[0].at {
		l.alarm(j, at)
	}
}

// remind ends the waits of a job's tasks that are over.
func (l *Live) remind(j *job) {
	for len(j.faults.reminded) > 0 && j.faults.reminded[0].at <= l.now {
		tk := heap.Pop(&j.faults.reminded).(reminder).tk
		m := j.mishap(tk)
		if m.retryAt <= l.now {
			m.retryAt = 0
		}
		if m.elsewhere <= l.now {
			m.elsewhere = 0
		}
		if tk.kind == wire.Reduce {
			l.updateReduce(j, int(tk.n))
		} else {
			l.assign.BringBack(&j.assign, int(tk.n))
			l.updateMap(j, int(tk.n))
		}
	}
	if len(j.faults.reminded) > 0 {
		l.alarm(j, j.faults.reminded[0].at)
	}
}

// waitsFor says whether a task waits for another tracker than this one.
func (j *job) waitsFor(tk *task, t *tracker) bool {
	return j.avoids(tk, t) && j.mishaps(tk).elsewhere != 0
}

// mayGoElsewhere says whether there is a tracker on which a task has not failed.
func (l *Live) mayGoElsewhere(j *job, tk *task) bool {
	if tk.kind == wire.Reduce {
		return slices.ContainsFunc(l.fleet.byIndex, func(t *tracker) bool {
			return t != nil && t.usable() && t.mayHome() && !j.avoids(tk, t)
		})
	}
	avoided := 0
	for _, name := range j.mishaps(tk).avoid {
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
