// Package core is the job tracker's state machine. It does no I/O, never reads a
// clock and starts no goroutine: events go in, commands come out, and whoever
// owns a [Core] carries the commands out. The server, the simulator and the
// tests drive this same machine.
//
// It has two parts. [facts.Facts] changes only by applying committed log entries and
// is equal on every job tracker. [Live] exists on the leader alone, is rebuilt
// from the trackers' inventories after a change of leader, and is never read by
// an apply.
//
// Packages below have what can be read by itself:
//
//	facts      the replicated state
//	admission  which requests of clients are accepted
//	handshake  how a tracker that opens a stream is answered until it is welcomed
//	assign     which task runs in which free slot
//	placement  where partitions are gathered, and how long a ready one waits there
//	forecast   how long tasks take and when jobs end
//	shares     what trackers were told of how jobs share the shuffle
//	health     when a tracker is excluded, and readmitted
//	profiles   what is kept of the last job of each name
//	past       the attempts of a job that have ended
//	settings   what a job's properties mean to the job tracker
//	faults     what has gone wrong with a job's tasks
//	taskset    sets of small numbers
//
// What stays here is the life of jobs and of trackers: a struct for each owner, composed in
// job, tracker and Live. By file:
//
//	events, commands   event.go command.go; core.go takes them, live.go does what a Step does
//	the leader         leader.go; inventory.go restart.go what it learns from trackers at first
//	jobs               jobs.go ending.go; service.go serving.go setup, commit, cleanup, fences
//	tasks, attempts    tasks.go attempts.go maps.go commit.go; failure.go retry.go; past.go
//	homes              homes.go placing.go moving.go
//	trackers           trackers.go streams.go losses.go exclude.go drain.go
//	free slots         assigning.go what package assign asks, and has launched
//	plans              allocate.go snapshot.go scheduling.go pools.go shares.go; planlog.go
//	estimates          forecast.go profile.go
//	clients            requests.go refused.go; status.go explain.go holds.go clusterstatus.go
//	others             tidy.go notes.go
//
// # One Step
//
//	event --> Core.take
//	            Entry: facts.Apply, then Live.applied    the log has said something
//	            others: Live.handle                      a tracker, a client, an effect has
//	      --> Live.settle, on the leader, in this order
//	            checkLeases, checkAwaited,      what is due by time: due, recovery.awaitDue
//	            checkExclusions, expireQueues
//	            due.alarms                      filled by alarm, for one job each; touches it
//	            advanceTouched                  empties todo.dirty, which touch fills for
//	                                            whatever a job may have waited for
//	            checkDrains, advanceTouched     drained trackers touch jobs again
//	            serveQueued                     empties services.queues, filled by serve
//	            fillSlots                       package assign fills map slots, then reduce slots,
//	                                            and empties its list of moved jobs (move).
//	                                            Between them todo.gatheredNow is launched, which
//	                                            updateReduce fills; then moveHomes moves
//	                                            partitions to free slots elsewhere, and maps
//	                                            are launched that this needs again
//	            sendAway, tidy                  what has drained goes, old files too
//	            flushOutputs                    empties todo.telling, filled by tell
//	            tellShares                      empties parts.owed, filled by oweShares
//	            allocate                        asks for the plans that are due
//	            todo.justOver                   attempts that have ended; free to be used again
//	                                            from the next Step on (todo.over)
//	      --> commands
//
// todo.unhoused outlives a Step: placeHomes fills it, a tracker that may be a home empties it
// (mayHomeAgain).
//
// # The owner's duties
//
//  1. One goroutine at a time calls a Core's methods.
//  2. now never goes back. Call Step with [Tick] when the time of [Core.Wake] is reached,
//     behind the messages that wait to be handed in.
//  3. Carry commands out in order; a Send to a stream in the order given.
//  4. Hand every committed entry to Step exactly once and in order, followers too.
//  5. A proposal whose outcome is not known is answered by [Undecided]; it is then
//     proposed again under the same key. Facts are idempotent, so that it may have
//     been committed after all does no harm. One that the log will never take is
//     answered by [Refused].
//  6. Every effect (Allocate, LoadSplits, WriteHistory, LoadHistory,
//     RemoveStaging, Tidy) is answered once by its result, failed or not. Results of an earlier
//     epoch are ignored.
//  7. On [Halt] stop: this build must not go on.
//
// # Invariants
//
//	I1  A task has at most one committed attempt, and at most one grant at a time;
//	    a grant ends only by Committed or, after a fence, by Revoked.
//	I2  Slots are never oversubscribed by launches of one leader.
//	I3  No attempt is launched for a job that has ended, and none but a cleanup for one that stops.
//	I4  Facts depend on the entries applied and on nothing else: package facts lets
//	    nobody change them in another way.
//	I5  No decision depends on map order; ties go to the lower id.
//	I6  A job's history, where histories are written, says how the job ended, and is
//	    there before the log says so. Only one that cannot be written does not hold a
//	    job up: its troubles tell.
//	I7  An excluded tracker is given no task with a slot. It is never the last usable one.
//	I8  No task that could be launched waits while a slot is free, unless a rule holds it
//	    back: delay scheduling, the queues of a plan, the limits of its pool, a ready
//	    partition's home, a suspension, the inventories that a recovered job waits for, the
//	    outputs of a restarted tracker, the time before a failed task is launched
//	    again, and for which it avoids trackers where it failed. Each such hold has a
//	    reason and an end ([Live.holds]).
//	I9  A tracker that drains is launched nothing on and is nobody's new home. It is let
//	    go when it runs nothing and has nothing that is needed, or that can be made again.
//	I10 Where it is known who asks ([Asker]), a job is killed and changed for its owner
//	    and for administrators alone. Its token depends on the log and on nothing else.
//
// # Flows
//
// The jobs of a submission are one flow: they have the same job settings, are suspended
// together and fail together. The entry that stops one stops, as it is applied, all
// that have not ended and do not commit; so no leader ever sees half a flow stopped.
// A job begins when those have succeeded whose output it reads. That output is on a
// shared file system and is not made anew when it is lost: the setup attempt of the
// job that reads it looks whether it is all there, and fails.
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

