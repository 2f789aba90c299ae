package core

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/quernmr/quern/scheduler/menu"
	"github.com/quernmr/quern/wire"
)

// attempt is a running try at a task.
type attempt struct {
	id      wire.AttemptID
	job     *job
	task    *task
	next    *attempt // at the task
	tracker *tracker
	bytes   wire.Progress
	digest  uint64            // of what a reduce reads, 0: not known
	began   int64             // Unix milliseconds; of an adopted one, when it was adopted
	reason  string            // of the Kill that was sent
	killed  bool              // it was
	state   wire.AttemptState // only rises
	level   wire.Level        // of a map
	cold    bool              // it began with a process of its own

	place int32 // in job.attempts
}

// attempts is those of a job that run, in no order. One that ends leaves its place to the
// next that begins, so that the others need not be looked at.
type attempts struct {
	places []*attempt // nil where one is vacant
	vacant []int32
}

func (s *attempts) Len() int { return len(s.places) - len(s.vacant) }

func (s *attempts) add(a *attempt) {
	last := len(s.vacant) - 1
	if last < 0 {
		a.place = int32(len(s.places))
		s.places = append(s.places, a)
		return
	}
	a.place, s.vacant = s.vacant[last], s.vacant[:last]
	s.places[a.place] = a
}

func (s *attempts) remove(a *attempt) {
	s.places[a.place] = nil
	s.vacant = append(s.vacant, a.place)
}

// all yields them. The one yielded may be removed.
func (s *attempts) all() iter.Seq[*attempt] {
	return func(yield func(*attempt) bool) {
		for _, a := range s.places {
			if a != nil && !yield(a) {
				return
			}
		}
	}
}

// attempt is the one of an id that runs, or nil.
func (j *job) attempt(id wire.AttemptID) *attempt {
	if tk := j.task(id.Task); tk != nil {
		return tk.numbered(id.N)
	}
	for a := range j.attempts.all() { // of a fence the task may be forgotten
		if a.id == id {
			return a
		}
	}
	return nil
}

// sortedAttempts lists attempts by id, as they are now.
func sortedAttempts(all iter.Seq[*attempt]) []*attempt {
	return slices.SortedFunc(all, func(x, y *attempt) int { return x.id.Compare(y.id) })
}

// launch starts the next attempt of a task. It gives up the job when the epoch
// has no more numbers for the task: something ends its attempts for ever.
func (l *Live) launch(j *job, tk *task, t *tracker, subject wire.AttemptID) {
	if tk.next >= wire.EpochAttempts {
		l.stopJob(j, wire.Failed, j.idOf(tk).String()+" has used up its attempts without one that failed by its own fault")
		return
	}
	id := wire.AttemptID{Task: j.idOf(tk), N: int(l.epoch)*wire.EpochAttempts + int(tk.next)}
	tk.next++
	l.start(j, tk, t, id)
	m := &wire.Launch{
		Epoch: l.epoch, Attempt: id, Staging: j.facts.Submission().Staging(), Index: j.facts.Index(),
		Subject: subject, Timeout: j.spec.Timeout,
		Memory: j.spec.Tasks(tk.kind).Memory, Processes: j.spec.Processes, Rack: t.rack,
		Token: j.spec.token,
	}
	switch tk.kind {
	case wire.Reduce:
		m.Generation = j.housing.homes[tk.n].gen
	case wire.Cleanup:
		m.Outcome = j.facts.Stop().Outcome
	}
	l.send(t, m)
}

// start notes a running attempt, launched or adopted.
func (l *Live) start(j *job, tk *task, t *tracker, id wire.AttemptID) *attempt {
	a := l.newAttempt()
	*a = attempt{id: id, job: j, task: tk, tracker: t, state: wire.AttemptRunning, began: l.wall()}
	tk.add(a)
	j.attempts.add(a)
	t.attempts = append(t.attempts, a)
	if !id.Task.Kind.Slotted() {
		l.countService(t, 1)
	} else {
		p := phaseOf(id.Task.Kind)
		if p == reducePhase && j.housing.homes[id.Task.N].tracker == t {
			l.freeSlot(j, id.Task.N) // which this one takes
		}
		l.assign.Occupy(&j.assign, &t.assign, p)
		j.tally.launched[p]++
		l.countLevel(a)
		l.update(a)
	}
	a.cold = j.measures.Began(t.number)
	return a
}

