// Package core is the job tracker's state machine. It does no I/O, never reads a
// clock and starts no goroutine. The owner of a [Core] hands events in and carries
// out the commands that it returns. The server, the simulator and the tests drive
// the same machine.
//
// It has two parts. [facts.Facts] changes only by applying committed log entries and
// is equal on every job tracker. [Live] exists on the leader alone. A new leader
// builds it from the trackers' inventories, and applying an entry never reads it.
//
// The packages below this one can be read by themselves:
//
//	facts      the replicated state
//	admission  which requests of clients are accepted
//	handshake  the answers to a tracker's stream until it is welcomed
//	assign     which task runs in which free slot
//	placement  where partitions are gathered, and how long a ready one waits there
//	forecast   how long tasks take and when jobs end
//	shares     the shuffle shares that trackers were told
//	health     when a tracker is excluded, and readmitted
//	profiles   profiles of the last job of each name
//	past       the attempts of a job that have ended
//	settings   the job's properties that the job tracker uses
//	faults     failures of a job's tasks
//	taskset    sets of small numbers
//
// This package has the life of jobs and of trackers. The structs job, tracker and Live
// are composed of smaller ones. By file:
//
//	events, commands   event.go command.go; core.go takes them, live.go does what a Step does
//	the leader         leader.go; inventory.go restart.go what it learns from trackers at first
//	jobs               jobs.go ending.go; service.go serving.go setup, commit, cleanup, fences
//	tasks, attempts    tasks.go attempts.go maps.go commit.go; failure.go retry.go; past.go
//	homes              homes.go placing.go moving.go
//	trackers           trackers.go streams.go losses.go exclude.go drain.go
//	free slots         assigning.go implements the interface that package assign needs
//	plans              allocate.go snapshot.go scheduling.go pools.go shares.go; planlog.go
//	estimates          forecast.go profile.go
//	clients            requests.go refused.go; status.go explain.go holds.go clusterstatus.go
//	others             tidy.go notes.go
//
// # One Step
//
//	event --> Core.take
//	            Entry: facts.Apply, then Live.applied    committed entries
//	            others: Live.handle                      trackers, clients, results of effects
//	      --> Live.settle, on the leader, in this order
//	            checkLeases, checkAwaited,      what is due by time: due, recovery.awaitDue
//	            checkExclusions, expireQueues
//	            due.alarms                      filled by alarm, for one job each; touches it
//	            advanceTouched                  empties todo.dirty, which touch fills for
//	                                            whatever a job may have waited for
//	            checkDrains, advanceTouched     drained trackers touch jobs again
//	            serveQueued                     empties services.queues, filled by serve
//	            fillSlots                       package assign fills map slots, then reduce slots,
//	                                            and empties its list of moved jobs (updateLines).
//	                                            Between them todo.gathered is launched, which
//	                                            updateReduce fills; then moveReady moves
//	                                            partitions to free slots elsewhere, and the
//	                                            maps are launched that such moves need
//	            dismissDrained, tidy            drained trackers leave, old files are removed
//	            flushOutputs                    empties todo.outputsQueued, filled by queueOutputs
//	            sendShares                      sends what TakeStale has, which queueShares fills
//	            allocate                        asks for the plans that are due
//	            todo.justEnded                  attempts that ended; their memory is reused from
//	                                            the next Step on (todo.reusable)
//	      --> commands
//
// todo.noHomeFound outlives a Step: placeHomes fills it, a usable tracker empties it
// (retryHomes).
//
// # The owner's duties
//
//  1. One goroutine at a time calls a Core's methods.
//  2. now never goes back. Call Step with [Tick] when the time of [Core.Wake] is reached,
//     after the messages that are waiting.
//  3. Carry commands out in order; a Send to a stream in the order given.
//  4. Hand every committed entry to Step exactly once and in order, followers too.
//  5. Answer a proposal with an unknown outcome by [Undecided]; the Core then repeats it
//     under the same key. Facts are idempotent, so it may be committed twice. Answer a
//     proposal that the log will never take by [Refused].
//  6. Answer every effect (Allocate, LoadSplits, WriteHistory, LoadHistory,
//     RemoveStaging, Tidy) once by its result, failed or not. Results of an earlier
//     epoch are ignored.
//  7. On [Halt] stop: this build must not go on.
//
// # Invariants
//
//	I1  A task has at most one committed attempt, and at most one grant at a time;
//	    a grant ends only by Committed or, after a fence, by Revoked.
//	I2  Slots are never oversubscribed by launches of one leader.
//	I3  No attempt is launched for a job that has ended, and only a cleanup for one that stops.
//	I4  Facts depend only on the entries applied: package facts allows no other change.
//	I5  No decision depends on map order; ties go to the lower id.
//	I6  Where histories are written, a job's history says how the job ended, and exists
//	    before the log says so. If it cannot be written, the job ends with a trouble instead.
//	I7  An excluded tracker is given no task with a slot. It is never the last usable one.
//	I8  No runnable task waits while a slot is free, unless a rule holds it back: delay
//	    scheduling, the queues of a plan, pool limits, a ready partition's home, a
//	    suspension, the inventories that a recovered job waits for, the outputs of a
//	    restarted tracker, the retry delay of a failed task, and the time for which it
//	    avoids trackers where it failed. Each hold has a reason and an end ([Live.holds]).
//	I9  A draining tracker gets no attempts and no new homes. It leaves when it runs nothing,
//	    and what it has is not needed or can be recomputed.
//	I10 If the user is known ([Caller]), only the job's owner and administrators kill or
//	    change a job. Its token depends only on the log.
//
// # Flows
//
// The jobs of a submission are one flow: they have the same job settings, are suspended
// together and fail together. The entry that stops one job also stops all others that
// have not ended and do not commit, so no leader sees a flow stopped by half.
// A job begins when the jobs have succeeded whose output it reads. That output is on a
// shared file system and is not recomputed: the job's setup attempt fails if it is
// incomplete.
package core

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/jobtracker/core/handshake"
	"github.com/quernmr/quern/wire"
)

