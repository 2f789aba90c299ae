package core

import (
	"slices"

	"github.com/quernmr/quern/wire"
)

// maxPast is how many ended attempts of one job are kept for display and history.
const maxPast = 100_000

// past is an attempt that has ended.
type past struct {
	n       int // the AttemptID's
	tracker string
	addr    string
	state   wire.AttemptState
	bytes   int64
	began   int64 // Unix milliseconds
	took    int64 // milliseconds
	cause   string
	lost    bool // how it ended is not known
	level   wire.Level
	reads   wire.Reads
}

// keep notes how an attempt of this office has ended.
func (l *Live) keep(a *attempt, state wire.AttemptState, r *wire.Result) {
	p := past{
		n: a.id.N, tracker: a.tracker.Name, addr: a.tracker.Addr, state: state, bytes: max(r.Bytes, a.bytes.Done),
		began: a.began, took: r.Took.Milliseconds(), cause: bounded(r.Error, maxTrouble),
		level: a.level, reads: r.Reads,
	}
	switch {
	case p.took > 0:
		p.began = l.wall() - p.took // of an adopted one too
	default:
		p.took = l.wall() - p.began
	}
	if state == wire.AttemptKilled && a.reason != "" {
		p.cause = bounded(a.reason, maxTrouble)
	}
	a.job.keep(a.task, p)
}

// keepLost notes an attempt that nobody will report on any more.
func (l *Live) keepLost(a *attempt) {
	cause := "lost with its tracker"
	if !a.tracker.losing {
		cause = "unknown to its tracker, which may not have got the launch"
	}
	a.job.keep(a.task, past{
		n: a.id.N, tracker: a.tracker.Name, addr: a.tracker.Addr, state: wire.AttemptKilled, lost: true,
		began: a.began, took: l.wall() - a.began, cause: cause, level: a.level,
	})
}

// keepLate notes an attempt that ended under an earlier leader, or while it was
// taken for lost.
func (l *Live) keepLate(t *tracker, j *job, tk *task, r *wire.Report) {
	took := r.Result.Took.Milliseconds()
	j.keep(tk, past{
		n: r.Attempt.N, tracker: t.Name, addr: t.Addr, state: r.State, bytes: r.Result.Bytes,
		began: l.wall() - took, took: took, cause: bounded(r.Result.Error, maxTrouble),
		reads: r.Result.Reads,
	})
}

// keep adds p to the task's past, once.
func (j *job) keep(tk *task, p past) {
	i := slices.IndexFunc(tk.past, func(x past) bool { return x.n == p.n })
	switch {
	case i >= 0 && tk.past[i].lost:
		tk.past[i] = p
	case i < 0 && j.kept < maxPast:
		tk.past = append(tk.past, p)
		j.kept++
	}
}

// allAttempts lists a job's attempts by task and number, those that run as of now.
func (l *Live) allAttempts(j *job) []wire.AttemptStatus {
	list := make([]wire.AttemptStatus, 0, j.kept+len(j.attempts))
	add := func(tk *task) {
		for i := range tk.past {
			p := &tk.past[i]
			list = append(list, wire.AttemptStatus{
				Attempt: wire.AttemptID{Task: tk.id, N: p.n}, Tracker: p.tracker, Addr: p.addr, State: p.state,
				Bytes: wire.Progress{Done: p.bytes, Total: p.bytes}, Began: p.began, Took: p.took, Error: p.cause,
				Level: p.level, Reads: p.reads,
			})
		}
	}
	add(&j.setup)
	for i := range j.maps {
		add(&j.maps[i].task)
	}
	for i := range j.reduces {
		add(&j.reduces[i])
	}
	add(&j.commit)
	add(&j.cleanup)
	for _, a := range j.attempts {
		list = append(list, wire.AttemptStatus{
			Attempt: a.id, Tracker: a.tracker.Name, Addr: a.tracker.Addr, State: a.state, Bytes: a.bytes, Began: a.began,
			Level: a.level,
		})
	}
	slices.SortFunc(list, func(a, b wire.AttemptStatus) int { return a.Attempt.Compare(b.Attempt) })
	return list
}
