// Package core is the job tracker's state machine. It accepts jobs and decides which task
// tracker runs which task. It does no I/O, never reads a clock and starts no goroutine: its
// owner passes events to [Core.Step] and carries out the commands that Step returns. Owners
// are the server, the simulator and the tests. docs/glossary.md defines the words.
//
// The state has two parts:
//
//   - [facts.Facts] is replicated. Only committed log entries change it, so it is equal on
//     every job tracker. It never depends on the other part.
//   - The type leader has what only the leader knows: streams, slots, running attempts, map
//     outputs, homes, plans. A new leader learns most of it from inventories, in which each
//     tracker lists its attempts, map outputs and homes.
//
// # A job
//
//	submission  The log takes the job. A setup attempt checks it and splits its input.
//	maps        Each split is a map. Trackers keep the map outputs on their disks.
//	homes       Each partition of the map outputs has a home: the tracker that gathers it.
//	            A gathered partition is called ready.
//	reduces     A ready partition is reduced at its home. If the home has no free slot for
//	            long, the partition moves: another tracker gathers it again.
//	grants      A reduce asks for permission to commit its output, and so does a map of a job
//	            without reduces. If an attempt with a grant is lost, the leader launches a
//	            fence: an attempt that finds out whether the lost one has committed.
//	end         A commit attempt moves the output into place. After a failure or kill a
//	            cleanup attempt removes what was written. The history is written, then the
//	            log records the end.
//
// # Packages and files
//
// Each package below this one is a part that can be read by itself:
//
//	facts       the replicated state
//	admission   which requests of clients are accepted
//	quota       how many jobs there are, and which may begin
//	handshake   answers on a tracker's stream until the tracker is welcomed
//	assign      which task runs in which free slot
//	placement   which tracker is a partition's home, and how long a ready partition waits there
//	skew, slottime  how unevenly a job's map output is spread; what a job's slots did
//	forecast    how long tasks take and when jobs end
//	announce    which map outputs each home is told, and when
//	shares      the shuffle shares that trackers were sent
//	speculation which slow tasks get a second attempt, and where
//	health      when a tracker is excluded, and readmitted
//	profiles    profiles of the last job of each name
//	past        the attempts of a job that have ended
//	curve, pastplans  bytes of a job over time; the plans of the last minutes
//	settings    the job's properties that the job tracker uses
//	faults      failures of a job's tasks
//	pieces      long work in pieces, so that no Step takes long
//	taskset     sets of small numbers
//	census      numbers for metrics
//
// This package connects them. The structs job, tracker and leader are composed of smaller
// ones. By file:
//
//	events, commands   event.go command.go proposals.go; core.go takes them, leaderstate.go does a Step's work
//	the leader         leader.go starting.go; inventory.go and restart.go read inventories
//	jobs               jobs.go ending.go; service.go servicequeue.go setup, commit, cleanup, fences
//	tasks, attempts    tasks.go attempts.go maps.go commit.go; failure.go retry.go usage.go; badtasks.go skipping.go; past.go
//	slow tasks         speculate.go: second attempts
//	homes              announcing.go homes.go placing.go moving.go slowhomes.go
//	trackers           trackers.go places.go streams.go waiting.go losses.go exclude.go operators.go drain.go needed.go
//	free slots         assigning.go implements the interface that package assign needs
//	plans              allocate.go survey.go snapshot.go scheduling.go pools.go shares.go; planlog.go plansample.go
//	limits             poollimits.go: of users, and of pools with others in them
//	slots taken back   preempting.go victims.go: for pools that starve, from suspended jobs
//	estimates          forecast.go forecasting.go forecasterrors.go profile.go
//	clients            requests.go refused.go limits.go; status.go detail.go curves.go explain.go holds.go clusterstatus.go submission.go; pages.go changed.go; counting.go recent.go whatif.go
//	others             works.go alarms.go have works that take many Steps; tidy.go loglines.go
//
// # One Step
//
//	event --> Core.handle
//	            an Entry: facts.Apply, then leader.applied
//	            others:   leader.handle
//	      --> leader.finishStep, in this order
//	            checkLeases, checkAwaited,      act if a time has come, see timers and recovery
//	            checkExclusions, expireQueues
//	            works.Advance                   does a piece of the works that take many Steps
//	            advanceTouched                  advances each job that was touched: something
//	                                            happened that the job may have waited for
//	            checkDrains, beginJobs,         drained trackers touch jobs again, and jobs in line
//	            advanceTouched                  begin
//	            launchQueuedServices            launches queued setups, commits, cleanups, fences
//	            keepLimits                      limits of users and outer pools, if a plan is due
//	            fillSlots                       launches second attempts for deadlines, maps,
//	                                            reduces in slots reserved for them, and other
//	                                            reduces. Then ready partitions move, and second
//	                                            attempts get slots that are still free. At last
//	                                            it launches the maps that such moves need
//	            dismissDrained, tidy            drained trackers leave, old files are removed
//	            flushOutputs                    tells homes which map outputs are new; what has
//	                                            to wait is a work, or waits for announce.Tick
//	            sendShares                      tells trackers how jobs share the shuffle
//	            allocate                        asks the scheduler for the plans that are due
//	            addPoints                       adds to the curves of the jobs that have changed
//
// A Step must not take long at 10,000 jobs and 1,000 trackers, since the messages of all trackers
// and clients wait for it. A long visit of jobs, tasks or outputs is a work of package pieces:
// leader.works has those not done. Each Step handles up to stepBudget entries of them. While some are
// left, [Core.Wake] returns the present: the owner passes the messages that wait, then a Tick. Between
// two pieces every event can come. In pieces are:
//
//	touchAll           a job that waits for something is touched in this Step or in one soon after
//	alarms, later      the same at a time, or because a Step is too long already to find homes
//	endRecovery        jobs go on after a change of leader
//	holding            which jobs the limits of users and outer pools keep from slots
//	survey             the scheduler's input, for each phase. Most of its last stages are one piece each, and so is
//	                   the choice of victims after the visits for pools that starve
//	forecasting        forecasts of many jobs. Statuses use the last one
//	planRecording      the plan logs of jobs, after the forecast that considers the plan
//	outputVisits       map outputs of a tracker that is lost, drains, or that others cannot read
//	expectations       maps without the outputs for which they have waited after a restart
//	announcing         messages to homes
//	counting           the census for metrics
//
// A new leader is made in pieces too, see termStart: until then, its events and entries wait.
//
// A Step launches some tasks only, if many slots are free: the next one goes on. Other loops over jobs or outputs are at once, and make the works of their Step shorter: see leader.charge.
//
// Most lists in todo are empty after a Step. todo.noHomeFound keeps jobs with homeless
// partitions until a tracker becomes usable (retryHomes).
//
// # The owner's duties
//
//  1. Only one goroutine at a time calls methods of a Core. Any goroutine may read what Freeze
//     returns, and may call WriteHistory.Record.
//  2. The times given to Step never decrease. When the time of [Core.Wake] has come, pass the
//     messages that are waiting, then a [Tick].
//  3. Carry out commands in order. Messages to one stream keep their order.
//  4. Pass each committed entry to Step exactly once and in order, also on followers.
//  5. If the outcome of a proposal is unknown, pass [Undecided]: the Core repeats the
//     proposal, and may commit it twice without harm. If the log will never take a proposal,
//     pass [Refused].
//  6. Answer each effect (Allocate, LoadSplits, WriteHistory, LoadHistory, RemoveStaging,
//     Tidy) with one result, also after an error. The Core ignores results of earlier epochs.
//  7. After [Halt], stop the job tracker.
//
// # Invariants
//
//	I1  A task has at most one committed attempt, and at most one grant at a time. A grant
//	    ends only by Committed or, after a fence, by Revoked.
//	I2  A leader launches no attempt in a slot that another attempt uses.
//	I3  No attempt is launched for an ended job. A stopping job gets only a cleanup.
//	I4  Facts depend only on the entries applied: package facts allows no other change.
//	I5  No decision depends on Go's map order. Ties go to the lower id.
//	I6  With Config.History, a job's history exists before the log records the job's end, and
//	    has the same outcome. If it cannot be written, the job reports a trouble instead.
//	I7  An excluded tracker gets no task with a slot. It is never the last usable one, unless an
//	    operator excludes it. Then it gets no attempt at all. A job launches no task on a tracker
//	    that it does not use (usage.go).
//	I8  No runnable task waits while a slot is free, except for one of these reasons: delay
//	    scheduling, the queues of a plan, pool limits, a ready partition's home, a drain,
//	    an operator's exclusion, an unhealthy tracker, a probation, a tracker that the job does
//	    not use, a suspension, inventories after a change of leader, the outputs of a restarted tracker,
//	    the retry delay of a failed task, and its wait for a tracker where it has not failed.
//	    leader.holds lists the reasons, and the end of each if it is known.
//	I9  A draining tracker gets no attempts and no new homes. It leaves when it runs nothing,
//	    and its homes and outputs are not needed or can be recomputed.
//	I10 A job is killed or changed only by its owner, by administrators, and by callers
//	    without a user ([Caller]). Its token depends only on the log.
//	I11 Beside a running attempt, the leader launches at most one other of the same task, on
//	    another tracker, and beside one without a slot at most three. It does so only if the
//	    job's properties allow speculation and the job is not suspended. A new leader keeps at most
//	    two attempts of a map or reduce, and one of another task, and kills the others.
//	I12 A partition has one home. A reduce may run on a tracker that was the home before. While
//	    it runs and no tracker is the home, none becomes it.
//
// # Flows
//
// The jobs of a submission are one flow: they have the same job settings, are suspended
// together and fail together. The log entry that stops one job also stops the others, except
// ended and committing ones. So no leader sees a half-stopped flow.
//
// A job begins when all jobs that it reads from have succeeded. Their output is on a shared
// file system and is not recomputed: if it is incomplete, the job's setup fails.
package core

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core/census"
	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/jobtracker/core/handshake"
	"github.com/quernmr/quern/wire"
)

