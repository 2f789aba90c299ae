package core

import (
	"iter"

	"github.com/quernmr/quern/jobtracker/core/faults"
	"github.com/quernmr/quern/jobtracker/core/past"
	"github.com/quernmr/quern/wire"
)

// task is a unit of work that attempts execute, with or without a slot. A job may have a million
// tasks. So state that only failed tasks need is in job.faults.
type task struct {
	attempts *attempt   // running attempts, oldest first; seldom more than one
	n        int32      // the TaskID's N
	past     past.Chain // ended attempts, in job.ended
	launched int16      // attempts launched in this epoch
	kind     wire.Kind
	counted  bool // the job's counters include its counters
	measured bool // the job's measures include its time
	queued   bool // in services.queues
}

// avoids reports whether a task failed on a tracker, or lost its output there.
func (j *job) avoids(tk *task, t *tracker) bool { return j.faults.Avoids(tk.key(), t.Name) }

// avoid makes a task prefer other trackers.
func (j *job) avoid(tk *task, tracker string) {
	if j.faults.Avoid(tk.key(), tracker) && tk.kind == wire.Map {
		j.assign.SetFailed(int(tk.n))
	}
}

// key returns the task's key in job.faults.
func (tk *task) key() faults.Task { return faults.Task{Kind: tk.kind, N: tk.n} }

// idOf returns the id of a task of the job.
func (j *job) idOf(tk *task) wire.TaskID { return tk.key().ID(j.id) }

// runs reports whether the task has a running attempt.
func (tk *task) runs() bool { return tk.attempts != nil }

// all yields the running attempts, oldest first. The caller may remove the attempt that was
// yielded.
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

// attempt returns the running attempt with number n, or nil.
func (tk *task) attempt(n int) *attempt {
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

// ifIdle returns the task if it has no running attempt, else nil.
func (tk *task) ifIdle() *task {
	if tk.runs() {
		return nil
	}
	return tk
}
