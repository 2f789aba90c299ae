package core

import (
	"cmp"
	"fmt"
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/jobtracker/core/faults"
	"github.com/quernmr/quern/wire"
)

// attemptFailed counts a failed attempt of a task, once. It gives the task up if its attempts are
// used up or the failure is fatal. If a reduce could not read map output, the failure does not
// count. It reports whether the tracker may be the cause.
func (l *leader) attemptFailed(j *job, t *tracker, tk *task, id wire.AttemptID, r *wire.Result, launched time.Duration) bool {
	if j.faults.HasFailure(tk.key(), id.N) || j.taskDone(id.Task) || l.hasCommitted(j, id.Task) {
		return false
	}
	failure := faults.NewFailure(t.Name, id, r)
	l.logAttempt(j, true, "attempt failed", id, t.Name, "why", firstLine(r.Error))
	if !l.flowStopping(j) {
		j.faults.AddTrouble(failure.WithoutLog())
	}
	if id.Task.Kind == wire.Reduce && len(r.Lost) > 0 && j.faults.Excuse(tk.key(), id.N) {
		l.reduceLost(j, id.Task.N, r.Lost)
		return false
	}
	j.avoid(tk, t.Name)
	j.faults.Fail(tk.key(), failure, launched)
	asked := l.failedOnRequest(id)
	if asked {
		j.faults.Absolve(tk.key())
	}
	reason, usedUp := j.faults.AttemptsUsedUp(tk.key(), id.Task, j.spec.ForKind(tk.kind).MaxAttempts)
	switch {
	case !j.needsTask(tk):
	case (r.Fatal || usedUp) && l.endOptionalRerun(j, tk):
	case r.Fatal:
		l.giveUpTask(j, tk, failure.String(), r.BadInput)
	case usedUp:
		l.giveUpTask(j, tk, cmp.Or(j.usedUpSkipping(tk, failure, r.Died != nil), reason), true)
	case !tk.kind.Slotted():
		tk.delayRetry(l, j)
	default:
		l.skipRecord(j, tk, r.Died)
		l.delayTask(j, tk)
	}
	return !r.Fatal && !asked
}

// flowStopping reports whether another job of the flow stops. Failures of this job are then not
// reported, since they often have the same cause.
func (l *leader) flowStopping(j *job) bool {
	for other := range l.facts.Flow(j.facts.Submission()) {
		open := l.jobs[other.N()]
		if other != j.facts && (other.Stopping() || open != nil && open.finish.stopProposed) {
			return true
		}
	}
	return false
}

// needsTask reports whether the job cannot succeed without a task. It does not need a rerun map
// if all homes have gathered the map's output since.
func (j *job) needsTask(tk *task) bool {
	return tk.kind != wire.Map || j.facts.Reduces() == 0 || j.facts.Running() && j.needsOutput(&j.maps[tk.n])
}

// endOptionalRerun ends the rerun of a map that the job does not need: a draining or slow tracker
// serves its output, or all partitions are gathered and only could move with it. It reports whether
// that is so.
func (l *leader) endOptionalRerun(j *job, tk *task) bool {
	if tk.kind != wire.Map || j.facts.Reduces() == 0 {
		return false
	}
	switch m := &j.maps[tk.n]; {
	case m.recompute:
		m.recompute = false
		l.updateMap(j, int(tk.n))
	case m.digestKnown && j.partitions.ungathered == 0:
		j.outputs.recomputeFailed = true
		l.recomputeEnded(j)
	default:
		return false
	}
	j.faults.AddTrouble(fmt.Sprintf("%v is not rerun any more: its reruns have failed, and the job can go on without them", j.idOf(tk)))
	return true
}

// stopJob proposes to stop the job, unless its end is being recorded: the history may exist
// already.
func (l *leader) stopJob(j *job, outcome wire.State, reason string) {
	if j.finish.stopProposed || j.finish.endFact != nil {
		return
	}
	j.finish.stopProposed = true
	l.updateLines(j)
	text := fmt.Sprintf("%v (%s) %v: %s", j.id, j.facts.Name(), outcome, reason)
	l.propose(&facts.Stopped{Job: j.facts.N(), Outcome: outcome, Reason: wire.Truncate(text, faults.MaxReason)})
}
