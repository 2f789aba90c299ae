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
	"github.com/quernmr/quern/jobtracker/core/health"
	"github.com/quernmr/quern/jobtracker/core/placement"
	"github.com/quernmr/quern/jobtracker/core/profiles"
	"github.com/quernmr/quern/jobtracker/core/quota"
	"github.com/quernmr/quern/wire"
)

// stepWork is work that finishStep does at the end of a Step.
type stepWork struct {
	touched       []*job           // jobs to advance
	spareList     []*job           // an empty list, kept for its memory
	justEnded     []*attempt       // attempts that ended in this Step
	reusable      []*attempt       // memory of attempts that ended in earlier Steps, see newAttempt
	gathered      []partition      // partitions to be reduced in slots that are reserved for them
	noHomeFound   []*job           // jobs with partitions for which no tracker can be the home
	outputsQueued []*job           // jobs with outputs for flushOutputs
	stragglers    []straggling     // phases that speculate looks at
	sites         []placement.Site // memory of homeSites
	gatherings    []gathering      // memory of gathering
}

// timers has the times at which the leader must act without an event.
type timers struct {
	leases         time.Duration  // next check of leases
	readmits       time.Duration  // end of the next exclusion
	tidy           time.Duration  // next Tidy
	drains         time.Duration  // next check of draining trackers
	failedRemovals map[string]int // failed removals of staging directories, by submission key
	alarms         alarms
}

// leader is the state that only the leader has. It is lost when the job tracker no longer leads.
type leader struct {
	c          *Core
	facts      *facts.Facts
	now        time.Duration
	epoch      uint64
	fleet      trackerFleet
	recovery   recovery
	jobs       map[int]*job
	order      []*job // the jobs, sorted by number
	todo       stepWork
	works      longWorks
	announcing announcing
	timers     timers
	assign     *assign.Assigner // assigns tasks to slots
	phases     [2]phase
	services   serviceQueues
	roundRobin int // 1 + index of the tracker that got the last home or service attempt
	shares     shuffleShares
	requests   requests
	limited    limited
	fetches    health.Fetches
	sharing    sharing
	profiles   *profiles.Store
	overheads  forecast.Overheads
	load       forecast.Load
	forecasts  forecasting
	counting   counting
	describing describing
	collecting collecting
	recent     recentlyEnded
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

// newLeader makes the state of a leader without trackers and jobs, see termStart.
func newLeader(c *Core) *leader {
	l := &leader{c: c, facts: c.facts, now: c.now, epoch: c.facts.Epoch(), jobs: make(map[int]*job)}
	l.makeWorks()
	l.announcing = announcing{l: l, refill: never}
	l.fleet, l.recovery, l.requests = newTrackerFleet(), newRecovery(c.now, c.now+c.cfg.Lease), make(requests)
	l.timers = timers{leases: never, readmits: c.now, tidy: never, drains: never, failedRemovals: make(map[string]int), alarms: alarms{l: l}}
	if c.cfg.TidyPeriod > 0 {
		l.timers.tidy = c.now + min(c.cfg.TidyPeriod, firstTidy)
	}
	l.phases = [2]phase{newPhase(wire.Map), newPhase(wire.Reduce)}
	l.assign = assign.New(assignCluster{l}, queuesLast*c.cfg.PlanPeriod)
	l.profiles = profiles.New(facts.MaxEndedJobs, maxProfiled)
	l.limited.quota = quota.New(c.cfg.Limits.Limits)
	l.setPools()
	l.useScheduling()
	return l
}

// endTerm closes all streams, adds them to closed, and answers open requests.
func (l *leader) endTerm(closed map[Stream]bool) {
	streams := slices.AppendSeq(slices.Collect(maps.Keys(l.fleet.unwelcomed)), maps.Keys(l.fleet.byStream))
	slices.Sort(streams)
	for _, id := range streams {
		l.c.emit(CloseStream{Stream: id})
		closed[id] = true
	}
	var tokens []Token
	for _, list := range l.requests {
		for _, w := range list {
			tokens = append(tokens, w.token())
		}
	}
	tokens = append(append(tokens, l.counting.tokens...), l.describing.tokens...)
	tokens = append(tokens, l.collecting.tokens...)
	slices.Sort(tokens)
	for _, t := range tokens {
		l.c.emit(Reply{Token: t, Err: &NotLeaderError{}})
	}
}

// wall returns the current time in Unix milliseconds. It is for display and for long waits, but
// not for leases.
func (l *leader) wall() int64 { return l.wallAt(l.now) }

func (l *leader) wallAt(t time.Duration) int64 { return l.c.wallAtZero + t.Milliseconds() }

func (l *leader) propose(x facts.Fact) { l.c.pending.propose(l.c, x) }

// handle handles an event that does not come from the log.
func (l *leader) handle(ev Event) {
	switch ev := ev.(type) {
	case FromTracker:
		l.fromTracker(ev)
	case StreamClosed:
		l.streamClosed(ev.Stream)
	case Submit:
		l.submit(ev)
	case Kill:
		l.killJob(ev)
	case EndAttempt:
		l.endAttempt(ev)
	case Change:
		l.change(ev)
	case Schedule:
		l.schedule(ev)
	case Drain:
		l.drainTracker(ev)
	case Exclude:
		l.excludeTracker(ev)
	case TakeCensus:
		l.takeCensus(ev)
	case TakeRecent:
		l.takeRecent(ev)
	case TakeOpenJobs:
		l.takeOpenJobs(ev)
	case PoolsRead:
		l.poolsRead(ev)
	case SplitsLoaded:
		l.effectEnded(ev.Epoch)
		l.splitsLoaded(ev)
	case StagingRemoved:
		l.effectEnded(ev.Epoch)
		l.stagingRemoved(ev)
	case HistoryWritten:
		l.effectEnded(ev.Epoch)
		l.historyWritten(ev)
	case HistoryLoaded:
		l.effectEnded(ev.Epoch)
		l.historyLoaded(ev)
	case Tidied:
		l.effectEnded(ev.Epoch)
		l.tidied(ev)
	case Allocated:
		l.allocated(ev)
	default:
		panic(fmt.Sprintf("core: unexpected event %T", ev))
	}
}

// applied acts on a committed fact. changed is false when the fact changed nothing.
func (l *leader) applied(x facts.Fact, changed bool) {
	switch x := x.(type) {
	case *facts.TrackerRegistered:
		l.registered(x, changed)
	case *facts.TrackerLost:
		if changed {
			l.trackerLost(x)
		}
	case *facts.TrackerExcluded:
		if changed {
			l.c.counts.Excluded.Add(1)
		}
		l.exclusionChanged(x.Tracker, x.Incarnation, changed)
	case *facts.TrackerReadmitted:
		if changed {
			l.exclusionChanged(x.Tracker, x.Incarnation, true)
		}
	case *facts.Submitted:
		l.submitted(x, changed)
	case *facts.Swept:
		delete(l.timers.failedRemovals, x.Key)
	case *facts.Stopped:
		l.stopped(x, changed)
	case *facts.Granted:
		l.granted(l.jobs[x.Job], x, changed)
	case *facts.GivenUp:
		l.givenUp(x, changed)
	case *facts.Skipped:
		l.skipped(x, changed)
	case *facts.SettingsChanged:
		l.changeApplied(x, changed)
	case *facts.SchedulingChanged:
		l.scheduleApplied(x, changed)
	case *facts.PoolsChanged:
		l.poolsApplied(changed)
	case *facts.Drain:
		l.drainApplied(x, changed)
	case *facts.OperatorExcluded:
		l.operatorChanged(x, x.Exclusion.Tracker, changed)
	case *facts.OperatorReadmitted:
		l.operatorChanged(x, x.Tracker, changed)
	default:
		if changed {
			l.jobFact(x)
		}
	}
}

func (l *leader) jobFact(x facts.Fact) {
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
		l.committing(l.jobs[x.Job])
	case *facts.Ended:
		l.jobEnded(l.jobs[x.Job])
	}
}