// ErrOtherStaging halts a job tracker that has another staging directory than its cluster.
var ErrOtherStaging = errors.New("staging directory differs from the cluster's")

// Config configures a Core. Only the leader uses it: Facts do not depend on it.
type Config struct {
	ID         string        // id of this job tracker
	Staging    string        // URL of the cluster's staging directory; empty: any
	Cluster    string        // id of the new cluster, if this job tracker bootstraps one
	Nonce      string        // content of handshake.NonceFile, if this job tracker bootstraps the cluster
	Addr       string        // host:port of this job tracker's API; while it leads, followers send clients there
	History    bool          // write the histories of ended jobs
	TidyPeriod time.Duration // time between two Tidy commands; 0: none
	Lease      time.Duration // silence after which a tracker is lost; default 5 s
	PlanPeriod time.Duration // maximum time between two requests for a plan; default 500 ms

	// Both times begin when a draining tracker's last attempt ends. After DrainServeTime (default
	// 2 min) other trackers recompute the map outputs that it still serves. After DrainMaxTime
	// (default 10 min) its homes and outputs are given up, as if it were lost.
	DrainServeTime, DrainMaxTime time.Duration

	Scheduling wire.Scheduling // default scheduling; default fifo, sum-response, none
	Preemption bool            // pools that starve take slots from others, see preempting.go
	Limits     Limits          // of jobs, requests and what a job may ask
	ViewACL    string          // of jobs without one; empty: no user
}

