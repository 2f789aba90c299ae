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

// attempt is a running attempt of a task.
type attempt struct {
	id      wire.AttemptID
	job     *job
	task    *task
	next    *attempt // the task's next running attempt
	tracker *tracker
	bytes   wire.Progress
	digest  uint64            // of a reduce's input; 0: unknown
	began   int64             // launch or adoption, in Unix milliseconds
	reason  string            // of the Kill that was sent
	killed  bool              // a Kill was sent
	state   wire.AttemptState // it only increases
	level   wire.Level        // locality of a map
	cold    bool              // it started a new process

	place int32 // index in job.attempts
}

// attempts is the running attempts of a job, in no order. A new attempt takes a vacant place,
// so that removal does not touch the others.
type attempts struct {
	places []*attempt // nil where vacant
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

// all yields the attempts. The caller may remove the attempt that was yielded.
func (s *attempts) all() iter.Seq[*attempt] {
	return func(yield func(*attempt) bool) {
		for _, a := range s.places {
			if a != nil && !yield(a) {
				return
			}
		}
	}
}

// attempt finds a running attempt by id, or returns nil.
func (j *job) attempt(id wire.AttemptID) *attempt {
	if tk := j.task(id.Task); tk != nil {
		return tk.numbered(id.N)
	}
	for a := range j.attempts.all() { // the task of a fence may be forgotten
		if a.id == id {
			return a
		}
	}
	return nil
}

// sortedAttempts lists attempts by id.
func sortedAttempts(all iter.Seq[*attempt]) []*attempt {
	return slices.SortedFunc(all, func(x, y *attempt) int { return x.id.Compare(y.id) })
}

// launch starts the next attempt of a task. If the epoch has no attempt numbers left for the
// task, it stops the job: something ends its attempts again and again.
func (l *Live) launch(j *job, tk *task, t *tracker, subject wire.AttemptID) {
	if tk.launched >= wire.EpochAttempts {
		l.stopJob(j, wire.Failed, j.idOf(tk).String()+" has used up its attempts without one that failed by its own fault")
		return
	}
	id := wire.AttemptID{Task: j.idOf(tk), N: int(l.epoch)*wire.EpochAttempts + int(tk.launched)}
	tk.launched++
	l.start(j, tk, t, id)
	m := &wire.Launch{
		Epoch: l.epoch, Attempt: id, Staging: j.facts.Submission().Staging(), Index: j.facts.Index(),
		Subject: subject, Timeout: j.spec.Timeout,
		Memory: j.spec.ForKind(tk.kind).MaxMemory, Processes: j.spec.MaxProcesses, Rack: t.rack,
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

// start records a running attempt, launched or adopted.
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
			l.releaseSlot(j, id.Task.N) // this attempt takes it
		}
		l.assign.Occupy(&j.assign, &t.assign, p)
		j.tally.launched[p]++
		l.countLevel(a)
		l.update(a)
	}
	a.cold = j.measures.AttemptBegan(t.number)
	return a
}

// newAttempt reuses the memory of an ended attempt, so that running attempts are close together
// in memory.
func (l *Live) newAttempt() *attempt {
	last := len(l.todo.reusable) - 1
	if last < 0 {
		return new(attempt)
	}
	a := l.todo.reusable[last]
	l.todo.reusable = l.todo.reusable[:last]
	return a
}

// remove forgets an attempt and frees its slot. The caller updates the task. The attempt's
// memory stays valid until the end of the Step. j and t are the attempt's: callers have them in
// cache already.
func (l *Live) remove(j *job, t *tracker, a *attempt) {
	a.task.remove(a)
	j.attempts.remove(a)
	j.measures.AttemptEnded(t.number)
	t.remove(a)
	j.service.awaitingGrant = slices.DeleteFunc(j.service.awaitingGrant, func(x *attempt) bool { return x == a })
	l.todo.justEnded = append(l.todo.justEnded, a)
	if kind := a.id.Task.Kind; !kind.Slotted() {
		l.countService(t, -1)
	} else {
		p := phaseOf(kind)
		l.assign.Vacate(&j.assign, &t.assign, p)
		l.phases[p].planSoon(l.now)
		if p == mapPhase && l.phases[reducePhase].due == never && menu.NeedsOf(l.sharing.Policy).Early {
			l.phases[reducePhase].planSoon(l.now) // the policy may plan reduces now
		}
	}
	l.touch(j)
}

