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

// attempt is a running attempt of a task. It has two cache lines: a Step may read the first fields of
// all attempts.
type attempt struct {
	id        wire.AttemptID
	job       *job
	began     int64             // time of launch or adoption, in Unix milliseconds
	second    bool              // speculative: launched beside another attempt of the task
	state     wire.AttemptState // it only increases
	level     wire.Level        // locality of a map
	coldStart bool              // it started a new process
	index     int32             // index in attempts.entries

	task    *task
	next    *attempt // next running attempt of the task
	tracker *tracker
	bytes   wire.Progress
	digest  uint64 // sum of the digests that a reduce has read; 0: unknown
	reason  string // reason in the Kill that was sent; empty: none was sent
}

// killed reports whether a Kill was sent.
func (a *attempt) killed() bool { return a.reason != "" }

// attempts holds the running attempts of a job, in no order. Vacant entries are reused, so that
// removal moves no other attempt.
type attempts struct {
	entries []*attempt // nil where vacant
	vacant  []int32    // indexes of vacant entries
}

func (s *attempts) Len() int { return len(s.entries) - len(s.vacant) }

func (s *attempts) add(a *attempt) {
	last := len(s.vacant) - 1
	if last < 0 {
		a.index = int32(len(s.entries))
		s.entries = append(s.entries, a)
		return
	}
	a.index, s.vacant = s.vacant[last], s.vacant[:last]
	s.entries[a.index] = a
}

func (s *attempts) remove(a *attempt) {
	s.entries[a.index] = nil
	s.vacant = append(s.vacant, a.index)
}

// has reports whether an attempt is running; its memory may hold another one by now.
func (s *attempts) has(a *attempt) bool {
	return int(a.index) < len(s.entries) && s.entries[a.index] == a
}

// all yields the attempts. The caller may remove the attempt that was yielded.
func (s *attempts) all() iter.Seq[*attempt] {
	return func(yield func(*attempt) bool) {
		for _, a := range s.entries {
			if a != nil && !yield(a) {
				return
			}
		}
	}
}

// attempt finds a running attempt by id, or returns nil.
func (j *job) attempt(id wire.AttemptID) *attempt {
	if tk := j.task(id.Task); tk != nil {
		return tk.attempt(id.N)
	}
	for a := range j.attempts.all() { // j.task does not find fences
		if a.id == id {
			return a
		}
	}
	return nil
}

// sortedAttempts sorts attempts by id.
func sortedAttempts(all iter.Seq[*attempt]) []*attempt {
	return slices.SortedFunc(all, func(x, y *attempt) int { return x.id.Compare(y.id) })
}

// launch launches the next attempt of a task. subject is the attempt that a fence examines. If
// the task has used all attempt numbers of this epoch, launch stops the job.
func (l *leader) launch(j *job, tk *task, t *tracker, subject wire.AttemptID) {
	if tk.launched >= wire.EpochAttempts {
		l.stopJob(j, wire.Failed, fmt.Sprintf("%v was launched %d times by one leader without success", j.idOf(tk), tk.launched))
		return
	}
	id := wire.AttemptID{Task: j.idOf(tk), N: int(l.epoch)*wire.EpochAttempts + int(tk.launched)}
	tk.launched++
	second := tk.runs()
	a := l.addAttempt(j, tk, t, id)
	a.second = second
	if tk.launched > 1 {
		l.logAttempt(j, false, "task relaunched", id, t.Name, "speculative", second)
	}
	l.countLaunch(j, a)
	l.charge(launchCost)
	m := &wire.Launch{
		Epoch: l.epoch, Attempt: id, Staging: j.facts.Submission().Staging(), Index: j.facts.Index(),
		Subject: subject, Timeout: j.spec.Timeout,
		Memory: j.spec.ForKind(tk.kind).MaxMemory, Processes: j.spec.MaxProcesses, LocalBytes: j.spec.MaxLocalBytes, Rack: t.rack,
		Token: j.spec.token, Skip: j.skipMode(tk), Digest: j.facts.Submission().Digest(),
		Owner: j.facts.Submission().Owner(), Cores: j.spec.ForKind(tk.kind).Cores,
	}
	switch tk.kind {
	case wire.Reduce:
		m.Generation = j.partitions.homes[tk.n].generation
	case wire.Commit:
		m.GivenUp = j.facts.GivenUpTasks(j.facts.Kind()).Words()
		if j.facts.Reduces() > 0 {
			m.GivenUpMaps = j.facts.GivenUpTasks(wire.Map).Words()
		}
	case wire.Cleanup:
		m.Outcome = j.facts.Stop().Outcome
	}
	l.send(t, m)
}