// Core is the state machine of one job tracker.
type Core struct {
	cfg    Config
	facts  *facts.Facts
	leader *leader // nil: this job tracker does not lead
	budget int     // entries of long works in each Step; tests have other ones than stepBudget

	wallAtZero int64      // Unix milliseconds when now was 0
	term       uint64     // the term for which this job tracker is elected; 0: none
	early      []Event    // the Elected event, and events for the leader that came before it was made
	starting   *termStart // the leader in the making; nil: none
	waiting    waitingHellos
	pending    proposals
	now        time.Duration
	readUntil  time.Duration // all messages that the owner read before this time have been passed to Step
	lateUntil  time.Duration // leases are longer until then, see noteRead
	latest     time.Duration // the longest wait of an event since leases became longer
	commands   []Command     // commands of this Step
	counts     *census.Counts
	changed    []wire.JobID // see Changed
	halted     bool
}

// New makes a Core with empty Facts.
func New(cfg Config) *Core {
	if cfg.Lease <= 0 {
		cfg.Lease = 5 * time.Second
	}
	if cfg.PlanPeriod <= 0 {
		cfg.PlanPeriod = 500 * time.Millisecond
	}
	if cfg.DrainServeTime <= 0 {
		cfg.DrainServeTime = 2 * time.Minute
	}
	if cfg.DrainMaxTime <= 0 {
		cfg.DrainMaxTime = 10 * time.Minute
	}
	return &Core{cfg: cfg, facts: facts.New(), budget: stepBudget, counts: census.NewCounts()}
}