// remove replaces an attempt by the last of the tracker's list. The list is short.
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

// update updates whether the task of an attempt can be launched.
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

// report handles an attempt's report, from any message.
func (l *Live) report(t *tracker, r *wire.Report) {
	j := l.job(r.Attempt.Task.Job)
	if j == nil {
		return
	}
	a := j.attempt(r.Attempt)
	switch {
	case a == nil && !t.contact.inventoried && !t.contact.readingInventory:
		return // the inventory lists it, after the homes
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
		l.attemptRuns(a, r.State)
		return
	}
	result := r.Result
	if result == nil {
		result = &wire.Result{Error: "the tracker sent no result"}
	}
	l.finished(j, t, a, r.State, result)
}

// attemptRuns handles the report of a running attempt. On a new stream it repeats messages that
// may be lost.
func (l *Live) attemptRuns(a *attempt, state wire.AttemptState) {
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
		l.attemptReady(a)
	}
}

// finished ends an attempt and acts on its result.
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
		launched = l.now - max(r.Took, ran) // the report may be late
	}
	switch state {
	case wire.AttemptSucceeded:
		if a.id.Task.Kind.Slotted() {
			t.health.Succeeded(phaseOf(a.id.Task.Kind), launched)
			l.measure(j, a.task, t, cmp.Or(r.Took, ran), r.Reads, a.cold)
		}
		switch a.id.Task.Kind {
		case wire.Map:
			l.assign.AddMapTime(&j.assign, a.level, r.Took, r.Reads)
		case wire.Reduce:
			l.learnSpeed(j, t, r)
		}
		l.succeeded(j, t, a.task, a.id, r)
	case wire.AttemptFailed:
		if l.failed(j, t, a.task, a.id, r, launched) && a.id.Task.Kind.Slotted() && !l.adopted(a) && t.health.Counts(launched) {
			l.suspect(a, ran)
		}
	}
	l.attemptEnded(a)
}

// attemptLost ends an attempt that no tracker will report again. It is not a failure.
func (l *Live) attemptLost(a *attempt) {
	l.remove(a.job, a.tracker, a)
	a.job.measures.WorkerEnded(a.tracker.number)
	l.keepLost(a)
	l.attemptEnded(a)
}

// attemptEnded lets the task have its next attempt, after a fence if this one might have
// committed.
func (l *Live) attemptEnded(a *attempt) {
	j, n := a.job, a.id.Task.N
	if a.id.Task.Kind == j.facts.Kind() && j.facts.HasGrant(n, a.id.N) && !l.proposedCommit(j, n, a.id.N) {
		l.fence(j, n)
	}
	l.update(a)
	l.touch(j)
}

// lateResult handles the final report of an attempt that is not running: a repeated one, or one
// that ended under an earlier leader.
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

// succeeded acts on a successful result, which may come more than once.
func (l *Live) succeeded(j *job, t *tracker, tk *task, id wire.AttemptID, r *wire.Result) {
	n := id.Task.N
	l.blameTrackers(j, tk, t)
	switch kind := id.Task.Kind; {
	case kind.Slotted() && kind == j.facts.Kind():
		l.taskCommitted(j, tk, id, r)
	case kind == wire.Map:
		l.mapSucceeded(j, t, n, id, r)
	case kind == wire.Fence:
		l.fenceSucceeded(j, tk, r)
	default:
		l.serviceSucceeded(j, t, tk, id, r)
	}
}

// count adds a task's counters to the job's, once. A job fails if the sum exceeds its counter
// limits.
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