// touch makes finishStep advance a job.
func (l *leader) touch(j *job) {
	l.c.noteChange(j.id)
	if !j.touched {
		j.touched = true
		l.todo.touched = append(l.todo.touched, j)
	}
}

// finishStep does everything that follows from an event. See the package comment.
func (l *leader) finishStep() {
	l.now = l.c.now
	if len(l.c.early) == 0 { // they may be what is awaited
		l.checkLeases()
		l.checkAwaited()
	}
	l.checkExclusions()
	l.expireQueues()
	l.works.stepAgain = false
	if l.timers.alarms.next() <= l.now {
		l.works.Add(&l.timers.alarms)
	}
	l.advanceWorks()
	l.advanceTouched()
	l.checkDrains()
	l.beginJobs()
	l.advanceTouched()
	l.launchQueuedServices()
	l.keepLimits()
	l.fillSlots()
	l.dismissDrained()
	l.tidy()
	l.flushOutputs()
	l.sendShares()
	l.allocate()
	l.addPoints()
	l.advanceWorks()
	l.todo.reusable, l.todo.justEnded = append(l.todo.reusable, l.todo.justEnded...), l.todo.justEnded[:0]
}

// maxRounds bounds the rounds of advanceTouched. Jobs need few. A job that is touched in all of
// them will always be: a leader that hangs in a Step would stop the cluster and not say why.
const maxRounds = 10_000

// advanceTouched advances the touched jobs, by number, until no job is touched.
func (l *leader) advanceTouched() {
	for round := 1; len(l.todo.touched) > 0; round++ {
		if round > maxRounds {
			j := l.todo.touched[0]
			panic(fmt.Sprintf("core: a Step without end: %v, %v, was advanced %d times and is touched again", j.id, l.facts.State(j.facts), maxRounds))
		}
		touched := l.todo.touched
		l.todo.touched = l.todo.spareList
		slices.SortFunc(touched, func(a, b *job) int { return cmp.Compare(a.facts.N(), b.facts.N()) })
		for _, j := range touched {
			j.touched = false
		}
		for _, j := range touched {
			if l.jobs[j.facts.N()] == j {
				l.charge(1)
				l.advance(j)
				l.updateLines(j)
			}
		}
		l.todo.spareList = touched[:0]
	}
}

// never is later than all times.
const never = assign.Never

// hasWork reports whether the leader needs another Step at once.
func (l *leader) hasWork() bool {
	return l.works.Len() > 0 || len(l.todo.touched) > 0 || l.works.stepAgain
}

// wake returns when the leader must act next without an event; ok is false if never.
func (l *leader) wake() (at time.Duration, ok bool) {
	if l.hasWork() {
		return l.now, true
	}
	at = min(l.assign.QueuedUntil(mapPhase), l.assign.QueuedUntil(reducePhase), l.timers.leases, l.recovery.awaitUntil, l.timers.readmits, l.timers.tidy, l.timers.drains, l.announcing.refill, l.timers.alarms.next())
	for i := range l.phases {
		if !l.phases[i].planning && l.phases[i].surveying == nil {
			at = min(at, l.phases[i].nextPlanAt)
		}
	}
	return at, at != never
}