// ErrOtherStaging halts a job tracker whose staging directory differs from the one with which
// its cluster was bootstrapped.
var ErrOtherStaging = errors.New("staging directory differs from the cluster's")

// Config configures a Core. Only the leader uses it: Facts do not depend on it.
type Config struct {
	ID      string        // of this job tracker
	Staging string        // URL of the cluster's staging directory; empty: any
	Cluster string        // id of the cluster, if this job tracker bootstraps it
	Nonce   string        // staged proof of the staging directory, if it bootstraps
	Addr    string        // host:port of this job tracker's API, which followers tell clients while it leads
	History bool          // write the histories of ended jobs
	TidyPeriod    time.Duration // between tidyings of the staging directory; 0: none
	Lease   time.Duration // silence after which a tracker is lost; default 5 s
	PlanPeriod  time.Duration // between allocations; default 500 ms

	// DrainServes is how long a draining tracker without attempts serves map outputs before
	// other trackers recompute them, DrainLasts how long before it is given up; default 2 and
	// 10 min.
	DrainServeTime, DrainMaxTime time.Duration

	Scheduling wire.Scheduling // default scheduling; default fifo, sum-response, none
}

// Core is the state machine of one job tracker.
type Core struct {
	cfg   Config
	facts *facts.Facts
	leader  *leader // nil: this job tracker does not lead

	wallAtZero      int64   // Unix milliseconds when now was 0, from the election
	term      uint64  // in which this job tracker is elected; 0: it is not
	early   []Event // events between the election and the start of the term
	pending   proposals
	now       time.Duration
	readUntil time.Duration // the owner has handed in all messages read by then
	commands       []Command
	halted    bool
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
	return &Core{cfg: cfg, facts: facts.New()}
}

// Applied is the index of the last applied entry.
func (c *Core) Applied() uint64 { return c.facts.Index() }

// Snapshot encodes Facts.
func (c *Core) Snapshot() ([]byte, error) { return c.facts.Snapshot() }

// Wake is when Step needs a Tick; ok is false when nothing is due.
func (c *Core) Wake() (at time.Duration, ok bool) {
	if c.leader == nil || c.halted {
		return 0, false
	}
	return c.leader.wake()
}

// usualCommands is how many commands most events that launch tasks produce.
const usualCommands = 4

// Step handles one event and returns the commands that follow from it.
func (c *Core) Step(now time.Duration, ev Event) []Command {
	if c.halted {
		return nil
	}
	c.now = max(c.now, now)
	c.commands = nil
	switch ev := ev.(type) {
	case Tick:
		c.noteRead(ev.ReadUntil)
	case FromTracker:
		c.noteRead(ev.ReadAt)
	}
	c.handle(ev)
	if c.leader != nil {
		c.leader.finishStep()
	}
	return c.commands
}

