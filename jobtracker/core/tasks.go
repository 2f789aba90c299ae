package core

import (
	"iter"
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core/past"
	"github.com/quernmr/quern/wire"
)

// task is what attempts are tries at, with or without a slot. There may be a million of
// them, of which nearly all run once and well: what only the others need is in faults.bad.
type task struct {
	attempts *attempt   // that run, the oldest first: seldom more than one
	n        int32      // the TaskID's
	past     past.Chain // its attempts that have ended, in job.ended
	next     int16      // attempts numbered in this epoch
	kind     wire.Kind
	counted  bool // its counters are in the job's
	measured bool // its time is
	queued   bool // in services.queues
}

// mishaps is what has gone wrong with a task.
type mishaps struct {
	failed   []int      // numbers of the attempts that failed by their own fault
	excused  []int      // of those that failed because segments could not be read
	avoid    []string   // trackers on which it failed
	failedOn []failedOn // failures that count against their trackers if the task succeeds elsewhere
	first    *failure
	rejected []int // attempts at a map whose outputs could not be read

	retryAt   time.Duration // when a failed task may be launched again; 0: now
	elsewhere time.Duration // until when it is launched on none of avoid, see holdBack; 0: they may have it
}

// failedOn is where and when an attempt was launched that failed.
type failedOn struct {
	tracker  string
	launched time.Duration
}

// none is shared by all tasks without mishaps, and never changed.
var none mishaps

// mishaps is what has gone wrong with a task so far, to look at.
func (j *job) mishaps(tk *task) *mishaps {
	if m := j.faults.bad[tk]; m != nil {
		return m
	}
	return &none
}

// mishap is the same to add to.
func (j *job) mishap(tk *task) *mishaps {
	m := j.faults.bad[tk]
	if m == nil {
		m = new(mishaps)
		j.faults.bad[tk] = m
	}
	return m
}

// avoids says whether a task has failed on a tracker, or its output was lost there.
func (j *job) avoids(tk *task, t *tracker) bool {
	return len(j.faults.bad) > 0 && slices.Contains(j.mishaps(tk).avoid, t.Name)
}

// avoid has a task run elsewhere, if it can.
func (j *job) avoid(tk *task, tracker string) {
	if m := j.mishap(tk); !slices.Contains(m.avoid, tracker) {
		m.avoid = append(m.avoid, tracker)
		if tk.kind == wire.Map {
			j.assign.SetFailed(int(tk.n))
		}
	}
}

// idOf is the id of one of the job's tasks.
func (j *job) idOf(tk *task) wire.TaskID {
	return wire.TaskID{Job: j.id, Kind: tk.kind, N: int(tk.n)}
}

// runs says whether an attempt at the task runs.
func (tk *task) runs() bool { return tk.attempts != nil }

// all yields the attempts that run, the oldest first. The one yielded may be removed.
func (tk *task) all() iter.Seq[*attempt] {
	return func(yield func(*attempt) bool) {
		for a := tk.attempts; a != nil; {
			next := a.next
			if !yield(a) {
				return
			}
			a = next
		}
	}
}

// numbered is the attempt with a number that runs, or nil.
func (tk *task) numbered(n int) *attempt {
	for a := range tk.all() {
		if a.id.N == n {
			return a
		}
	}
	return nil
}

func (tk *task) add(a *attempt) {
	at := &tk.attempts
	for *at != nil {
		at = &(*at).next
	}
	*at = a
}

func (tk *task) remove(a *attempt) {
	at := &tk.attempts
	for *at != a {
		at = &(*at).next
	}
	*at, a.next = a.next, nil
}

// idle is the task itself when none of its attempts run.
func (tk *task) idle() *task {
	if tk.runs() {
		return nil
	}
	return tk
}
