package faults

import (
	"cmp"
	"container/heap"
	"iter"
	"time"
)

// maxRetryDelay bounds RetryDelay: a task may have hundreds of attempts.
const maxRetryDelay = 10 * time.Second

// RetryDelay grows with the failures so far; the first retry is at once.
func RetryDelay(failures int) time.Duration {
	return min(time.Duration(max(failures-1, 0))*time.Second, maxRetryDelay)
}

// avoidPerFailure is how long a task waits for a tracker on which it has not failed, for each
// of its failures; maxAvoid bounds that.
const (
	avoidPerFailure = 30 * time.Second
	maxAvoid        = 5 * time.Minute
)

// Reminder is when a task that has failed is to be looked at again.
type Reminder struct {
	At   time.Duration
	Task Task
}

// reminders is a heap, by time and then by task.
type reminders []Reminder

func (r reminders) Len() int { return len(r) }
func (r reminders) Less(a, b int) bool {
	x, y := &r[a], &r[b]
	return cmp.Or(cmp.Compare(x.At, y.At), cmp.Compare(x.Task.Kind, y.Task.Kind), cmp.Compare(x.Task.N, y.Task.N)) < 0
}
func (r reminders) Swap(a, b int) { r[a], r[b] = r[b], r[a] }
func (r *reminders) Push(x any)   { *r = append(*r, x.(Reminder)) }
func (r *reminders) Pop() any {
	last := (*r)[len(*r)-1]
	*r = (*r)[:len(*r)-1]
	return last
}

// DelayRetry has a task that has failed wait for RetryDelay, and, if there is a tracker that it
// does not avoid, for a slot there. It says whether Next may have changed: one alarm for it is
// enough for all tasks of the job that wait.
func (x *Faults) DelayRetry(t Task, now time.Duration, elsewhere bool) (isNext bool) {
	m := x.getOrMake(t)
	m.retryAt, m.avoidUntil = 0, 0
	if delay := RetryDelay(len(m.failed)); delay > 0 {
		m.retryAt = now + delay
		isNext = x.addReminder(t, m.retryAt)
	}
	if elsewhere {
		m.avoidUntil = now + min(time.Duration(len(m.failed))*avoidPerFailure, maxAvoid)
		isNext = x.addReminder(t, m.avoidUntil) || isNext
	}
	return isNext
}

func (x *Faults) addReminder(t Task, at time.Duration) (isNext bool) {
	heap.Push(&x.reminders, Reminder{at, t})
	return at == x.reminders[0].At
}

// RetryAt is when a task may be launched again; 0: now.
func (x *Faults) RetryAt(t Task) time.Duration {
	if len(x.tasks) == 0 {
		return 0
	}
	return x.get(t).retryAt
}

// Elsewhere is until when a task is launched on no tracker that it avoids; 0: it may be.
func (x *Faults) AvoidUntil(t Task) time.Duration { return x.get(t).avoidUntil }

// StopAvoiding has a task wait for another tracker no longer.
func (x *Faults) StopAvoiding(t Task) { x.getOrMake(t).avoidUntil = 0 }

// Reminders is when tasks are to be looked at, in no order; also some whose waits have ended.
func (x *Faults) Reminders() []Reminder { return x.reminders }

// Next is when the next task is to be looked at, if any is.
func (x *Faults) NextReminder() (at time.Duration, ok bool) {
	if len(x.reminders) == 0 {
		return 0, false
	}
	return x.reminders[0].At, true
}

// NextRetries reports whether the next task is looked at to launch it again.
func (x *Faults) NextIsRetry() bool {
	at, ok := x.NextReminder()
	return ok && at == x.RetryAt(x.reminders[0].Task)
}

// Due ends the waits that are over, and yields their tasks.
func (x *Faults) EndWaits(now time.Duration) iter.Seq[Task] {
	return func(yield func(Task) bool) {
		for len(x.reminders) > 0 && x.reminders[0].At <= now {
			t := heap.Pop(&x.reminders).(Reminder).Task
			m := x.getOrMake(t)
			if m.retryAt <= now {
				m.retryAt = 0
			}
			if m.avoidUntil <= now {
				m.avoidUntil = 0
			}
			if !yield(t) {
				return
			}
		}
	}
}

// Forget drops the reminders: nothing is launched any more.
func (x *Faults) ClearReminders() { x.reminders = nil }
