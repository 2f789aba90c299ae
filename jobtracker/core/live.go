package core

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/jobtracker/core/assign"
	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/jobtracker/core/forecast"
	"github.com/quernmr/quern/jobtracker/core/taskset"
	"github.com/quernmr/quern/locality"
	"github.com/quernmr/quern/wire"
)

// Live is what a leader knows beyond Facts: streams, slots, running attempts, map
// outputs, homes, plans. It is lost with the office.
type Live struct {
	c      *Core
	facts  *facts.Facts
	topo   locality.Topology // of the splits read so far
	assign *assign.Assigner  // which task runs in which slot
	now    time.Duration
	epoch  uint64

	streams  map[Stream]*stream  // that wait to be welcomed
	bound    map[Stream]*tracker // by the streams that are
	trackers map[string]*tracker
	byIndex  []*tracker       // trackers by their index; nil where one is free
	slots    [2]int           // of all trackers that are given work, or will be once their inventories are in
	unfit    taskset.Set      // indexes of trackers that are shut
	draining taskset.Set      // indexes of those that drain
	placed   int              // homes and service attempts placed so far, for round robin
	numbers  map[string]int32 // of trackers' names
	named    []named          // by number, the last tracker of that name
	leaseDue time.Duration
	awaitDue time.Duration // when recovered jobs wait no longer
	readmits time.Duration // when the next exclusion ends
	tidyDue  time.Duration
	drainDue time.Duration // when it is to be seen what those that drain still have

	jobs        map[int]*job
	order       []*job            // by number
	dirty       []*job            // to be looked at before Step returns
	spare       []*job            // kept for its memory
	justOver    []*attempt        // that have ended in this Step
	over        []*attempt        // that have ended before, see newAttempt
	gatheredNow []partition       // to be launched in the slots that are held for them
	serving     [2][]turn         // service tasks that wait, see serving.go
	room        taskset.Set       // indexes of trackers that may run another service attempt
	servers     int               // trackers that are given work, with or without such room
	expecting   map[string][]*job // that have expected the outputs of a tracker, by its name
	unhoused    []*job            // with partitions for which there was no home
	suspects    [2]taskset.Set    // indexes of trackers that fail all they run, by phase
	telling     []*job            // with outputs to tell of at the end of the Step
	alarms      []alarm           // sorted by time
	awaiting    map[string]bool   // trackers whose inventory recovered jobs wait for

	phases  [2]phase
	parts   portions
	submits map[string][]Token // by submission key
	kills   map[int][]Token    // by job number
	sweeps  map[string]int     // failed removals of staging directories, by submission key
	wishes  wishes

	profiles  profiles
	overheads forecast.Overheads
	losses    []loss // of trackers, oldest first
	predicted predicted
}

// alarm is a time at which a job wants to be looked at.
type alarm struct {
	at  time.Duration
	job int
}

// The two phases that have slots, as indexes.
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

// newLive begins an office.
func newLive(c *Core) *Live {
	l := &Live{
		c: c, facts: c.facts, now: c.now, epoch: c.facts.Epoch(),
		streams: make(map[Stream]*stream), bound: make(map[Stream]*tracker), trackers: make(map[string]*tracker),
		jobs: make(map[int]*job), awaiting: make(map[string]bool), expecting: make(map[string][]*job),
		submits: make(map[string][]Token), kills: make(map[int][]Token), sweeps: make(map[string]int),
		numbers: make(map[string]int32), leaseDue: never, awaitDue: c.now + c.cfg.Lease, readmits: c.now, tidyDue: never, drainDue: never,
	}
	if c.cfg.Tidy > 0 {
		l.tidyDue = c.now + min(c.cfg.Tidy, firstTidy)
	}
	l.phases = [2]phase{newPhase(wire.Map), newPhase(wire.Reduce)}
	l.assign = assign.New(assigning{l}, queuesLast*c.cfg.Period)
	l.parts.version = 1
	l.profiles.known, l.profiles.loading = make(map[string]*history.Profile), make(map[string]bool)
	l.wishes.changes, l.wishes.proposed = make(map[string]*inTurn[Change]), make(map[string]*facts.Changed)
	l.setPools()
	l.obey()
	for t := range l.facts.Trackers() {
		l.addTracker(t)
		l.awaiting[t.Name] = true
	}
	for f := range l.facts.Jobs() {
		if !f.Ended() {
			age := time.Duration(l.wall()-f.Submission().At()) * time.Millisecond
			j := l.addJob(f, l.now-max(age, 0))
			j.held, j.planned.plansSince = true, l.wall()
		}
	}
	l.releaseIfDue()
	l.checkExclusions()
	for s := range l.facts.Submissions() {
		l.sweep(s)
	}
	return l
}