// ErrOtherStaging halts a job tracker that was started with another staging
// directory than its cluster was bootstrapped with.
var ErrOtherStaging = errors.New("staging directory differs from the cluster's")

// Config is what a Core needs to know. All of it is the leader's alone: Facts do
// not depend on it.
type Config struct {
	ID      string        // of this job tracker
	Staging string        // URL of the cluster's staging directory; empty: any
	Cluster string        // id of the cluster, if this one bootstraps it
	Nonce   string        // staged proof of the staging directory, likewise
	Addr    string        // host:port of this job tracker's API, which the others tell once it leads
	History bool          // the histories of ended jobs are written
	Tidy    time.Duration // between tidyings of the staging directory; 0: none
	Lease   time.Duration // silence after which a tracker is lost; default 5 s
	Period  time.Duration // between allocations; default 500 ms

	// How long a tracker that drains and runs nothing serves map outputs before they are
	// made anew elsewhere, and before they are given up; default 2 min and 10 min.
	DrainServes, DrainLasts time.Duration

	Scheduling wire.Scheduling // until another is asked for; default fifo, sum-response, none
}

// Core is the state machine of one job tracker.
type Core struct {
	cfg   Config
	facts *facts.Facts
	live  *Live // nil: not in office

	wall    int64   // Unix milliseconds when now was 0, by this term's election
	term    uint64  // for which this job tracker is elected, 0: it is not
	waiting []Event // that came between the election and taking office
	pending proposals
	now     time.Duration
	read    time.Duration // all that trackers have sent and that was read by then has been handed in
	out     []Command
	halted  bool
}

// New makes a Core with empty Facts.
func New(cfg Config) *Core {
	if cfg.Lease <= 0 {
		cfg.Lease = 5 * time.Second
	}
	if cfg.Period <= 0 {
		cfg.Period = 500 * time.Millisecond
	}
	if cfg.DrainServes <= 0 {
		cfg.DrainServes = 2 * time.Minute
	}
	if cfg.DrainLasts <= 0 {
		cfg.DrainLasts = 10 * time.Minute
	}
	return &Core{cfg: cfg, facts: facts.New()}
}

// Applied is the index of the last entry applied.
func (c *Core) Applied() uint64 { return c.facts.Index() }

// Snapshot encodes Facts.
func (c *Core) Snapshot() ([]byte, error) { return c.facts.Snapshot() }

// Wake is when Step wants a Tick; ok is false when nothing is due at any time.
func (c *Core) Wake() (at time.Duration, ok bool) {
	if c.live == nil || c.halted {
		return 0, false
	}
	return c.live.wake()
}

// usualCommands is how many come of an event that has tasks launched.
const usualCommands = 4

// Step takes one event in and returns what is to be done about it.
func (c *Core) Step(now time.Duration, ev Event) []Command {
	if c.halted {
		return nil
	}
	c.now = max(c.now, now)
	c.out = nil
	switch ev := ev.(type) {
	case Tick:
		c.readBy(ev.Read)
	case FromTracker:
		c.readBy(ev.Read)
	}
	c.take(ev)
	if c.live != nil {
		c.live.settle()
	}
	return c.out
}

// readBy notes when an event was read, or made behind all that was read by then.
func (c *Core) readBy(at time.Duration) {
	c.read = max(c.read, min(cmp.Or(at, c.now), c.now))
}

