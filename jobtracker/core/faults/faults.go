// Package faults keeps what has gone wrong with a job's tasks: which attempts have failed,
// which trackers a task avoids since, when it may be launched again, and the texts about it.
// It knows tasks by kind and number, trackers by name, and takes the time as an argument.
// Whether a failed task is needed, where it is launched and what becomes of its job is the
// core's.
//
// The core's order of calls for an attempt that has failed:
//
//	Knows                     it is reported again: nothing is to be done
//	NewFailure, Trouble       what is told of it
//	Excuse                    not its own fault; up to MaxRejected, then it counts
//	Avoid, Fail               it counts against its task, and perhaps against its tracker
//	AttemptsUsedUp            all attempts of the task are: its job fails
//	DelayRetry                else when it is launched again, and until when elsewhere
//	        |
//	        v   at the time that Next tells
//	Due                       the tasks whose waits are over, in order
//
// If the task succeeds on another tracker, TakeBlames tells which trackers its failures count
// against. Reject notes a map output that could not be read.
//
// There may be a million tasks, of which nearly all run once and well. Only the others are
// kept, and questions about the tasks of a job without faults cost next to nothing.
//
// Faults are not safe for concurrent use.
//
// Invariants
//
//	F1  An attempt is excused, or counts as failed, once, since the core asks Knows first.
//	F2  A task that waits (RetryAt, Elsewhere) has a reminder at the end of each wait until
//	    Forget, so that Due yields it no later. Waits end within maxRetryDelay and maxAvoid.
//	F3  Troubles are at most wire.MaxTroubles, and as many about lost trackers, so that failures
//	    do not hide losses. Each is bounded by wire.MaxTrouble, each failure's text by MaxReason.
package faults

import (
	"slices"
	"time"

	"github.com/quernmr/quern/wire"
)

// MaxRejected is how many outputs of one map may turn out unreadable before the job fails,
// and how many attempts of one reduce are excused for outputs that they could not read.
const MaxRejected = 10

// Task is one of the job's tasks.
type Task struct {
	Kind wire.Kind
	N    int32
}

// ID is the task's id in a job.
func (t Task) ID(job wire.JobID) wire.TaskID { return wire.TaskID{Job: job, Kind: t.Kind, N: int(t.N)} }

// Faults is what has gone wrong with a job's tasks. The zero value is of a job without any.
type Faults struct {
	tasks     map[Task]*taskFaults // of those that have had some
	reminders reminders
	failures  [wire.Fence + 1]int // attempts, by kind
	troubles  []string            // as in wire.JobStatus
	losses    int                 // of trackers, among them
}

// taskFaults is the faults of a task.
type taskFaults struct {
	failed   []int   // numbers of the attempts that failed by their own fault
	excused  []int   // of those that failed because segments could not be read
	rejected []int   // of attempts at a map whose outputs could not be read
	blames   []Blame // see TakeBlames
	first    *Failure

	avoid      []string      // trackers on which it failed, or its output was lost
	retryAt    time.Duration // when it may be launched again; 0: now
	avoidUntil time.Duration // until when it is launched on none of avoid; 0: they may have it
}

// Blame is where and when an attempt was launched that failed.
type Blame struct {
	Tracker  string
	Launched time.Duration
}

// noFaults is shared by all tasks without faults, and never changed.
var noFaults taskFaults

// get returns the faults of a task, to read.
func (x *Faults) get(t Task) *taskFaults {
	if m := x.tasks[t]; m != nil {
		return m
	}
	return &noFaults
}

// getOrMake returns the faults of a task, to change.
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

// Knows reports whether an attempt at a task is known to have failed.
func (x *Faults) HasFailure(t Task, attempt int) bool {
	m := x.get(t)
	return slices.Contains(m.failed, attempt) || slices.Contains(m.excused, attempt)
}

// Excuse has an attempt that failed not count against its task. It says false if too many
// were excused before.
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

// Failed is how many attempts at tasks of a kind have failed by their own fault.
func (x *Faults) FailuresOfKind(k wire.Kind) int { return x.failures[k] }

// Failures is how many attempts at a task have.
func (x *Faults) Failures(t Task) int { return len(x.get(t).failed) }

// TakeBlames takes the failures that count against their trackers, now that the task has
// succeeded elsewhere.
func (x *Faults) TakeBlames(t Task) []Blame {
	m := x.tasks[t]
	if m == nil {
		return nil
	}
	blames := m.blames
	m.blames = nil
	return blames
}

// Reject notes that a map's output of an attempt could not be read, and says how many
// outputs of the map could not.
func (x *Faults) RejectOutput(t Task, attempt int) int {
	m := x.getOrMake(t)
	m.rejected = append(m.rejected, attempt)
	return len(m.rejected)
}

// Rejected reports whether the output of an attempt at a map could not be read.
func (x *Faults) OutputRejected(t Task, attempt int) bool {
	return slices.Contains(x.get(t).rejected, attempt)
}

// Avoid has a task run on another tracker, if it can, and says whether that is new.
func (x *Faults) Avoid(t Task, tracker string) bool {
	m := x.getOrMake(t)
	if slices.Contains(m.avoid, tracker) {
		return false
	}
	m.avoid = append(m.avoid, tracker)
	return true
}

// Avoids reports whether a task has failed on a tracker, or its output was lost there.
func (x *Faults) Avoids(t Task, tracker string) bool {
	return len(x.tasks) > 0 && slices.Contains(x.get(t).avoid, tracker)
}

// Avoided is the trackers that a task avoids.
func (x *Faults) Avoided(t Task) []string { return x.get(t).avoid }