// drop ends the office: streams are closed and open requests answered.
func (l *Live) drop() {
	streams := slices.AppendSeq(slices.Collect(maps.Keys(l.streams)), maps.Keys(l.bound))
	slices.Sort(streams)
	for _, id := range streams {
		l.c.emit(CloseStream{Stream: id})
	}
	var tokens []Token
	for _, t := range l.submits {
		tokens = append(tokens, t...)
	}
	for _, t := range l.kills {
		tokens = append(tokens, t...)
	}
	tokens = append(tokens, l.wishes.tokens()...)
	slices.Sort(tokens)
	for _, t := range tokens {
		l.c.emit(Reply{Token: t, Err: &NotLeaderError{}})
	}
}

// wall is the current time in Unix milliseconds: for display and for days, never for a lease.
func (l *Live) wall() int64 { return l.c.wall + l.now.Milliseconds() }

func (l *Live) propose(x facts.Fact) { l.c.pending.propose(l.c, x) }

// handle takes an event that is not the log's.
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
		l.pools(ev)
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

// applied follows a committed fact. fitted is false when it changed nothing.
func (l *Live) applied(x facts.Fact, fitted bool) {
	switch x := x.(type) {
	case *facts.TrackerRegistered:
		l.registered(x, fitted)
	case *facts.TrackerLost:
		if fitted {
			l.lost(x)
		}
	case *facts.Excluded:
		l.excluded(x.Tracker, fitted)
	case *facts.Readmitted:
		l.excluded(x.Tracker, fitted)
	case *facts.Submitted:
		l.submitted(x, fitted)
	case *facts.Swept:
		delete(l.sweeps, x.Key)
	case *facts.Stopped:
		l.stopped(x, fitted)
	case *facts.Granted:
		l.granted(l.jobs[x.Job], x, fitted)
	case *facts.Changed:
		l.changeApplied(x, fitted)
	case *facts.Scheduled:
		l.scheduleApplied(x, fitted)
	case *facts.Pooled:
		l.pooled(fitted)
	case *facts.Drain:
		l.drainApplied(x, fitted)
	default:
		if fitted {
			l.jobFact(x)
		}
	}
}

// jobFact follows a fact about the life of one job.
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
		l.jobs[x.Job].service.committing = l.now
		l.touch(l.jobs[x.Job])
	case *facts.Ended:
		l.ended(l.jobs[x.Job])
	}
}

// touch has a job looked at before Step returns.
func (l *Live) touch(j *job) {
	if !j.dirty {
		j.dirty = true
		l.dirty = append(l.dirty, j)
	}
}

// touchAll is for what every job may be waiting for, such as a tracker.
func (l *Live) touchAll() {
	for _, j := range l.order {
		l.touch(j)
	}
}

// alarm has a job looked at again at a later time.
func (l *Live) alarm(j *job, at time.Duration) {
	a := alarm{at, j.facts.N()}
	i, found := slices.BinarySearchFunc(l.alarms, a, func(x, y alarm) int {
		if x.at != y.at {
			return compareTimes(x.at, y.at)
		}
		return x.job - y.job
	})
	if !found {
		l.alarms = slices.Insert(l.alarms, i, a)
	}
}

// settle brings everything into line with what the event has changed: leases,
// jobs, slots, then the messages and requests that are sent once a Step.
func (l *Live) settle() {
	l.now = l.c.now
	l.checkLeases()
	l.checkAwaited()
	l.checkExclusions()
	l.expireQueues()
	for len(l.alarms) > 0 && l.alarms[0].at <= l.now {
		if j := l.jobs[l.alarms[0].job]; j != nil {
			l.touch(j)
		}
		l.alarms = l.alarms[1:]
	}
	l.advanceTouched()
	l.checkDrains()
	l.advanceTouched()
	l.serveQueued()
	l.fillSlots()
	l.sendAway()
	l.tidy()
	l.flushOutputs()
	l.tellShares()
	l.allocate()
	l.over, l.justOver = append(l.over, l.justOver...), l.justOver[:0]
}

// advanceTouched does for all that were touched what their states allow.
func (l *Live) advanceTouched() {
	for len(l.dirty) > 0 {
		touched := l.dirty
		l.dirty = l.spare
		slices.SortFunc(touched, func(a, b *job) int { return cmp.Compare(a.facts.N(), b.facts.N()) })
		for _, j := range touched {
			j.dirty = false
		}
		for _, j := range touched {
			if l.jobs[j.facts.N()] == j {
				l.advance(j)
				l.move(j)
			}
		}
		l.spare = touched[:0]
	}
}

// never is a time that does not come.
const never = assign.Never

func compareTimes(a, b time.Duration) int { return int(min(max(a-b, -1), 1)) }

// wake is when something is due, if anything is.
func (l *Live) wake() (time.Duration, bool) {
	at := min(l.assign.QueuedUntil(mapPhase), l.assign.QueuedUntil(reducePhase), l.leaseDue, l.awaitDue, l.readmits, l.tidyDue, l.drainDue)
	if len(l.alarms) > 0 {
		at = min(at, l.alarms[0].at)
	}
	for i := range l.phases {
		if !l.phases[i].asked {
			at = min(at, l.phases[i].due)
		}
	}
	return at, at != never
}
