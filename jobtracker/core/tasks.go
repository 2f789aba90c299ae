package core

import (
	"iter"

	"github.com/quernmr/quern/jobtracker/core/faults"
	"github.com/quernmr/quern/jobtracker/core/past"
	"github.com/quernmr/quern/wire"
)

// task is what attempts are tries at, with or without a slot. There may be a million of
// them, of which nearly all run once and well: what only the others need is in job.faults.
type task struct {
	attempts *attempt   // that run, the oldest first: seldom more than one
	n        int32      // the TaskID's
	past     past.Chain // its attempts that have ended, in job.ended
	launched int16      // attempts numbered in this epoch
	kind     wire.Kind
	counted  bool // its counters are in the job's
	measured bool // its time is
	queued   bool // in services.queues
}

// avoids says whether a task has failed on a tracker, or its output was lost there.
func (j *job) avoids(tk *task, t *tracker) bool { return j.faults.Avoids(tk.key(), t.Name) }

// avoid has a task run elsewhere, if it can.
func (j *job) avoid(tk *task, tracker string) {
	if j.faults.Avoid(tk.key(), tracker) && tk.kind == wire.Map {
		j.assign.SetFailed(int(tk.n))
	}
}

// key is the task in job.faults.
func (tk *task) key() faults.Task { return faults.Task{Kind: tk.kind, N: tk.n} }

// idOf is the id of one of the job's tasks.
func (j *job) idOf(tk *task) wire.TaskID { return tk.key().ID(j.id) }

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
