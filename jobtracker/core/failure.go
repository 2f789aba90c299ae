package core

import (
	"fmt"
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/jobtracker/core/faults"
	"github.com/quernmr/quern/wire"
)

// failed counts a failed attempt against its task, once, and gives a needed task up when its
// attempts are used up or the failure is fatal. Segments that a reduce could not read are not
// its fault. It returns whether the tracker may be the cause: not if any tracker would fail.
func (l *Live) failed(j *job, t *tracker, tk *task, id wire.AttemptID, r *wire.Result, launched time.Duration) bool {
	if j.faults.Knows(tk.key(), id.N) || j.taskDone(id.Task) {
		return false
	}
	this := faults.NewFailure(t.Name, id, r)
	if !l.flowStopping(j) {
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
	case !j.needsTask(tk):
	case r.Fatal:
		l.giveUp(j, tk, this.String())
	case spent:
		l.giveUp(j, tk, why)
	case !tk.kind.Slotted():
		tk.delayRetry(l, j)
	default:
		l.delayTask(j, tk)
	}
	return !r.Fatal
}

// flowStopping says whether another job of the flow stops. Failures of this job then often have
// the same cause, and are not reported.
func (l *Live) flowStopping(j *job) bool {
	for other := range l.facts.Flow(j.facts.Submission()) {
		live := l.jobs[other.N()]
		if other != j.facts && (other.Stopping() || live != nil && live.finish.stopProposed) {
			return true
		}
	}
	return false
}

// giveUp ends the job that depends on the task, or only its cleanup.
func (l *Live) giveUp(j *job, tk *task, text string) {
	if tk.kind == wire.Cleanup {
		j.finish.cleanupError = text
		return
	}
	l.stopJob(j, wire.Failed, text)
}

// needsTask says whether the job cannot succeed without a task. It can without a rerun map
// whose output all partitions have gathered since.
func (j *job) needsTask(tk *task) bool {
	return tk.kind != wire.Map || j.facts.Reduces() == 0 || j.facts.Running() && j.needsOutput(&j.maps[tk.n])
}

// stopJob proposes to stop the job. A job whose end is being recorded is not stopped: its
// history may exist already.
func (l *Live) stopJob(j *job, outcome wire.State, reason string) {
	if j.finish.stopProposed || j.finish.endFact != nil {
		return
	}
	j.finish.stopProposed = true
	l.updateLines(j)
	text := fmt.Sprintf("%v (%s) %v: %s", j.id, j.facts.Name(), outcome, reason)
	l.propose(&facts.Stopped{Job: j.facts.N(), Outcome: outcome, Reason: wire.Truncate(text, faults.MaxReason)})
}
