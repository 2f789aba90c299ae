package core

import (
	"fmt"
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/jobtracker/core/faults"
	"github.com/quernmr/quern/wire"
)

// failed counts a failed attempt against its task, once, and gives the task up
// when it has had its attempts or another one would fail alike, and somebody needs it.
// Segments that a reduce could not read are no fault of its own. It returns whether the
// failure may be the tracker's: not when another attempt would fail alike anywhere.
func (l *Live) failed(j *job, t *tracker, tk *task, id wire.AttemptID, r *wire.Result, launched time.Duration) bool {
	if j.faults.Knows(tk.key(), id.N) || j.taskDone(id.Task) {
		return false
	}
	this := faults.NewFailure(t.Name, id, r)
	if !l.doomed(j) {
		j.faults.Trouble(this.Short())
	}
	if id.Task.Kind == wire.Reduce && len(r.Lost) > 0 && j.faults.Excuse(tk.key(), id.N) {
		l.reduceLost(j, id.Task.N, r.Lost)
		return false
	}
	j.avoid(tk, t.Name)
	j.faults.Fail(tk.key(), this, launched)
	why, spent := j.faults.AttemptsUsedUp(tk.key(), id.Task, j.spec.Tasks(tk.kind).Attempts)
	switch {
	case !j.needs(tk):
	case r.Fatal:
		l.giveUp(j, tk, this.String())
	case spent:
		l.giveUp(j, tk, why)
	case !tk.kind.Slotted():
		tk.wait(l, j)
	default:
		l.holdBack(j, tk)
	}
	return !r.Fatal
}

// doomed says whether another job of its flow takes a job with it, or is about to: what
// fails of it then is told of that one, often for the same cause.
func (l *Live) doomed(j *job) bool {
	for other := range l.facts.Flow(j.facts.Submission()) {
		live := l.jobs[other.N()]
		if other != j.facts && (other.Stopping() || live != nil && live.finish.stopping) {
			return true
		}
	}
	return false
}

// giveUp ends what depends on a task: the job, or its cleanup.
func (l *Live) giveUp(j *job, tk *task, text string) {
	if tk.kind == wire.Cleanup {
		j.finish.cleanupError = text
		return
	}
	l.stopJob(j, wire.Failed, text)
}

// needs says whether the job cannot succeed without a task: one without a map that runs
// again for a partition that has been gathered meanwhile.
func (j *job) needs(tk *task) bool {
	return tk.kind != wire.Map || j.facts.Reduces() == 0 || j.facts.Running() && j.awaits(&j.maps[tk.n])
}

// stopJob has the job stopped with a reason that names it. One that is about to end as it
// should is not: its history may say so already.
func (l *Live) stopJob(j *job, outcome wire.State, reason string) {
	if j.finish.stopping || j.finish.closing != nil {
		return
	}
	j.finish.stopping = true
	l.move(j)
	text := fmt.Sprintf("%v (%s) %v: %s", j.id, j.facts.Name(), outcome, reason)
	l.propose(&facts.Stopped{Job: j.facts.N(), Outcome: outcome, Reason: wire.Bounded(text, faults.MaxReason)})
}