func (c *Core) emit(cmd Command) {
	if c.out == nil {
		c.out = make([]Command, 0, usualCommands)
	}
	c.out = append(c.out, cmd)
}

func (c *Core) take(ev Event) {
	switch ev := ev.(type) {
	case Entry:
		c.entry(ev)
	case Restored:
		c.restore(ev)
	case Elected:
		c.elected(ev)
	case Deposed:
		c.deposed()
	case LogFailed:
		c.deposed()
		c.halt(fmt.Errorf("the log has failed: %w", ev.Err))
	case Undecided:
		c.pending.again(c, ev.Key)
	case Refused:
		c.refused(ev)
	case Tick:
	default:
		c.forLeader(ev)
	}
}

// forLeader handles the events that only a leader can do something about.
func (c *Core) forLeader(ev Event) {
	switch {
	case c.live != nil:
		c.live.now = c.now
		c.live.handle(ev)
	case c.term != 0:
		c.waiting = append(c.waiting, ev)
	default:
		c.turnAway(ev)
	}
}

// turnAway answers an event that only a leader could handle.
func (c *Core) turnAway(ev Event) {
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

func (c *Core) entry(e Entry) {
	if e.Index <= c.facts.Index() {
		return
	}
	x, err := facts.Decode(e.Data)
	if err != nil {
		c.halt(fmt.Errorf("apply entry %d of term %d: %w", e.Index, e.Term, err))
		return
	}
	if c.term != 0 && e.Term > c.term {
		c.deposed() // somebody leads by now, whatever we have heard
	}
	fitted := c.facts.Apply(e.Index, e.Term, x)
	if e.Term == c.term { // an earlier one may have the same key
		c.pending.settled(x.Name())
	}
	switch {
	case c.checkStaging():
	case c.live != nil:
		c.live.now = c.now
		c.live.applied(x, fitted)
	case c.term != 0 && c.facts.Epoch() == c.term:
		c.takeOffice()
	}
}

// checkStaging halts when the cluster's staging directory is not ours. When the
// cluster has begun as another than we would have made, our nonce goes.
func (c *Core) checkStaging() bool {
	boot := c.facts.Boot()
	if boot.Start != 0 && c.cfg.Cluster != "" && c.cfg.Cluster != boot.Cluster {
		c.emit(RemoveNonce{Name: handshake.NonceFile(c.cfg.Staging, c.cfg.Cluster)})
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
	c.deposed()
	c.facts = f
	c.checkStaging()
}

func (c *Core) elected(e Elected) {
	c.deposed()
	c.term = e.Term
	c.wall = e.Wall - c.now.Milliseconds()
	c.pending = make(proposals)
	c.waiting = []Event{e}
	c.pending.propose(c, &facts.LeaderElected{Leader: c.cfg.ID, Addr: c.cfg.Addr})
}

// takeOffice begins to lead once the log holds our first entry of the term and
// the cluster is bootstrapped. What has come in meanwhile is handled then.
func (c *Core) takeOffice() {
	election := c.waiting[0].(Elected)
	if c.facts.Boot().Start == 0 {
		c.pending.propose(c, &facts.Bootstrapped{
			Start: election.Wall, Cluster: c.cfg.Cluster, Staging: c.cfg.Staging, Nonce: c.cfg.Nonce,
		})
		return
	}
	c.live = newLive(c)
	waiting := c.waiting[1:]
	c.waiting = nil
	for _, ev := range waiting {
		c.live.handle(ev)
	}
}

// deposed drops Live, closes its streams and answers its requests.
func (c *Core) deposed() {
	if c.live != nil {
		c.live.drop()
	}
	closed := make(map[Stream]bool)
	for _, ev := range c.waiting {
		m, ok := ev.(FromTracker)
		switch {
		case !ok:
			c.turnAway(ev)
		case !closed[m.Stream]:
			closed[m.Stream] = true
			c.emit(CloseStream{Stream: m.Stream})
		}
	}
	c.live, c.term, c.waiting, c.pending = nil, 0, nil, nil
}

// proposals are the facts proposed and not yet seen in the log, by key.
type proposals map[string][]byte

// propose asks for a fact to be committed, unless it is asked for already or
// would change nothing.
func (p proposals) propose(c *Core, x facts.Fact) {
	key := x.Name()
	if p[key] != nil || !x.Fits(c.facts) {
		return
	}
	p[key] = facts.Encode(x)
	c.emit(Propose{Key: key, Data: p[key]})
}

// again proposes once more what may have been lost.
func (p proposals) again(c *Core, key string) {
	if data := p[key]; data != nil {
		c.emit(Propose{Key: key, Data: data})
	}
}

func (p proposals) settled(key string) { delete(p, key) }

func (p proposals) has(x facts.Fact) bool { return p[x.Name()] != nil }
