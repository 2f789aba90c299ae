package core

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/wire"
)

// faults is what has gone wrong with a job's tasks.
type faults struct {
	bad      map[*task]*mishaps // of tasks that have had some
	reminded reminders          // of tasks that have failed
	troubles []string           // as in wire.JobStatus
	losses   int                // of trackers, among them
	failures [2]int
}

// maxReason bounds the texts that go to the log, in bytes.
const maxReason = 8 << 10

// failure is how an attempt failed.
type failure struct {
	attempt wire.AttemptID
	tracker string
	cause   string
	log     string
}

// newFailure keeps of a result what fits into a reason, its log whole as trackers
// bound it: a long cause must not push it out.
func newFailure(tracker string, id wire.AttemptID, r *wire.Result) *failure {
	x := &failure{attempt: id, tracker: tracker, cause: bounded(r.Error, maxReason*3/8), log: bounded(r.Log, maxReason/2)}
	if x.cause == "" {
		x.cause = "failed without saying why"
	}
	return x
}

func (x *failure) String() string {
	text := fmt.Sprintf("%v on tracker %s: %s", x.attempt, x.tracker, x.cause)
	if log := strings.TrimRight(x.log, "\n"); log != "" {
		text += "\n" + log
	}
	return text
}

// maxRetryDelay bounds retryDelay: a task may have hundreds of attempts.
const maxRetryDelay = 10 * time.Second

// retryDelay grows with the failures so far; the first retry is at once.
func retryDelay(failures int) time.Duration {
	return min(time.Duration(max(failures-1, 0))*time.Second, maxRetryDelay)
}

// bounded cuts a text to at most n bytes.
func bounded(s string, n int) string { return wire.Bounded(s, n) }

// failed counts a failed attempt against its task, once, and gives the task up
// when it has had its attempts or another one would fail alike, and somebody needs it.
// Segments that a reduce could not read are no fault of its own. It returns whether the
// failure may be the tracker's: not when another attempt would fail alike anywhere.
func (l *Live) failed(j *job, t *tracker, tk *task, id wire.AttemptID, r *wire.Result, launched time.Duration) bool {
	bad := j.mishaps(tk)
	if slices.Contains(bad.failed, id.N) || slices.Contains(bad.excused, id.N) || j.taskDone(id.Task) {
		return false
	}
	bad = j.mishap(tk)
	this := newFailure(t.Name, id, r)
	if !l.doomed(j) {
		j.trouble(fmt.Sprintf("%v on tracker %s: %s", id, t.Name, this.cause))
	}
	if id.Task.Kind == wire.Reduce && len(r.Lost) > 0 && len(bad.excused) < maxRejected {
		bad.excused = append(bad.excused, id.N)
		l.reduceLost(j, id.Task.N, r.Lost)
		return false
	}
	j.avoid(tk, t.Name)
	bad.failed, bad.failedOn = append(bad.failed, id.N), append(bad.failedOn, failedOn{t.Name, launched})
	if id.Task.Kind.Slotted() {
		j.faults.failures[phaseOf(id.Task.Kind)]++
	}
	if bad.first == nil {
		bad.first = this
	}
	switch {
	case !j.needs(tk):
	case r.Fatal:
		l.giveUp(j, tk, this.String())
	case len(bad.failed) >= j.spec.Tasks(id.Task.Kind).Attempts:
		l.giveUp(j, tk, bad.spent(j.idOf(tk)))
	case !id.Task.Kind.Slotted():
		tk.wait(l, j)
	default:
		l.holdBack(j, tk)
	}
	return !r.Fatal
}

// maxTrouble bounds what is kept of one trouble, in bytes.
const maxTrouble = 500

// trouble notes what went wrong and may yet be made good.
func (j *job) trouble(text string) {
	if len(j.faults.troubles)-j.faults.losses < wire.MaxTroubles {
		j.faults.troubles = append(j.faults.troubles, bounded(text, maxTrouble))
	}
}

// lossTrouble notes what the loss of a tracker means for the job. Losses are bounded apart,
// so that failures before do not hide them.
func (j *job) lossTrouble(text string) {
	if j.faults.losses < wire.MaxTroubles {
		j.faults.losses++
		j.faults.troubles = append(j.faults.troubles, bounded(text, maxTrouble))
	}
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

// spent says why a task has no attempts left.
func (bad *mishaps) spent(task wire.TaskID) string {
	if len(bad.failed) == 1 {
		return fmt.Sprintf("%v failed: %v", task, bad.first)
	}
	return fmt.Sprintf("%v failed %d times, first %v", task, len(bad.failed), bad.first)
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
	l.propose(&facts.Stopped{Job: j.facts.N(), Outcome: outcome, Reason: bounded(text, maxReason)})
}