// Counts returns what this Core counts while it leads. Any goroutine may read it at any time.
func (c *Core) Counts() *census.Counts { return c.counts }

// Applied is the index of the last applied entry.
func (c *Core) Applied() uint64 { return c.facts.Index() }

// EntriesWait reports whether entries wait until the leader is made: Facts lack them. Each Step goes on.
func (c *Core) EntriesWait() bool {
	return slices.ContainsFunc(c.early, func(ev Event) bool { _, is := ev.(Entry); return is })
}

// Freeze returns the Facts of this moment. Any goroutine may encode them.
func (c *Core) Freeze() *facts.View { return c.facts.Freeze() }

// Snapshot encodes Facts.
func (c *Core) Snapshot() ([]byte, error) { return c.facts.Snapshot() }

// Wake returns when Step needs a Tick; ok is false if it needs none. While works are left, it is
// the time of the last Step, see "One Step".
func (c *Core) Wake() (at time.Duration, ok bool) {
	switch {
	case c.halted:
		return 0, false
	case c.starting != nil, c.leader != nil && len(c.early) > 0:
		return c.now, true
	case c.leader == nil:
		return c.waiting.next()
	}
	return c.leader.wake()
}

// usualCommands is the first capacity of Core.commands: few events produce more.
const usualCommands = 4

// Step handles one event and returns the commands that follow from it.
func (c *Core) Step(now time.Duration, ev Event) []Command {
	if c.halted {
		return nil
	}
	c.now = max(c.now, now)
	c.commands, c.changed = nil, c.changed[:0]
	switch ev := ev.(type) {
	case Tick:
		c.noteRead(ev.ReadUntil)
	case FromTracker:
		c.noteRead(ev.ReadAt)
	}
	if c.leader != nil {
		c.leader.works.visited, c.leader.works.placed = 0, 0
	}
	c.handle(ev)
	c.refuseWaiting(c.now)
	spent := c.advanceStart(c.budget)
	if c.leader != nil {
		c.leader.charge(spent)
		c.leader.finishStep()
	}
	return c.commands
}

// onTimeParts is how many times shorter than a lease the wait of an event is on time.
const onTimeParts = 4

// noteRead updates readUntil after an event that the owner read at a time; 0: now. If it is late, the
// next messages of trackers may still be unread: until all events of a whole lease were on time,
// a short silence says nothing about a tracker.
func (c *Core) noteRead(at time.Duration) {
	at = min(cmp.Or(at, c.now), c.now)
	c.readUntil = max(c.readUntil, at)
	if late := c.now - at; late > c.cfg.Lease/onTimeParts {
		if c.now >= c.lateUntil {
			c.latest = 0
		}
		c.lateUntil, c.latest = c.now+c.cfg.Lease, max(c.latest, late)
	}
}

func (c *Core) emit(cmd Command) {
	if c.commands == nil {
		c.commands = make([]Command, 0, usualCommands)
	}
	c.commands = append(c.commands, cmd)
}

func (c *Core) handle(ev Event) {
	switch ev := ev.(type) {
	case Entry:
		c.entry(ev)
	case Restored:
		c.restore(ev)
	case Elected:
		c.elected(ev)
	case Deposed:
		c.stepDown()
	case LogFailed:
		c.stepDown()
		c.halt(fmt.Errorf("the log has failed: %w", ev.Err))
	case Undecided:
		c.pending.repropose(c, ev.Key)
	case Refused:
		c.refused(ev)
	case Tick:
	default:
		c.handleForLeader(ev)
	}
}

// handleForLeader handles an event that only a leader can handle. Until the leader is made, and has
// handled the events before it, the event waits.
func (c *Core) handleForLeader(ev Event) {
	switch {
	case c.term != 0 && (c.leader == nil || len(c.early) > 0):
		c.early = append(c.early, ev)
	case c.leader != nil:
		c.leader.now = c.now
		c.leader.handle(ev)
	default:
		c.refuse(ev)
	}
}