// addAttempt records a running attempt, launched or adopted.
func (l *leader) addAttempt(j *job, tk *task, t *tracker, id wire.AttemptID) *attempt {
	a := l.newAttempt()
	*a = attempt{id: id, job: j, task: tk, tracker: t, state: wire.AttemptRunning, began: l.wall()}
	tk.add(a)
	j.attempts.add(a)
	t.attempts = append(t.attempts, a)
	if !id.Task.Kind.Slotted() {
		l.countService(t, id.Task.Kind, 1)
	} else {
		p := phaseOf(id.Task.Kind)
		if p == reducePhase && j.partitions.homes[id.Task.N].tracker == t {
			l.releaseSlot(j, id.Task.N) // this attempt takes it
		}
		l.assign.Occupy(&j.assign, &t.assign, p)
		j.tally.slots.Launched(a.began)
		j.tally.launched[p]++
		l.countLevel(a)
		l.updateTaskOf(a)
		l.updateProbation(j, t)
	}
	a.coldStart = j.measures.AttemptBegan(t.number, uint32(t.Incarnation))
	if j.isWarm(t) {
		j.assign.Warm = 0 // the attempt takes the idle worker
	}
	l.c.noteChange(j.id)
	return a
}

// isSmall reports whether a job has at most one map and one partition, as far as known. Its tasks run one after the other, so they
// should share a worker; tasks of larger jobs should spread.
func (j *job) isSmall() bool { return len(j.maps) <= 1 && len(j.partitions.homes) <= 1 }

// isWarm reports whether a tracker has the idle worker of the job's attempt that succeeded last. Another attempt there needs no
// new process. It is a hint: the tracker may have ended the worker.
func (j *job) isWarm(t *tracker) bool { return int(j.assign.Warm) == t.assign.Index()+1 }

// newAttempt returns memory for an attempt. It reuses the memory of ended attempts, so that
// running ones are close together.
func (l *leader) newAttempt() *attempt {
	last := len(l.todo.reusable) - 1
	if last < 0 {
		return new(attempt)
	}
	a := l.todo.reusable[last]
	l.todo.reusable = l.todo.reusable[:last]
	return a
}

// removeAttempt removes an attempt and frees its slot. The caller then calls updateTaskOf. The
// memory of the attempt stays valid until the end of the Step. j and t are its job and tracker,
// which callers have in cache.
func (l *leader) removeAttempt(j *job, t *tracker, a *attempt) {
	a.task.remove(a)
	j.attempts.remove(a)
	j.measures.AttemptEnded(t.number)
	t.remove(a)
	j.service.awaitingGrant = slices.DeleteFunc(j.service.awaitingGrant, func(x *attempt) bool { return x == a })
	l.todo.justEnded = append(l.todo.justEnded, a)
	if kind := a.id.Task.Kind; !kind.Slotted() {
		l.countService(t, kind, -1)
	} else {
		p := phaseOf(kind)
		l.assign.Vacate(&j.assign, &t.assign, p)
		j.tally.slots.Vacated(a.began)
		l.updateProbation(j, t)
		l.phases[p].planSoon(l.now)
		if p == mapPhase && l.phases[reducePhase].nextPlanAt == never && menu.NeedsOf(l.sharing.Policy).Early {
			l.phases[reducePhase].planSoon(l.now) // the scheduler may plan reduces now
		}
	}
	l.touch(j)
}

// remove removes an attempt from the tracker's list, which is short.
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

// updateTaskOf updates whether the task of an attempt can be launched.
func (l *leader) updateTaskOf(a *attempt) { l.updateTask(a.job, a.task) }

// updateTask updates whether a map or reduce can be launched.
func (l *leader) updateTask(j *job, tk *task) {
	switch tk.kind {
	case wire.Map:
		l.updateMap(j, int(tk.n))
	case wire.Reduce:
		l.updateReduce(j, int(tk.n))
	}
}

