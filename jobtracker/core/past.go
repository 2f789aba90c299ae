package core

import (
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core/past"
	"github.com/quernmr/quern/wire"
)

// adopted says whether an earlier leader launched an attempt. Its launch time is unknown.
func (l *Live) adopted(a *attempt) bool { return a.id.N/wire.EpochAttempts != int(l.epoch) }

// keep records the end of an attempt that this leader knew as running.
func (l *Live) keep(a *attempt, state wire.AttemptState, r *wire.Result) {
	cause := r.Error
	if state == wire.AttemptKilled && a.reason != "" {
		cause = a.reason
	}
	l.keepRun(a, past.Attempt{State: state, Bytes: max(r.Bytes, a.bytes.Done), Reads: r.Reads}, r.Took, cause)
}

// keepLost records an attempt that no tracker will report again.
func (l *Live) keepLost(a *attempt) {
	cause := "lost with its tracker"
	if !a.tracker.contact.lossProposed {
		cause = "unknown to its tracker, which may not have got the launch"
	}
	l.keepRun(a, past.Attempt{State: wire.AttemptKilled, Lost: true}, 0, cause)
}

// keepRun records an attempt that ran until now; p says how it ended.
func (l *Live) keepRun(a *attempt, p past.Attempt, took time.Duration, cause string) {
	p.Number, p.Tracker, p.Level = a.id.N, a.tracker.number, a.level
	p.SetTimes(a.began, l.wall(), took, !l.adopted(a))
	a.job.keep(a.task, &p, cause)
}

// keepLate records an attempt that ended under an earlier leader, or while its tracker counted
// as lost. Its end time is unknown, so the current time is used.
func (l *Live) keepLate(t *tracker, j *job, tk *task, r *wire.Report) {
	p := past.Attempt{Number: r.Attempt.N, Tracker: t.number, State: r.State, Bytes: r.Result.Bytes, Reads: r.Result.Reads}
	p.SetTimes(l.wall(), l.wall(), r.Result.Took, false)
	if tk.kind == wire.Map && j.assign.Indexed() {
		p.Level = j.assign.LevelOf(int(tk.n), &t.assign)
	}
	j.keep(tk, &p, r.Result.Error)
}

// keep adds p to the task's ended attempts, except for fences, which are forgotten.
func (j *job) keep(tk *task, p *past.Attempt, cause string) {
	if tk.kind != wire.Fence {
		p.Kind, p.Task = tk.kind, tk.n
		j.ended.Add(&tk.past, *p, cause)
	}
}

// setLevels records the locality of maps that ended before the splits were read.
func (l *Live) setLevels(j *job) {
	kept := j.ended.Stored()
	for i := range kept {
		p := &kept[i]
		if t := l.fleet.trackers[l.fleet.byNumber[p.Tracker].Name]; t != nil && p.Kind == wire.Map && p.Level == 0 {
			p.Level = j.assign.LevelOf(int(p.Task), &t.assign)
		}
	}
}

// allAttempts lists a job's ended and running attempts, by task and number.
func (l *Live) allAttempts(j *job) []wire.AttemptStatus {
	kept := j.ended.Stored()
	list := make([]wire.AttemptStatus, 0, len(kept)+j.attempts.Len())
	for i := range kept {
		s := j.ended.Status(&kept[i])
		s.Attempt.Task.Job = j.id
		s.Tracker, s.Addr = l.fleet.byNumber[kept[i].Tracker].Name, l.fleet.byNumber[kept[i].Tracker].Addr
		list = append(list, s)
	}
	for a := range j.attempts.all() {
		s := wire.AttemptStatus{
			Attempt: a.id, Tracker: a.tracker.Name, Addr: a.tracker.Addr, State: a.state, Bytes: a.bytes, Began: a.began,
			Level: a.level,
		}
		if !l.adopted(a) {
			s.Launched = a.began
		}
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b wire.AttemptStatus) int { return a.Attempt.Compare(b.Attempt) })
	return list
}
