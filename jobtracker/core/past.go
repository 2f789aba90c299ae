package core

import (
	"iter"
	"math"
	"slices"

	"github.com/quernmr/quern/wire"
)

// endedAttempts is the attempts of a job that have ended.
type endedAttempts struct {
	pasts  []past   // attempts that have ended, in that order
	causes []string // why, of some of them
	unkept int      // attempts that have ended and are not in pasts
	late   []past   // the last ones of these, see latest
}

// maxPast is how many ended attempts of one job are kept for display and history.
const maxPast = 100_000

// maxLate is how many of the attempts beyond maxPast are known, the last ones, see latest.
const maxLate = 1000

// past is an attempt that has ended. There are as many as tasks, so that it holds no
// texts: these are in ended.causes, and in fleet.named.
type past struct {
	number  int // the AttemptID's
	bytes   int64
	began   int64 // Unix milliseconds
	took    int64 // milliseconds
	reads   wire.Reads
	waited  int32 // milliseconds before it began since it was launched, or unknownLaunch
	task    int32 // the TaskID's number
	tracker int32 // number of its name
	cause   int32 // 1 + its place in ended.causes; 0: none
	before  int32 // as task.past, of the attempt at the task that ended before
	kind    wire.Kind
	state   wire.AttemptState
	level   wire.Level
	lost    bool // how it ended is not known
}

// unknownLaunch is of attempts that an earlier leader has launched. When that was is not
// known, nor when they began: that is taken to be by their time before they were heard of.
const unknownLaunch = -1

// expect makes room for as many attempts as there are tasks.
func (e *endedAttempts) expect(tasks int) { e.pasts = slices.Grow(e.pasts, min(tasks, maxPast)) }

// adopted says whether an earlier leader has launched an attempt.
func (l *Live) adopted(a *attempt) bool { return a.id.N/wire.EpochAttempts != int(l.epoch) }

// waited is how long before a time in Unix milliseconds an attempt was launched.
func (l *Live) waited(a *attempt, began int64) int32 {
	if l.adopted(a) {
		return unknownLaunch
	}
	return int32(min(max(began-a.began, 0), math.MaxInt32))
}

// keep notes how an attempt of this office has ended.
func (l *Live) keep(a *attempt, state wire.AttemptState, r *wire.Result) {
	p := past{
		number: a.id.N, tracker: a.tracker.number, state: state, bytes: max(r.Bytes, a.bytes.Done),
		began: a.began, took: r.Took.Milliseconds(), level: a.level, reads: r.Reads,
	}
	switch {
	case p.took > 0:
		p.began = l.wall() - p.took // of an adopted one too
	default:
		p.took = l.wall() - p.began
	}
	p.waited = l.waited(a, p.began)
	cause := r.Error
	if state == wire.AttemptKilled && a.reason != "" {
		cause = a.reason
	}
	a.job.keep(a.task, p, cause)
}

// keepLost notes an attempt that nobody will report on any more.
func (l *Live) keepLost(a *attempt) {
	cause := "lost with its tracker"
	if !a.tracker.contact.losing {
		cause = "unknown to its tracker, which may not have got the launch"
	}
	a.job.keep(a.task, past{
		number: a.id.N, tracker: a.tracker.number, state: wire.AttemptKilled, lost: true,
		began: a.began, took: l.wall() - a.began, waited: l.waited(a, a.began), level: a.level,
	}, cause)
}

// keepLate notes an attempt that ended under an earlier leader, or while it was
// taken for lost. When that was it does not say: it is taken to be now.
func (l *Live) keepLate(t *tracker, j *job, tk *task, r *wire.Report) {
	took := r.Result.Took.Milliseconds()
	p := past{
		number: r.Attempt.N, tracker: t.number, state: r.State, bytes: r.Result.Bytes,
		began: l.wall() - took, took: took, waited: unknownLaunch, reads: r.Result.Reads,
	}
	if tk.kind == wire.Map && j.assign.Indexed() {
		p.level = j.assign.LevelOf(int(tk.n), &t.assign)
	}
	j.keep(tk, p, r.Result.Error)
}

// levelLate notes how near their input those maps were that had ended before the splits
// were read.
func (l *Live) levelLate(j *job) {
	for i := range j.ended.pasts {
		p := &j.ended.pasts[i]
		if t := l.fleet.trackers[l.fleet.named[p.tracker].Name]; t != nil && p.kind == wire.Map && p.level == 0 {
			p.level = j.assign.LevelOf(int(p.task), &t.assign)
		}
	}
}

// keep adds p to the task's past, once. A fence is settled and has none.
func (j *job) keep(tk *task, p past, cause string) {
	if tk.kind == wire.Fence {
		return
	}
	p.kind, p.task, p.before = tk.kind, tk.n, tk.past
	at := tk.past
	for at != 0 && j.ended.pasts[at-1].number != p.number {
		at = j.ended.pasts[at-1].before
	}
	switch {
	case at != 0 && j.ended.pasts[at-1].lost:
		p.before = j.ended.pasts[at-1].before
	case at == 0 && len(j.ended.pasts) == maxPast:
		if len(j.ended.late) < maxLate {
			j.ended.late = append(j.ended.late, past{})
		}
		j.ended.late[j.ended.unkept%maxLate] = p
		j.ended.unkept++
		return
	case at == 0:
		j.ended.pasts = append(j.ended.pasts, past{})
		at = int32(len(j.ended.pasts))
		tk.past = at
	default:
		return
	}
	if cause != "" {
		j.ended.causes = append(j.ended.causes, bounded(cause, maxTrouble))
		p.cause = int32(len(j.ended.causes))
	}
	j.ended.pasts[at-1] = p
}

// latest yields the attempts that have ended, the last one first. Of those that are not kept
// it has the last ones, so that trackers are judged also by what ends late in a large job.
func (j *job) latest() iter.Seq[*past] {
	return func(yield func(*past) bool) {
		for i := range j.ended.late {
			if !yield(&j.ended.late[(j.ended.unkept-1-i)%maxLate]) {
				return
			}
		}
		for i := len(j.ended.pasts) - 1; i >= 0; i-- {
			if !yield(&j.ended.pasts[i]) {
				return
			}
		}
	}
}

// allAttempts lists a job's attempts by task and number, those that run as of now.
func (l *Live) allAttempts(j *job) []wire.AttemptStatus {
	list := make([]wire.AttemptStatus, 0, len(j.ended.pasts)+j.attempts.Len())
	for i := range j.ended.pasts {
		p := &j.ended.pasts[i]
		s := wire.AttemptStatus{
			Attempt: wire.AttemptID{Task: wire.TaskID{Job: j.id, Kind: p.kind, N: int(p.task)}, N: p.number},
			Tracker: l.fleet.named[p.tracker].Name, Addr: l.fleet.named[p.tracker].Addr, State: p.state,
			Bytes: wire.Progress{Done: p.bytes, Total: p.bytes}, Began: p.began, Took: p.took,
			Level: p.level, Reads: p.reads,
		}
		if p.waited != unknownLaunch {
			s.Launched = p.began - int64(p.waited)
		}
		if p.cause > 0 {
			s.Error = j.ended.causes[p.cause-1]
		}
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