// newAttempt takes the memory of one that has ended, so that those that run lie together.
func (l *Live) newAttempt() *attempt {
	last := len(l.todo.over) - 1
	if last < 0 {
		return new(attempt)
	}
	a := l.todo.over[last]
	l.todo.over = l.todo.over[:last]
	return a
}

// remove forgets an attempt and frees its slot. The caller says what becomes of the task.
// Until the end of the Step it may be looked at. The job and the tracker are the attempt's:
// who has them already need not wait for its memory to find theirs.
func (l *Live) remove(j *job, t *tracker, a *attempt) {
	a.task.remove(a)
	j.attempts.remove(a)
	j.measures.Ended(t.number)
	t.remove(a)
	j.service.waitsGrant = slices.DeleteFunc(j.service.waitsGrant, func(x *attempt) bool { return x == a })
	l.todo.justOver = append(l.todo.justOver, a)
	if kind := a.id.Task.Kind; !kind.Slotted() {
		l.countService(t, -1)
	} else {
		p := phaseOf(kind)
		l.assign.Vacate(&j.assign, &t.assign, p)
		l.phases[p].completed(l.now)
		if p == mapPhase && l.phases[reducePhase].due == never && menu.NeedsOf(l.sharing.Policy).Early {
			l.phases[reducePhase].completed(l.now) // reduces may count from now on
		}
	}
	l.touch(j)
}

// remove puts the last of a tracker's attempts in the place of another. They are few, and
// all are looked at: see has.
func (t *tracker) remove(a *attempt) {
	at, last := 0, len(t.attempts)-1
	for i, x := range t.attempts {
		if x == a {
			at = i
		}
	}
	t.attempts[at] = t.attempts[last]
	t.attempts[last], t.attempts = nil, t.attempts[:last]
}

// update brings the task of an attempt into or out of the sets it is picked from.
func (l *Live) update(a *attempt) {
	switch a.id.Task.Kind {
	case wire.Map:
		l.updateMap(a.job, a.id.Task.N)
	case wire.Reduce:
		l.updateReduce(a.job, a.id.Task.N)
	}
}

func (l *Live) kill(a *attempt, reason string) {
	if !a.killed {
		a.killed, a.reason = true, reason
		l.send(a.tracker, &wire.Kill{Epoch: l.epoch, Attempt: a.id, Reason: reason})
	}
}

// report takes an attempt's new state in, from whichever message it came.
func (l *Live) report(t *tracker, r *wire.Report) {
	j := l.job(r.Attempt.Task.Job)
	if j == nil {
		return
	}
	a := j.attempt(r.Attempt)
	switch {
	case a == nil && !t.contact.inventoried && !t.contact.taking:
		return // the inventory will tell, after the homes
	case a != nil && a.tracker != t:
		return
	case a == nil && r.State.Final():
		l.lateResult(t, j, r)
		return
	case a == nil:
		if a = l.adopt(t, j, r); a == nil || a.killed {
			return
		}
	}
	if !r.State.Final() {
		a.bytes, a.digest = r.Bytes, r.Digest
		l.runs(a, r.State)
		return
	}
	result := r.Result
	if result == nil {
		result = &wire.Result{Error: "the tracker sent no result"}
	}
	l.finished(j, t, a, r.State, result)
}

// runs follows an attempt that has not ended. On a new stream what was sent on
// the one before may have been lost, so it is said again.
func (l *Live) runs(a *attempt, state wire.AttemptState) {
	again := !a.tracker.contact.inventoried
	if a.killed {
		if again {
			a.killed = false
			l.kill(a, a.reason)
		}
		return
	}
	if state == wire.AttemptReady && (a.state < state || again) {
		a.state = state
		l.ready(a)
	}
}