func (l *leader) killAttempt(a *attempt, reason string) {
	if !a.killed() {
		a.reason = reason
		l.sendKill(a)
	}
}

func (l *leader) sendKill(a *attempt) {
	l.send(a.tracker, &wire.Kill{Epoch: l.epoch, Attempt: a.id, Reason: a.reason})
}

// killOthers kills the running attempts of a task except one, which has won.
func (l *leader) killOthers(tk *task, except int, reason string) {
	if !tk.runs() {
		return
	}
	for a := range tk.all() {
		if a.id.N != except {
			l.killAttempt(a, reason)
			if a.id.N < except {
				a.tracker.services.outran = l.now
			}
		}
	}
}

// attemptReport handles an attempt's report, which any message may contain.
func (l *leader) attemptReport(t *tracker, r *wire.Report) {
	j := l.job(r.Attempt.Task.Job)
	if j == nil {
		return
	}
	a := j.attempt(r.Attempt)
	switch {
	case a == nil && !t.contact.inventoried && !t.contact.readingInventory:
		return // the inventory will list the attempt
	case a != nil && a.tracker != t:
		return
	case a == nil && r.State.Final():
		l.lateResult(t, j, r)
		return
	case a == nil:
		if a = l.adopt(t, j, r); a == nil || a.killed() {
			return
		}
	}
	if !r.State.Final() {
		if a.bytes != r.Bytes {
			l.c.noteChange(j.id)
		}
		a.bytes, a.digest = r.Bytes, r.Digest
		l.setHot(j, r.Attempt.Task, r.Hot)
		l.attemptProgress(a, r.State)
		return
	}
	state, result := finalResult(j, r)
	if r.State == wire.AttemptKilled && !a.killed() && !j.faults.Excuse(a.task.key(), r.Attempt.N) {
		state = wire.AttemptFailed // its trackers gave reasons, such as full disks: the task may be the cause
	}
	l.attemptFinished(j, t, a, state, result)
}

// finalResult returns how an attempt has ended. If a map's output has other records than the log
// says, the attempt counts as killed.
func finalResult(j *job, r *wire.Report) (wire.AttemptState, *wire.Result) {
	switch {
	case r.Result == nil:
		return r.State, &wire.Result{Error: "the tracker sent no result"}
	case r.State == wire.AttemptSucceeded && r.Attempt.Task.Kind != j.facts.Kind() && j.skipsOthers(r):
		return wire.AttemptKilled, &wire.Result{Error: "later attempts of the task skip more", Took: r.Result.Took, Bytes: r.Result.Bytes, Reads: r.Result.Reads}
	}
	return r.State, r.Result
}

// attemptProgress handles the report of a running attempt. If the report is part of an inventory,
// an earlier Kill or Grant may be lost, and is sent again.
func (l *leader) attemptProgress(a *attempt, state wire.AttemptState) {
	inInventory := !a.tracker.contact.inventoried
	if a.killed() {
		if inInventory {
			l.sendKill(a)
		}
		return
	}
	if state == wire.AttemptReady && (a.state < state || inInventory) {
		a.state = state
		l.attemptReady(a)
	}
}

