package core

import (
	"iter"
	"slices"
	"strings"

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
	l.recordRun(a, past.Attempt{State: state, Bytes: max(r.Bytes, a.bytes.Done), Reads: r.Reads}, r, cause)
}

// recordLost records the end of an attempt that no tracker will report again.
func (l *leader) recordLost(a *attempt) {
	cause := "lost with its tracker"
	if !a.tracker.contact.lossProposed {
		cause = "unknown to its tracker: the launch may be lost"
	}
	l.recordRun(a, past.Attempt{State: wire.AttemptKilled, Lost: true}, &wire.Result{}, cause)
}

// recordRun records an attempt that ended now. p has its state, bytes and reads.
func (l *leader) recordRun(a *attempt, p past.Attempt, r *wire.Result, cause string) {
	p.Number, p.Tracker, p.Level, p.Second = a.id.N, a.tracker.number, a.level, a.second
	if kind := a.id.Task.Kind; p.State == wire.AttemptKilled && kind.Slotted() {
		a.job.tally.killed[phaseOf(kind)]++
	}
	p.SetTimes(a.began, l.wall(), r.Took, !l.adopted(a))
	l.endHot(a.job, a.id.Task, p.State, r)
	l.countEnd(a, p.State, p.Lost)
	outrun, again := a.outrun(), a.task.counted
	switch did, lost := a.job.addEnded(a.task, &p, cause); did {
	case past.Replaced:
		a.job.takeBackLost(&lost)
		fallthrough
	case past.Stored, past.Omitted:
		a.job.addSlotTime(&p, r, outrun, again)
	}
}

// recordLate records an attempt that ended under an earlier leader, or when the tracker was
// treated as lost. Its end time is unknown, so the current time is used.
func (l *leader) recordLate(t *tracker, j *job, tk *task, r *wire.Report) {
	p := past.Attempt{Number: r.Attempt.N, Tracker: t.number, State: r.State, Bytes: r.Result.Bytes, Reads: r.Result.Reads}
	p.SetTimes(l.wall(), l.wall(), r.Result.Took, false)
	if tk.kind == wire.Map && j.assign.Indexed() {
		p.Level = j.assign.LevelOf(int(tk.n), &t.assign)
	}
	switch did, lost := j.addEnded(tk, &p, r.Result.Error); did {
	case past.Replaced:
		j.takeBackLost(&lost)
		fallthrough
	case past.Stored: // an omitted one may be a repetition
		j.addSlotTime(&p, r.Result, false, tk.counted)
	}
	l.endHot(j, r.Attempt.Task, r.State, r.Result)
	if tk.kind == wire.Reduce && r.State == wire.AttemptSucceeded && int(tk.n) < len(j.partitions.homes) {
		if h := &j.partitions.homes[tk.n]; h.size == 0 { // only the earlier leader knew its home
			j.partitions.sizes.Set(&h.size, int(tk.n), r.Result.Bytes)
		}
	}
}

// addEnded adds p to the ended attempts of a task, unless the task is a fence. It returns what
// past.Attempts.Add does.
func (j *job) addEnded(tk *task, p *past.Attempt, cause string) (past.Added, past.Attempt) {
	p.Kind, p.Task = tk.kind, tk.n
	if tk.kind == wire.Fence {
		return past.Repeated, past.Attempt{}
	}
	return j.ended.Add(&tk.past, *p, cause)
}

// setLevels sets the locality of maps that ended before the splits were read.
func (l *leader) setLevels(j *job) {
	for i := range j.ended.Stored() {
		p := j.ended.At(i)
		if t := l.fleet.trackers[l.fleet.byNumber[p.Tracker].Name]; t != nil && p.Kind == wire.Map && p.Level == 0 {
			j.ended.SetLevel(i, j.assign.LevelOf(int(p.Task), &t.assign))
		}
	}
}

// runningStatus returns the status of a running attempt.
func (l *leader) runningStatus(a *attempt) wire.AttemptStatus {
	s := wire.AttemptStatus{
		Attempt: a.id, Tracker: a.tracker.Name, Addr: a.tracker.Addr, State: a.state, Bytes: a.bytes, Began: a.began,
		Level: a.level, Speculative: a.second,
	}
	if !l.adopted(a) {
		s.Launched = a.began
	}
	return s
}

// AttemptsView is all attempts of a job at one moment. It never changes, and any goroutine may read it.
type AttemptsView struct {
	job      wire.JobID
	ended    past.View
	running  []wire.AttemptStatus
	trackers []trackerName // by number
}

// freezeAttempts returns a View of a job's attempts. It copies the running ones only.
func (l *leader) freezeAttempts(j *job) *AttemptsView {
	v := &AttemptsView{job: j.id, ended: j.ended.Freeze(), trackers: slices.Clone(l.fleet.byNumber)}
	for a := range j.attempts.all() {
		v.running = append(v.running, l.runningStatus(a))
	}
	return v
}

// Statuses lists the attempts by task and number.
func (v *AttemptsView) Statuses() []wire.AttemptStatus {
	list := make([]wire.AttemptStatus, 0, v.ended.Len()+len(v.running))
	for p := range v.ended.All() {
		list = append(list, v.trackers[p.Tracker].of(v.job, v.ended.Status(p)))
	}
	list = append(list, v.running...)
	slices.SortFunc(list, func(a, b wire.AttemptStatus) int { return a.Attempt.Compare(b.Attempt) })
	return list
}

// All yields the attempts: those that have ended, then those that run.
func (v *AttemptsView) All() iter.Seq[wire.AttemptStatus] {
	return func(yield func(wire.AttemptStatus) bool) {
		for p := range v.ended.All() {
			if !yield(v.trackers[p.Tracker].of(v.job, v.ended.Status(p))) {
				return
			}
		}
		for i := range v.running {
			if !yield(v.running[i]) {
				return
			}
		}
	}
}

// Omitted counts the ended attempts that All does not yield.
func (v *AttemptsView) Omitted() int { return v.ended.Omitted() }

// Attempted has the attempts of a job at one moment, and what they have done over time. Any goroutine may read it.
type Attempted struct {
	*AttemptsView
	Wall   int64 // Unix milliseconds
	Curve  []wire.CurvePoint
	Owner  string
	Access wire.Access
}

// Attempted returns the attempts of a job; nil: it has ended, or is not known.
func (c *Core) Attempted(id wire.JobID) *Attempted {
	if c.leader == nil || c.leader.job(id) == nil {
		return nil
	}
	l, j := c.leader, c.leader.job(id)
	return &Attempted{l.freezeAttempts(j), l.wall(), j.tally.curve.Points(), j.facts.Submission().Owner(), c.access(j.facts)}
}

// of completes the status of an ended attempt on the tracker.
func (t *trackerName) of(job wire.JobID, s wire.AttemptStatus) wire.AttemptStatus {
	s.Attempt.Task.Job, s.Tracker, s.Addr = job, t.Name, t.Addr
	return s
}
