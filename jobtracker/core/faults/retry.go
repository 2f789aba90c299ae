package faults

import (
	"cmp"
	"container/heap"
	"iter"
	"time"
)

// maxRetryDelay bounds RetryDelay, since a task may have hundreds of attempts.
const maxRetryDelay = 10 * time.Second

// RetryDelay is the wait before a retry. The first retry is immediate.
func RetryDelay(failures int) time.Duration {
	return min(time.Duration(max(failures-1, 0))*time.Second, maxRetryDelay)
}

// A task waits avoidPerFailure times its failures for a tracker that it does not avoid, at most
// maxAvoid.
const (
	avoidPerFailure = 30 * time.Second
	maxAvoid        = 5 * time.Minute
)

// Reminder is the end of a wait of a failed task.
type Reminder struct {
	At   time.Duration
	Task Task
}

// reminders is a heap, ordered by time and then by task.
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

// DelayRetry makes a failed task wait for RetryDelay, and, if there is a tracker that it does not
// avoid, for a slot there. It reports whether NextReminder may have changed: the caller needs one
// alarm for all waiting tasks of the job.
func (x *Faults) DelayRetry(t Task, now time.Duration, hasAlternative bool) (isNext bool) {
	m := x.getOrMake(t)
	m.retryAt, m.avoidUntil = 0, 0
	if delay := RetryDelay(len(m.failed)); delay > 0 {
		m.retryAt = now + delay
		isNext = x.addReminder(t, m.retryAt)
	}
	if hasAlternative {
		m.avoidUntil = now + min(time.Duration(len(m.failed))*avoidPerFailure, maxAvoid)
		isNext = x.addReminder(t, m.avoidUntil) || isNext
	}
	return isNext
}

// AvoidLonger makes a task that has not failed wait for a slot on a tracker that it does not avoid.
// It reports the same as DelayRetry.
func (x *Faults) AvoidLonger(t Task, now time.Duration) (isNext bool) {
	m := x.getOrMake(t)
	m.avoidUntil = max(m.avoidUntil, now+avoidPerFailure)
	return x.addReminder(t, m.avoidUntil)
}

func (x *Faults) addReminder(t Task, at time.Duration) (isNext bool) {
	heap.Push(&x.reminders, Reminder{at, t})
	return at == x.reminders[0].At
}

// RetryAt is when a task may be retried; 0: now.
func (x *Faults) RetryAt(t Task) time.Duration {
	if len(x.tasks) == 0 {
		return 0
	}
	return x.get(t).retryAt
}

// AvoidUntil is until when a task does not run on the trackers that it avoids; 0: it may.
func (x *Faults) AvoidUntil(t Task) time.Duration { return x.get(t).avoidUntil }

// StopAvoiding lets a task run on the trackers that it avoids.
func (x *Faults) StopAvoiding(t Task) { x.getOrMake(t).avoidUntil = 0 }

// Reminders returns all reminders, unordered. Some may be for waits that ended early.
func (x *Faults) Reminders() []Reminder { return x.reminders }

// NextReminder is the time of the next reminder, if there is one.
func (x *Faults) NextReminder() (at time.Duration, ok bool) {
	if len(x.reminders) == 0 {
		return 0, false
	}
	return x.reminders[0].At, true
}

// NextIsRetry reports whether the next reminder is for a retry.
func (x *Faults) NextIsRetry() bool {
	at, ok := x.NextReminder()
	return ok && at == x.RetryAt(x.reminders[0].Task)
}

// EndWaits ends the waits that are over, and yields their tasks.
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

// ClearReminders drops the reminders when the job launches no more tasks.
func (x *Faults) ClearReminders() { x.reminders = nil }
