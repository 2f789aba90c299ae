// Package faults records the failures of a job's tasks: which attempts failed, which trackers a
// task avoids since then, when it may be retried, and the texts for users. It knows tasks by kind
// and number, trackers by name, and takes the time as an argument. Package core decides whether
// the task is still needed, where it runs next, and whether its job fails.
//
// Package core calls, for a failed attempt:
//
//	HasFailure                the failure was reported before: the core ignores it
//	NewFailure, AddTrouble    make the texts for users
//	Excuse                    excuses a failure that is not the attempt's fault, up to MaxRejected
//	Avoid, Fail               count it against its task, and perhaps its tracker
//	Absolve                   takes the blame from the tracker: a user has asked for the failure
//	FailedElsewhere           reports whether the task may be the cause, and not the tracker
//	AttemptsUsedUp            reports whether the job fails
//	DelayRetry                else sets when the task may be retried, and where
//	        |
//	        v   at the time of NextReminder
//	EndWaits                  yields the tasks with ended waits, in order
//
// If the task succeeds on another tracker, TakeBlames returns the trackers that its failures count
// against. RejectOutput notes a map output that could not be read.
//
// A job may have a million tasks, and nearly all succeed with their first attempt. Only the others
// use memory, and methods are cheap for a job without faults. If the network fails, all maps may avoid
// half of the trackers: a task has one bit for each tracker.
//
// Faults is not safe for concurrent use.
//
// Invariants
//
//	F1  An attempt is excused, or counts as failed, once, since the core calls HasFailure first.
//	F2  A task that waits (RetryAt, AvoidUntil) has a reminder at the end of each wait until
//	    ClearReminders, so EndWaits yields it then. A wait is at most maxRetryDelay or maxAvoid.
//	F3  There are at most wire.MaxTroubles troubles, and as many about lost trackers, so that
//	    failures do not hide losses. wire.MaxTrouble bounds each, MaxReason each failure's text.
package faults

import (
	"iter"
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core/taskset"
	"github.com/quernmr/quern/wire"
)

// MaxRejected is how many outputs of one map may be unreadable before the job fails. It is also how
// many attempts of one task are excused: those of a reduce that could not read map outputs, and those
// that trackers have ended without a Kill.
const MaxRejected = 10

// Task identifies a task of the job.
type Task struct {
	Kind wire.Kind
	N    int32
}

// ID returns the task's id, given its job's.
func (t Task) ID(job wire.JobID) wire.TaskID { return wire.TaskID{Job: job, Kind: t.Kind, N: int(t.N)} }

// Faults records the failures of a job's tasks. The zero value has none.
type Faults struct {
	tasks     map[Task]*taskFaults // only tasks with faults
	trackers  []string             // that tasks avoid or have avoided
	numbers   map[string]int       // of trackers
	reminders reminders
	failures  [wire.Fence + 1]int // failed attempts by task kind
	troubles  []string            // as in wire.JobStatus
	losses    int                 // how many troubles are about lost trackers
}

// taskFaults is the faults of a task.
type taskFaults struct {
	failed   []int   // numbers of failed attempts that are not excused
	excused  []int   // numbers of attempts that ended without their fault, see MaxRejected
	rejected []int   // numbers of a map's attempts with unreadable output
	blames   []Blame // see TakeBlames
	first    *Failure

	avoid      taskset.Set   // numbers of trackers where it failed, or its output was lost
	retryAt    time.Duration // when it may be retried; 0: now
	avoidUntil time.Duration // until when it does not run on trackers in avoid; 0: it may
}

// Blame is the tracker of a failed attempt, and when it was launched.
type Blame struct {
	Tracker  string
	Launched time.Duration
}

// noFaults stands for every task without faults. It is never changed.
var noFaults taskFaults

// get returns the faults of a task, for reading only.
func (x *Faults) get(t Task) *taskFaults {
	if m := x.tasks[t]; m != nil {
		return m
	}
	return &noFaults
}

// getOrMake returns the faults of a task, which the caller may change.
func (x *Faults) getOrMake(t Task) *taskFaults {
	m := x.tasks[t]
	if m == nil {
		if x.tasks == nil {
			x.tasks = make(map[Task]*taskFaults)
		}
		m = new(taskFaults)
		x.tasks[t] = m
	}
	return m
}

