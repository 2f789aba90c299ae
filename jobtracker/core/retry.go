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
		j.leaving.Add(n)
		l.updateReduce(j, n)
		return
	}
	l.unpend(j, n) // to launch since an earlier leader's attempt was taken for lost
	l.updateMap(j, n)
}

// unpend takes a map out of those to launch.
func (l *Live) unpend(j *job, m int) {
	if j.pending.Remove(m) {
		l.leave(j, m)
		l.move(j)
	}
}

// remindAt has the job looked at when its next task is due. There is no alarm for each task:
// there may be many.
func (l *Live) remindAt(j *job, tk *task, at time.Duration) {
	heap.Push(&j.reminded, reminder{at, tk})
	if at == j.reminded[0].at {
		l.alarm(j, at)
	}
}

// remind ends the waits of a job's tasks that are over.
func (l *Live) remind(j *job) {
	for len(j.reminded) > 0 && j.reminded[0].at <= l.now {
		tk := heap.Pop(&j.reminded).(reminder).tk
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
			l.takeBack(j, int(tk.n))
		}
	}
	if len(j.reminded) > 0 {
		l.alarm(j, j.reminded[0].at)
	}
}

// waitsFor says whether a task waits for another tracker than this one.
func (j *job) waitsFor(tk *task, t *tracker) bool {
	return j.avoids(tk, t) && j.mishaps(tk).elsewhere != 0
}

// mayGoElsewhere says whether there is a tracker on which a task has not failed.
func (l *Live) mayGoElsewhere(j *job, tk *task) bool {
	if tk.kind == wire.Reduce {
		return slices.ContainsFunc(l.byIndex, func(t *tracker) bool {
			return t != nil && t.usable() && t.mayHome() && !j.avoids(tk, t)
		})
	}
	avoided := 0
	for _, name := range j.mishaps(tk).avoid {
		if t := l.trackers[name]; t != nil && t.works {
			avoided++
		}
	}
	return avoided < l.working
}

// setAside has those maps of a job wait that need not wait for a near slot: all of them
// have failed wherever a slot is free. It returns whether there is one for which there is
// no other tracker; that one waits no longer.
func (l *Live) setAside(j *job) (some bool) {
	for m := range j.loose.All() {
		tk := &j.maps[m].task
		if !l.mayGoElsewhere(j, tk) {
			j.mishap(tk).elsewhere = 0
			some = true
			continue
		}
		l.unpend(j, m)
		j.aside.Add(m)
	}
	if j.aside.Len() > 0 && !slices.Contains(l.setAsides, j) {
		l.setAsides = append(l.setAsides, j)
	}
	return some
}

// bringBack brings as many of the maps that were set aside back as the slots can take
// that have become free on other trackers.
func (l *Live) bringBack() {
	if len(l.setAsides) == 0 {
		return
	}
	for i := range l.fresh.All() {
		t := l.byIndex[i]
		for _, j := range l.setAsides {
			n := t.free[mapPhase]
			for m := range j.aside.All() {
				if n <= 0 {
					break
				}
				if !j.avoids(&j.maps[m].task, t) {
					l.takeBack(j, m)
					n--
				}
			}
		}
	}
	l.setAsides = slices.DeleteFunc(l.setAsides, func(j *job) bool { return j.aside.Len() == 0 })
}

// allBack brings all of them back, when there may be no tracker that they can wait for.
func (l *Live) allBack() {
	for _, j := range l.setAsides {
		for m := range j.aside.All() {
			l.takeBack(j, m)
		}
	}
	l.setAsides = l.setAsides[:0]
}

func (l *Live) takeBack(j *job, m int) {
	j.aside.Remove(m)
	l.updateMap(j, m)
}

// leaveFailed moves the homes at which reduces have failed, if there are others.
func (l *Live) leaveFailed(j *job) {
	for p := range j.leaving.All() {
		if _, grant := j.facts.Grant(p); grant || j.reduces[p].runs() {
			continue
		}
		j.leaving.Remove(p)
		if t := j.homes[p].tracker; t != nil && j.avoids(&j.reduces[p], t) && l.mayGoElsewhere(j, &j.reduces[p]) {
			l.moveHome(j, p)
		}
	}
}
