package core

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core/assign"
	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/jobtracker/core/forecast"
	"github.com/quernmr/quern/jobtracker/core/profiles"
	"github.com/quernmr/quern/wire"
)

// stepWork is the work that a Step puts off to its end: see settle.
type stepWork struct {
	dirty         []*job      // to advance before Step returns
	spare         []*job      // an empty list, kept for its memory
	justEnded     []*attempt  // attempts that ended in this Step
	reusable      []*attempt  // attempts that ended in earlier Steps, see newAttempt
	gathered      []partition // to be launched in the slots reserved for them
	noHomeFound   []*job      // jobs with partitions for which no home was found
	outputsQueued []*job      // jobs with outputs to announce at the end of the Step
}

// dueTimes is when the leader has to act without an event.
type dueTimes struct {
	leases       time.Duration
	readmits     time.Duration // end of the next exclusion
	tidy         time.Duration
	drains       time.Duration  // when to check draining trackers again
	failedSweeps map[string]int // failed removals of staging directories, by submission key
	alarms       []alarm        // sorted by time
}

// Live is what a leader knows beyond Facts: streams, slots, running attempts, map
// outputs, homes, plans. It is lost when the job tracker no longer leads.
type Live struct {
	c          *Core
	facts      *facts.Facts
	now        time.Duration
	epoch      uint64
	fleet      trackerFleet
	recovery   recovery
	jobs       map[int]*job
	order      []*job // by number
	todo       stepWork
	due        dueTimes
	assign     *assign.Assigner // assigns tasks to slots
	phases     [2]phase
	services   serviceQueues
	roundRobin int // tracker index after the last home or service attempt placed
	shares     shuffleShares
	requests   requests
	sharing    sharing
	profiles   *profiles.Store
	overheads  forecast.Overheads
	predicted  predicted
}

// alarm is a time at which to advance a job.
type alarm struct {
	at  time.Duration
	job int
}

// The two phases with slots, as indexes.
const (
	mapPhase    = assign.Map
	reducePhase = assign.Reduce
)

func phaseOf(k wire.Kind) int {
	if k == wire.Reduce {
		return reducePhase
	}
	return mapPhase
}

// newLive makes the Live of a leader whose term begins.
func newLive(c *Core) *Live {
	l := &Live{c: c, facts: c.facts, now: c.now, epoch: c.facts.Epoch(), jobs: make(map[int]*job)}
	l.fleet, l.recovery, l.requests = newTrackerFleet(), newRecovery(c.now+c.cfg.Lease), make(requests)
	l.due = dueTimes{leases: never, readmits: c.now, tidy: never, drains: never, failedSweeps: make(map[string]int)}
	if c.cfg.Tidy > 0 {
		l.due.tidy = c.now + min(c.cfg.Tidy, firstTidy)
	}
	l.phases = [2]phase{newPhase(wire.Map), newPhase(wire.Reduce)}
	l.assign = assign.New(assigning{l}, queuesLast*c.cfg.Period)
	l.profiles = profiles.New(facts.MaxEndedJobs, maxProfiled)
	l.setPools()
	l.useScheduling()
	for t := range l.facts.Trackers() {
		l.addTracker(t)
		l.recovery.awaiting[t.Name] = true
	}
	for f := range l.facts.Jobs() {
		if !f.Ended() {
			age := time.Duration(l.wall()-f.Submission().At()) * time.Millisecond
			j := l.addJob(f, l.now-max(age, 0))
			j.recovering, j.planned.plansSince = true, l.wall()
		}
	}
	l.releaseIfDue()
	l.checkExclusions()
	for s := range l.facts.Submissions() {
		l.sweep(s)
	}
	return l
}

// drop ends the leader's term: it closes streams and answers open requests.
func (l *Live) drop() {
	streams := slices.AppendSeq(slices.Collect(maps.Keys(l.fleet.unwelcomed)), maps.Keys(l.fleet.bound))
	slices.Sort(streams)
	for _, id := range streams {
		l.c.emit(CloseStream{Stream: id})
	}
	var tokens []Token
	for _, list := range l.requests {
		for _, w := range list {
			tokens = append(tokens, w.token())
		}
	}
	slices.Sort(tokens)
	for _, t := range tokens {
		l.c.emit(Reply{Token: t, Err: &NotLeaderError{}})
	}
}

// wall is the current time in Unix milliseconds, for display and for long waits; leases never
// use it.
func (l *Live) wall() int64 { return l.c.wall + l.now.Milliseconds() }

func (l *Live) propose(x facts.Fact) { l.c.pending.propose(l.c, x) }

// handle takes an event that is not of the log.
func (l *Live) handle(ev Event) {
	switch ev := ev.(type) {
	case FromTracker:
		l.fromTracker(ev.Stream, ev.Message)
	case StreamClosed:
		l.streamClosed(ev.Stream)
	case Submit:
		l.submit(ev)
	case Kill:
		l.killJob(ev)
	case Change:
		l.change(ev)
	case Schedule:
		l.schedule(ev)
	case Drain:
		l.drainTracker(ev)
	case Pools:
		l.poolsRead(ev)
	case SplitsLoaded:
		l.splitsLoaded(ev)
	case StagingRemoved:
		l.stagingRemoved(ev)
	case HistoryWritten:
		l.historyWritten(ev)
	case HistoryLoaded:
		l.historyLoaded(ev)
	case Tidied:
		l.tidied(ev)
	case Allocated:
		l.allocated(ev)
	default:
		panic(fmt.Sprintf("core: unexpected event %T", ev))
	}
}