// finished ends an attempt and does what its end means for the job.
func (l *Live) finished(j *job, t *tracker, a *attempt, state wire.AttemptState, r *wire.Result) {
	l.remove(j, t, a)
	if state != wire.AttemptSucceeded {
		j.measures.WorkerEnded(t.number)
	}
	l.keep(a, state, r)
	if state == wire.AttemptSucceeded && !a.id.Task.Kind.Slotted() && r.Error != "" {
		state = wire.AttemptFailed
	}
	ran := time.Duration(l.wall()-a.began) * time.Millisecond
	launched := l.now - r.Took
	if !l.adopted(a) {
		launched = l.now - max(r.Took, ran) // its report may have waited
	}
	switch state {
	case wire.AttemptSucceeded:
		if a.id.Task.Kind.Slotted() {
			t.health.Succeeded(phaseOf(a.id.Task.Kind), launched)
			l.measure(j, a.task, t, cmp.Or(r.Took, ran), r.Reads, a.cold)
		}
		switch a.id.Task.Kind {
		case wire.Map:
			l.assign.Learn(&j.assign, a.level, r.Took, r.Reads)
		case wire.Reduce:
			l.learnSpeed(j, t, r)
		}
		l.succeeded(j, t, a.task, a.id, r)
	case wire.AttemptFailed:
		if l.failed(j, t, a.task, a.id, r, launched) && a.id.Task.Kind.Slotted() && !l.adopted(a) && t.health.Counts(launched) {
			l.suspect(a, ran)
		}
	}
	l.attemptOver(a)
}

// vanished ends an attempt that nobody will report on any more. It is no failure.
func (l *Live) vanished(a *attempt) {
	l.remove(a.job, a.tracker, a)
	a.job.measures.WorkerEnded(a.tracker.number)
	l.keepLost(a)
	l.attemptOver(a)
}

// attemptOver lets the task have its next attempt, after a fence if this one might have committed.
func (l *Live) attemptOver(a *attempt) {
	j, n := a.job, a.id.Task.N
	if a.id.Task.Kind == j.facts.Kind() && j.facts.HasGrant(n, a.id.N) && !l.proposedCommit(j, n, a.id.N) {
		l.fence(j, n)
	}
	l.update(a)
	l.touch(j)
}

// lateResult takes a final report in of an attempt that is not known to run: a
// repeated one, or one that ended under an earlier leader.
func (l *Live) lateResult(t *tracker, j *job, r *wire.Report) {
	tk := j.task(r.Attempt.Task)
	if tk == nil || r.Result == nil {
		return
	}
	l.keepLate(t, j, tk, r)
	switch r.State {
	case wire.AttemptSucceeded:
		if r.Attempt.Task.Kind.Slotted() && r.Result.Took > 0 {
			l.measure(j, tk, t, r.Result.Took, r.Result.Reads, true)
		}
		if r.Attempt.Task.Kind.Slotted() || r.Result.Error == "" {
			l.succeeded(j, t, tk, r.Attempt, r.Result)
		}
	case wire.AttemptFailed:
		l.failed(j, t, tk, r.Attempt, r.Result, l.now-r.Result.Took)
	}
	l.touch(j)
}

// succeeded acts on a result; it may come more than once.
func (l *Live) succeeded(j *job, t *tracker, tk *task, id wire.AttemptID, r *wire.Result) {
	n := id.Task.N
	l.redeem(j, tk, t)
	switch kind := id.Task.Kind; {
	case kind.Slotted() && kind == j.facts.Kind():
		l.taskCommitted(j, tk, id, r)
	case kind == wire.Map:
		l.mapSucceeded(j, t, n, id, r)
	case kind == wire.Fence:
		l.fenced(j, tk, r)
	default:
		l.served(j, t, tk, id, r)
	}
}

// count adds a task's counters to the job's, once. Each attempt has kept the job's limits;
// a job whose tasks together do not fails.
func (l *Live) count(j *job, tk *task, r *wire.Result) {
	if tk.counted {
		return
	}
	tk.counted = true
	if err := j.spec.CounterLimits.Merge(j.tally.counters, r.Counters); err != nil && tk.kind.Slotted() {
		l.stopJob(j, wire.Failed, fmt.Sprintf("%v: %v", j.idOf(tk), err))
	}
	switch tk.kind {
	case wire.Map:
		j.tally.read += r.Bytes
	case wire.Reduce:
		j.tally.reduced += r.Bytes
	}
}