// entry applies a committed entry. While the leader is made, and events that came before are left, the entry waits,
// unless another job tracker leads already.
func (c *Core) entry(e Entry) {
	if e.Index <= c.facts.Index() {
		return
	}
	if c.term != 0 && e.Term > c.term {
		c.stepDown()
	}
	if c.starting != nil || c.leader != nil && len(c.early) > 0 {
		c.early = append(c.early, e)
		return
	}
	c.applyEntry(e)
}

func (c *Core) applyEntry(e Entry) {
	x, err := facts.Decode(e.Data)
	if err != nil {
		c.halt(fmt.Errorf("apply entry %d of term %d: %w", e.Index, e.Term, err))
		return
	}
	epoch := c.facts.Epoch()
	changed := c.facts.Apply(e.Index, e.Term, x)
	if c.facts.Epoch() != epoch {
		c.refuseWaiting(forever)
	}
	c.noteFact(x)
	if e.Term == c.term { // an entry of an earlier term may have the same key
		c.pending.drop(x.Name())
	}
	switch {
	case c.checkStaging():
	case c.leader != nil:
		c.leader.now = c.now
		c.leader.applied(x, changed)
	case c.term != 0 && c.facts.Epoch() == c.term:
		c.startTerm()
	}
}

// checkStaging halts if the cluster has another staging directory. If another job tracker
// bootstrapped the cluster, it removes our nonce file.
func (c *Core) checkStaging() bool {
	boot := c.facts.Boot()
	if boot.Start != 0 && c.cfg.Cluster != "" && c.cfg.Cluster != boot.Cluster {
		c.emit(RemoveNonce{URL: handshake.NonceFile(c.cfg.Staging, c.cfg.Cluster)})
		c.cfg.Cluster, c.cfg.Nonce = "", ""
	}
	if boot.Start == 0 || c.cfg.Staging == "" || boot.Staging == c.cfg.Staging {
		return false
	}
	c.halt(fmt.Errorf("%w: %s, not %s", ErrOtherStaging, boot.Staging, c.cfg.Staging))
	return true
}

func (c *Core) halt(err error) {
	c.emit(Halt{Err: err})
	c.halted = true
}

func (c *Core) restore(r Restored) {
	f, err := facts.Restore(r.Snapshot)
	if err != nil {
		c.halt(err)
		return
	}
	c.stepDown()
	c.facts = f
	c.refuseWaiting(forever)
	c.checkStaging()
}

func (c *Core) elected(e Elected) {
	c.stepDown()
	c.term = e.Term
	c.wallAtZero = e.Wall - c.now.Milliseconds()
	c.pending = make(proposals)
	c.early = []Event{e}
	for _, ev := range c.waiting.take(forever) {
		c.early = append(c.early, ev)
	}
	c.pending.propose(c, &facts.LeaderElected{Leader: c.cfg.ID, Addr: c.cfg.Addr})
}

// startTerm begins to make this job tracker the leader, after it has bootstrapped the cluster if
// needed. It is called when our first entry of the term is in the log.
func (c *Core) startTerm() {
	election := c.early[0].(Elected) // see elected
	if c.facts.Boot().Start == 0 {
		c.pending.propose(c, &facts.Bootstrapped{
			Start: election.Wall, Cluster: c.cfg.Cluster, Staging: c.cfg.Staging, Nonce: c.cfg.Nonce,
		})
		return
	}
	c.starting, c.early = c.newTermStart(), c.early[1:]
}

// stepDown ends leadership or candidacy: it closes all streams and answers all requests.
func (c *Core) stepDown() {
	closed := make(map[Stream]bool)
	if c.leader != nil {
		c.leader.endTerm(closed)
	}
	early := c.early
	c.leader, c.starting, c.term, c.early, c.pending = nil, nil, 0, nil, nil
	for _, ev := range early {
		switch ev := ev.(type) {
		case FromTracker:
			if !closed[ev.Stream] {
				closed[ev.Stream] = true
				c.emit(CloseStream{Stream: ev.Stream})
			}
		case Entry:
			c.applyEntry(ev)
		default:
			c.refuse(ev)
		}
	}
}