// applied acts on a committed fact. fitted is false when the fact changed nothing.
func (l *Live) applied(x facts.Fact, fitted bool) {
	switch x := x.(type) {
	case *facts.TrackerRegistered:
		l.registered(x, fitted)
	case *facts.TrackerLost:
		if fitted {
			l.trackerLost(x)
		}
	case *facts.TrackerExcluded:
		l.excluded(x.Tracker, x.Incarnation, fitted)
	case *facts.TrackerReadmitted:
		if fitted {
			l.excluded(x.Tracker, x.Incarnation, true)
		}
	case *facts.Submitted:
		l.submitted(x, fitted)
	case *facts.Swept:
		delete(l.due.failedSweeps, x.Key)
	case *facts.Stopped:
		l.stopped(x, fitted)
	case *facts.Granted:
		l.granted(l.jobs[x.Job], x, fitted)
	case *facts.SettingsChanged:
		l.changeApplied(x, fitted)
	case *facts.SchedulingChanged:
		l.scheduleApplied(x, fitted)
	case *facts.PoolsChanged:
		l.poolsApplied(fitted)
	case *facts.Drain:
		l.drainApplied(x, fitted)
	default:
		if fitted {
			l.jobFact(x)
		}
	}
}

// jobFact acts on a fact about one job.
func (l *Live) jobFact(x facts.Fact) {
	switch x := x.(type) {
	case *facts.SplitsWritten:
		l.splitsWritten(l.jobs[x.Job])
	case *facts.DigestsKnown:
		l.touch(l.jobs[x.Job])
	case *facts.Revoked:
		l.revoked(l.jobs[x.Job], x)
	case *facts.Committed:
		l.committed(l.jobs[x.Job], x)
	case *facts.Committing:
		l.jobs[x.Job].service.commitSince = l.now
		l.touch(l.jobs[x.Job])
	case *facts.Ended:
		l.jobEnded(l.jobs[x.Job])
	}
}

// touch has settle advance a job before Step returns.
func (l *Live) touch(j *job) {
	if !j.dirty {
		j.dirty = true
		l.todo.dirty = append(l.todo.dirty, j)
	}
}

// touchAll touches all jobs after a change that any of them may wait for, such as a new
// tracker.
func (l *Live) touchAll() {
	for _, j := range l.order {
		l.touch(j)
	}
}

// alarm touches a job at a later time.
func (l *Live) alarm(j *job, at time.Duration) {
	a := alarm{at, j.facts.N()}
	i, found := slices.BinarySearchFunc(l.due.alarms, a, func(x, y alarm) int {
		if x.at != y.at {
			return compareTimes(x.at, y.at)
		}
		return x.job - y.job
	})
	if !found {
		l.due.alarms = slices.Insert(l.due.alarms, i, a)
	}
}

// settle does everything that follows from the event, in the order of the package comment.
func (l *Live) settle() {
	l.now = l.c.now
	l.checkLeases()
	l.checkAwaited()
	l.checkExclusions()
	l.expireQueues()
	for len(l.due.alarms) > 0 && l.due.alarms[0].at <= l.now {
		if j := l.jobs[l.due.alarms[0].job]; j != nil {
			l.touch(j)
		}
		l.due.alarms = l.due.alarms[1:]
	}
	l.advanceTouched()
	l.checkDrains()
	l.advanceTouched()
	l.serveQueued()
	l.fillSlots()
	l.dismissDrained()
	l.tidy()
	l.flushOutputs()
	l.sendShares()
	l.allocate()
	l.todo.reusable, l.todo.justEnded = append(l.todo.reusable, l.todo.justEnded...), l.todo.justEnded[:0]
}

// advanceTouched advances the touched jobs, by number, until none is left.
func (l *Live) advanceTouched() {
	for len(l.todo.dirty) > 0 {
		touched := l.todo.dirty
		l.todo.dirty = l.todo.spare
		slices.SortFunc(touched, func(a, b *job) int { return cmp.Compare(a.facts.N(), b.facts.N()) })
		for _, j := range touched {
			j.dirty = false
		}
		for _, j := range touched {
			if l.jobs[j.facts.N()] == j {
				l.advance(j)
				l.updateLines(j)
			}
		}
		l.todo.spare = touched[:0]
	}
}

// never is a time that does not come.
const never = assign.Never

func compareTimes(a, b time.Duration) int { return int(min(max(a-b, -1), 1)) }

// wake is when the leader next has to act, if ever.
func (l *Live) wake() (time.Duration, bool) {
	at := min(l.assign.QueuedUntil(mapPhase), l.assign.QueuedUntil(reducePhase), l.due.leases, l.recovery.awaitDue, l.due.readmits, l.due.tidy, l.due.drains)
	if len(l.due.alarms) > 0 {
		at = min(at, l.due.alarms[0].at)
	}
	for i := range l.phases {
		if !l.phases[i].planning {
			at = min(at, l.phases[i].due)
		}
	}
	return at, at != never
}