// readBy notes when the owner read an event.
func (c *Core) noteRead(at time.Duration) {
	c.readUntil = max(c.readUntil, min(cmp.Or(at, c.now), c.now))
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
		c.applyEntry(ev)
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

// forLeader handles events that need a leader.
func (c *Core) handleForLeader(ev Event) {
	switch {
	case c.leader != nil:
		c.leader.now = c.now
		c.leader.handle(ev)
	case c.term != 0:
		c.early = append(c.early, ev)
	default:
		c.refuse(ev)
	}
}

// refuseEvent answers an event that only a leader could handle.
func (c *Core) refuse(ev Event) {
	switch ev := ev.(type) {
	case request:
		c.emit(Reply{Token: ev.token(), Err: c.notLeader()})
	case FromTracker:
		if _, ok := ev.Message.(*wire.Hello); ok {
			hint := c.notLeader()
			c.emit(Send{Stream: ev.Stream, Message: &wire.Refuse{Reason: hint.Error(), Leader: hint.Addr}})
			c.emit(CloseStream{Stream: ev.Stream})
		}
	}
}

func (c *Core) applyEntry(e Entry) {
	if e.Index <= c.facts.Index() {
		return
	}
	x, err := facts.Decode(e.Data)
	if err != nil {
		c.halt(fmt.Errorf("apply entry %d of term %d: %w", e.Index, e.Term, err))
		return
	}
	if c.term != 0 && e.Term > c.term {
		c.stepDown() // another job tracker leads already
	}
	fitted := c.facts.Apply(e.Index, e.Term, x)
	if e.Term == c.term { // an earlier one may have the same key
		c.pending.drop(x.Name())
	}
	switch {
	case c.checkStaging():
	case c.leader != nil:
		c.leader.now = c.now
		c.leader.applied(x, fitted)
	case c.term != 0 && c.facts.Epoch() == c.term:
		c.startTerm()
	}
}

// checkStaging halts if the cluster's staging directory is not ours. If another job tracker
// bootstrapped the cluster, it removes our staged nonce.
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
	c.checkStaging()
}

func (c *Core) elected(e Elected) {
	c.stepDown()
	c.term = e.Term
	c.wallAtZero = e.Wall - c.now.Milliseconds()
	c.pending = make(proposals)
	c.early = []Event{e}
	c.pending.propose(c, &facts.LeaderElected{Leader: c.cfg.ID, Addr: c.cfg.Addr})
}

// startTerm begins to lead once the log has our first entry of the term and the cluster is
// bootstrapped. It then handles the events that came meanwhile.
func (c *Core) startTerm() {
	election := c.early[0].(Elected)
	if c.facts.Boot().Start == 0 {
		c.pending.propose(c, &facts.Bootstrapped{
			Start: election.Wall, Cluster: c.cfg.Cluster, Staging: c.cfg.Staging, Nonce: c.cfg.Nonce,
		})
		return
	}
	c.leader = newLeader(c)
	waiting := c.early[1:]
	c.early = nil
	for _, ev := range waiting {
		c.leader.handle(ev)
	}
}

// deposed drops Live, closes its streams and answers its requests.
func (c *Core) stepDown() {
	if c.leader != nil {
		c.leader.endTerm()
	}
	closed := make(map[Stream]bool)
	for _, ev := range c.early {
		m, ok := ev.(FromTracker)
		switch {
		case !ok:
			c.refuse(ev)
		case !closed[m.Stream]:
			closed[m.Stream] = true
			c.emit(CloseStream{Stream: m.Stream})
		}
	}
	c.leader, c.term, c.early, c.pending = nil, 0, nil, nil
}

// proposals are proposed facts that are not yet in the log, by key.
type proposals map[string][]byte

// propose proposes a fact unless it is proposed already or would change nothing.
func (p proposals) propose(c *Core, x facts.Fact) {
	key := x.Name()
	if p[key] != nil || !x.Fits(c.facts) {
		return
	}
	p[key] = facts.Encode(x)
	c.emit(Propose{Key: key, Data: p[key]})
}

// repropose repeats a proposal that may be lost.
func (p proposals) repropose(c *Core, key string) {
	if data := p[key]; data != nil {
		c.emit(Propose{Key: key, Data: data})
	}
}

func (p proposals) drop(key string) { delete(p, key) }

func (p proposals) has(x facts.Fact) bool { return p[x.Name()] != nil }
