package core

import (
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/jobtracker/core/past"
	"github.com/quernmr/quern/wire"
)

// adopted reports whether an earlier leader launched an attempt. The launch time is then unknown.
func (l *leader) adopted(a *attempt) bool { return a.id.N/wire.EpochAttempts != int(l.epoch) }

// recordEnd records the end of an attempt that was running.
func (l *leader) recordEnd(a *attempt, state wire.AttemptState, r *wire.Result) {
	cause := r.Error
	if state == wire.AttemptKilled && !strings.HasPrefix(cause, a.reason) { // the tracker may say more about this kill
		cause = a.reason
	}
	l.recordRun(a, past.Attempt{State: state, Bytes: max(r.Bytes, a.bytes.Done), Reads: r.Reads}, r.Took, cause)
}

// recordLost records the end of an attempt that no tracker will report again.
func (l *leader) recordLost(a *attempt) {
	cause := "lost with its tracker"
	if !a.tracker.contact.lossProposed {
		cause = "unknown to its tracker: the launch may be lost"
	}
	l.recordRun(a, past.Attempt{State: wire.AttemptKilled, Lost: true}, 0, cause)
}

// recordRun records an attempt that ended now. p has its state, bytes and reads.
func (l *leader) recordRun(a *attempt, p past.Attempt, took time.Duration, cause string) {
	p.Number, p.Tracker, p.Level, p.Second = a.id.N, a.tracker.number, a.level, a.second
	if kind := a.id.Task.Kind; p.State == wire.AttemptKilled && kind.Slotted() {
		a.job.tally.killed[phaseOf(kind)]++
	}
	p.SetTimes(a.began, l.wall(), took, !l.adopted(a))
	a.job.addEnded(a.task, &p, cause)
}

// recordLate records an attempt that ended under an earlier leader, or when the tracker was
// treated as lost. Its end time is unknown, so the current time is used.
func (l *leader) recordLate(t *tracker, j *job, tk *task, r *wire.Report) {
	p := past.Attempt{Number: r.Attempt.N, Tracker: t.number, State: r.State, Bytes: r.Result.Bytes, Reads: r.Result.Reads}
	p.SetTimes(l.wall(), l.wall(), r.Result.Took, false)
	if tk.kind == wire.Map && j.assign.Indexed() {
		p.Level = j.assign.LevelOf(int(tk.n), &t.assign)
	}
	j.addEnded(tk, &p, r.Result.Error)
}

// addEnded adds p to the ended attempts of a task, unless the task is a fence.
func (j *job) addEnded(tk *task, p *past.Attempt, cause string) {
	if tk.kind != wire.Fence {
		p.Kind, p.Task = tk.kind, tk.n
		j.ended.Add(&tk.past, *p, cause)
	}
}

// setLevels sets the locality of maps that ended before the splits were read.
func (l *leader) setLevels(j *job) {
	ended := j.ended.Stored()
	for i := range ended {
		p := &ended[i]
		if t := l.fleet.trackers[l.fleet.byNumber[p.Tracker].Name]; t != nil && p.Kind == wire.Map && p.Level == 0 {
			p.Level = j.assign.LevelOf(int(p.Task), &t.assign)
		}
	}
}

// allAttempts lists a job's ended and running attempts, by task and number.
func (l *leader) allAttempts(j *job) []wire.AttemptStatus {
	ended := j.ended.Stored()
	list := make([]wire.AttemptStatus, 0, len(ended)+j.attempts.Len())
	for i := range ended {
		s := j.ended.Status(&ended[i])
		s.Attempt.Task.Job = j.id
		s.Tracker, s.Addr = l.fleet.byNumber[ended[i].Tracker].Name, l.fleet.byNumber[ended[i].Tracker].Addr
		list = append(list, s)
	}
	for a := range j.attempts.all() {
		s := wire.AttemptStatus{
			Attempt: a.id, Tracker: a.tracker.Name, Addr: a.tracker.Addr, State: a.state, Bytes: a.bytes, Began: a.began,
			Level: a.level, Speculative: a.second,
		}
		if !l.adopted(a) {
			s.Launched = a.began
		}
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b wire.AttemptStatus) int { return a.Attempt.Compare(b.Attempt) })
	return list
}