// attemptFinished ends an attempt and acts on its result.
func (l *leader) attemptFinished(j *job, t *tracker, a *attempt, state wire.AttemptState, r *wire.Result) {
	l.removeAttempt(j, t, a)
	if a.killed() && state == wire.AttemptFailed {
		state = wire.AttemptKilled // the failure and the Kill have crossed
	}
	if state == wire.AttemptKilled && a.killed() && l.failedOnRequest(a.id) {
		state, r = wire.AttemptFailed, &wire.Result{Error: a.reason, Took: r.Took, Bytes: r.Bytes, Reads: r.Reads}
	}
	if state != wire.AttemptSucceeded {
		j.measures.WorkerEnded(t.number)
	}
	l.recordEnd(a, state, r)
	if state == wire.AttemptSucceeded && !a.id.Task.Kind.Slotted() && r.Error != "" {
		state = wire.AttemptFailed
	}
	ran := time.Duration(l.wall()-a.began) * time.Millisecond
	launched := l.now - r.Took
	if !l.adopted(a) {
		launched = l.now - max(r.Took, ran) // if the report is late, ran is longer
	}
	switch state {
	case wire.AttemptSucceeded:
		t.services.succeeded = l.now
		if j.isSmall() {
			j.assign.Warm = int32(t.assign.Index()) + 1
		}
		if a.id.Task.Kind.Slotted() {
			l.succeededOn(a, launched)
			l.recordTime(j, a.task, t, cmp.Or(r.Took, ran), r.Reads, a.coldStart)
		}
		switch a.id.Task.Kind {
		case wire.Map:
			l.assign.AddMapTime(&j.assign, a.level, r.Took, r.Reads)
		case wire.Reduce:
			l.learnSlowdown(j, t, r)
		}
		l.attemptSucceeded(j, t, a.task, a.id, r)
	case wire.AttemptKilled:
		l.logAttempt(j, false, "attempt killed", a.id, t.Name, "why", firstLine(cmp.Or(a.reason, r.Error)))
	case wire.AttemptFailed:
		if l.attemptFailed(j, t, a.task, a.id, r, launched) && a.id.Task.Kind.Slotted() && !l.adopted(a) && t.health.Counts(launched) {
			l.suspectTracker(a, ran)
		}
	}
	l.answerEnds(a, state, false)
	l.allowNextAttempt(a)
}

// attemptLost ends an attempt that no tracker will report again. It is not a failure.
func (l *leader) attemptLost(a *attempt) {
	l.removeAttempt(a.job, a.tracker, a)
	a.job.measures.WorkerEnded(a.tracker.number)
	l.recordLost(a)
	l.logAttempt(a.job, true, "attempt lost", a.id, a.tracker.Name)
	l.answerEnds(a, wire.AttemptKilled, true)
	l.allowNextAttempt(a)
}

// allowNextAttempt lets the task have its next attempt. If the ended attempt may have committed,
// a fence comes first.
func (l *leader) allowNextAttempt(a *attempt) {
	j, n := a.job, a.id.Task.N
	if a.id.Task.Kind == j.facts.Kind() && j.facts.HasGrant(n, a.id.N) && !l.commitProposed(j, n, a.id.N) {
		l.addFence(j, n)
	}
	l.updateTaskOf(a)
	l.touch(j)
}

// lateResult handles the final report of an attempt that the leader does not know as running:
// the report is a repetition, or the attempt ended under an earlier leader.
func (l *leader) lateResult(t *tracker, j *job, r *wire.Report) {
	tk := j.task(r.Attempt.Task)
	if tk == nil || r.Result == nil {
		return
	}
	l.recordLate(t, j, tk, r)
	state, _ := finalResult(j, r)
	switch state {
	case wire.AttemptSucceeded:
		if r.Attempt.Task.Kind.Slotted() && r.Result.Took > 0 {
			l.recordTime(j, tk, t, r.Result.Took, r.Result.Reads, true)
		}
		if r.Attempt.Task.Kind.Slotted() || r.Result.Error == "" {
			l.attemptSucceeded(j, t, tk, r.Attempt, r.Result)
		}
	case wire.AttemptFailed:
		l.attemptFailed(j, t, tk, r.Attempt, r.Result, l.now-r.Result.Took)
	}
	l.touch(j)
}

// attemptSucceeded acts on a successful result, which may come more than once.
func (l *leader) attemptSucceeded(j *job, t *tracker, tk *task, id wire.AttemptID, r *wire.Result) {
	n := id.Task.N
	l.blameTrackers(j, tk, t)
	switch kind := id.Task.Kind; {
	case kind.Slotted() && kind == j.facts.Kind():
		l.taskCommitted(j, tk, id, r)
	case kind == wire.Map:
		l.mapSucceeded(j, t, n, id, r)
	case kind == wire.Fence:
		l.fenceSucceeded(j, tk, id, r)
	default:
		l.serviceSucceeded(j, t, tk, id, r)
	}
}

// addCounters adds a task's counters to its job's counters, once. The job fails if they exceed
// its counter limits.
func (l *leader) addCounters(j *job, tk *task, r *wire.Result) {
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