// HasFailure reports whether the failure of an attempt is recorded.
func (x *Faults) HasFailure(t Task, attempt int) bool {
	m := x.get(t)
	return slices.Contains(m.failed, attempt) || slices.Contains(m.excused, attempt)
}

// Excuse records an ended attempt that does not count against its task. It returns false, and
// records nothing, after MaxRejected attempts of the task.
func (x *Faults) Excuse(t Task, attempt int) bool {
	m := x.getOrMake(t)
	if len(m.excused) == MaxRejected {
		return false
	}
	m.excused = append(m.excused, attempt)
	return true
}

// Fail counts a failed attempt against its task.
func (x *Faults) Fail(t Task, f *Failure, launched time.Duration) {
	m := x.getOrMake(t)
	m.failed, m.blames = append(m.failed, f.attempt.N), append(m.blames, Blame{f.tracker, launched})
	x.failures[t.Kind]++
	if m.first == nil {
		m.first = f
	}
}

// Absolve takes back the blame of the tracker for the last failure of a task.
func (x *Faults) Absolve(t Task) {
	m := x.getOrMake(t)
	m.blames = m.blames[:max(len(m.blames)-1, 0)]
}

// FailuresOfKind counts the failures of tasks of a kind, without excused ones.
func (x *Faults) FailuresOfKind(k wire.Kind) int { return x.failures[k] }

// Failures counts the failures of a task, without excused ones.
func (x *Faults) Failures(t Task) int { return len(x.get(t).failed) }

// FailedElsewhere reports whether a task has failed on another tracker, and not succeeded since.
func (x *Faults) FailedElsewhere(t Task, tracker string) bool {
	return slices.ContainsFunc(x.get(t).blames, func(b Blame) bool { return b.Tracker != tracker })
}

// TakeBlames returns and removes the failures that count against their trackers, when the task has
// succeeded on another one.
func (x *Faults) TakeBlames(t Task) []Blame {
	m := x.tasks[t]
	if m == nil {
		return nil
	}
	blames := m.blames
	m.blames = nil
	return blames
}

// RejectOutput records that an attempt's map output could not be read. It returns how many
// outputs of this map could not.
func (x *Faults) RejectOutput(t Task, attempt int) int {
	m := x.getOrMake(t)
	m.rejected = append(m.rejected, attempt)
	return len(m.rejected)
}

// OutputRejected reports whether a map attempt's output could not be read.
func (x *Faults) OutputRejected(t Task, attempt int) bool {
	return slices.Contains(x.get(t).rejected, attempt)
}

// Avoid makes a task avoid a tracker, and reports whether it did not before.
func (x *Faults) Avoid(t Task, tracker string) bool {
	return x.getOrMake(t).avoid.Add(x.numberOf(tracker))
}

// numberOf returns the number of a tracker, and adds the tracker if it is new.
func (x *Faults) numberOf(tracker string) int {
	n, known := x.numbers[tracker]
	if !known {
		if x.numbers == nil {
			x.numbers = make(map[string]int)
		}
		n = len(x.trackers)
		x.numbers[tracker], x.trackers = n, append(x.trackers, tracker)
	}
	return n
}

// AvoidOnly makes a task avoid these trackers, and no others.
func (x *Faults) AvoidOnly(t Task, trackers []string) {
	x.getOrMake(t).avoid = taskset.Set{}
	for _, tracker := range trackers {
		x.Avoid(t, tracker)
	}
}

// Avoids reports whether a task failed on a tracker, or its output was lost there.
func (x *Faults) Avoids(t Task, tracker string) bool {
	if len(x.tasks) == 0 {
		return false
	}
	m := x.get(t)
	if m.avoid.Len() == 0 {
		return false
	}
	n, known := x.numbers[tracker]
	return known && m.avoid.Has(n)
}

// AvoidsAny reports whether a task avoids a tracker.
func (x *Faults) AvoidsAny(t Task) bool { return x.get(t).avoid.Len() > 0 }

// Avoided yields the trackers that a task avoids.
func (x *Faults) Avoided(t Task) iter.Seq[string] {
	return func(yield func(string) bool) {
		for n := range x.get(t).avoid.All() {
			if !yield(x.trackers[n]) {
				return
			}
		}
	}
}
