package replica

import (
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/quernmr/quern/jobtracker"
	"github.com/quernmr/quern/jobtracker/core"
)

// instance is a running raft with the replica's files.
type instance struct {
	raft       *raft.Raft
	trans      *raft.NetworkTransport
	leadership chan bool     // raft sends each change, and waits until it is received
	ended      chan struct{} // closed when the instance is replaced or closed
	addresses  addresses
	progress   followers
	untold     atomic.Bool // the term has begun, and followers may not know its leader

	stopping sync.Once
	stopped  chan struct{} // closed when all of raft's goroutines have ended
}

// start starts a new instance, which restores the newest snapshot through fsm.
func (r *Replica) start() (*instance, error) {
	l := r.firstListener
	r.firstListener = nil
	if l == nil {
		var err error
		if l, err = r.cfg.listen(r.listen); err != nil {
			return nil, err
		}
	}
	inst := &instance{leadership: make(chan bool), ended: make(chan struct{}), stopped: make(chan struct{})}
	inst.addresses.r = r
	log := newLogger(r.cfg.Logger)
	inst.trans = raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream:                  newNetwork(l, r.addr, r.cfg.dial),
		MaxPool:                 3,
		Timeout:                 max(4*r.cfg.Timeout, 2*time.Second), // see tracked
		ServerAddressProvider:   &inst.addresses,
		Logger:                  log,
		MsgpackUseNewTimeFormat: true,
		// No pipelining: if a follower refuses an entry while the next one is on its way, raft
		// 1.8 never sends to it again, and does not stop.
		MaxRPCsInFlight: 1,
	})
	cfg := r.raftConfig()
	cfg.NotifyCh = inst.leadership
	if err := withoutPanic("start raft", func() (err error) {
		inst.raft, err = raft.NewRaft(cfg, r.fsm, r.store, r.store, r.snaps, measured{inst.trans, &inst.progress})
		inst.addresses.raft.Store(inst.raft)
		return err
	}); err != nil {
		inst.trans.Close()
		if cause := r.failed.Load(); cause != nil {
			return nil, *cause
		}
		return nil, err
	}
	r.loops.Go(func() { r.followLeadership(inst) })
	return inst, nil
}

func (r *Replica) raftConfig() *raft.Config {
	cfg := raft.DefaultConfig()
	cfg.LocalID = raft.ServerID(r.cfg.ID)
	cfg.HeartbeatTimeout = r.cfg.Timeout
	cfg.ElectionTimeout = r.cfg.Timeout
	cfg.LeaderLeaseTimeout = r.cfg.Timeout / 2
	cfg.CommitTimeout = r.cfg.Timeout // how late a follower may hear of a commit; followers serve no requests
	cfg.MaxAppendEntries = batchEntries
	cfg.BatchApplyCh = true
	cfg.ShutdownOnRemove = false
	cfg.TrailingLogs = r.cfg.TrailingEntries
	cfg.SnapshotThreshold = math.MaxUint64 // the supervisor decides
	cfg.SnapshotInterval = 24 * time.Hour
	cfg.NoLegacyTelemetry = true
	cfg.Logger = newLogger(r.cfg.Logger)
	return cfg
}

// withoutPanic returns a panic of do as an error: raft and bbolt panic at unreadable data.
func withoutPanic(what string, do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: %v", what, p)
		}
	}()
	return do()
}

// followLeadership reports elections of this replica until the instance ends. It misses none,
// because raft waits until each change is received.
func (r *Replica) followLeadership(inst *instance) {
	leads := false
	for {
		select {
		case now := <-inst.leadership:
			switch {
			case now && !leads:
				leads = r.elected(inst)
			case !now && leads:
				leads = false
				r.deposed()
			}
		case <-inst.ended:
			if leads {
				r.deposed()
			}
			return
		}
	}
}

// elected reports the term in which inst leads. Raft changes its state before its term: if it is
// leader between two equal readings of the term, it leads in that term. Otherwise elected returns
// false, and another change follows.
func (r *Replica) elected(inst *instance) bool {
	term := inst.raft.CurrentTerm()
	if inst.raft.State() != raft.Leader || inst.raft.CurrentTerm() != term {
		return false
	}
	r.proposals.progressed()
	inst.untold.Store(true)
	r.events.put(jobtracker.LogEvent{Event: core.Elected{Term: term}})
	return true
}

// tellFollowers makes followers apply the first entry of a term, which names the leader. Otherwise
// raft tells them only CommitTimeout later that it is committed, and task trackers wait for it.
func (inst *instance) tellFollowers() {
	if inst.untold.Swap(false) {
		inst.raft.Barrier(0) // ignore its error: it is only a message to followers
	}
}

func (r *Replica) deposed() {
	r.proposals.progressed()
	r.events.put(jobtracker.LogEvent{Event: core.Deposed{}})
}

// stop stops raft and closes its connections. It returns a channel that is closed when raft has
// ended: only the first call of Shutdown can be awaited.
func (inst *instance) stop() <-chan struct{} {
	inst.stopping.Do(func() {
		future := inst.raft.Shutdown()
		inst.trans.Close()
		go func() {
			future.Error()
			close(inst.stopped)
		}()
	})
	return inst.stopped
}

// end stops an instance. It returns false if raft does not stop in time.
func (inst *instance) end(wait time.Duration) bool {
	defer close(inst.ended)
	select {
	case <-inst.stop():
		return true
	case <-time.After(wait):
		return false
	}
}

// addresses tells raft at each dial the current address of a job tracker.
type addresses struct {
	r    *Replica
	raft atomic.Pointer[raft.Raft] // nil until raft has started
}

var errUnknownServer = errors.New("not in the configuration")

// ServerAddr implements raft.ServerAddressProvider.
func (a *addresses) ServerAddr(id raft.ServerID) (raft.ServerAddress, error) {
	if string(id) == a.r.cfg.ID {
		return raft.ServerAddress(a.r.addr), nil
	}
	if resolve := a.r.cfg.Resolve; resolve != nil {
		if addr := resolve(string(id)); addr != "" {
			return named(id, addr), nil
		}
	}
	if r := a.raft.Load(); r != nil {
		for _, s := range r.GetConfiguration().Configuration().Servers {
			if s.ID == id {
				return named(id, string(s.Address)), nil
			}
		}
	}
	return "", errUnknownServer
}

var _ net.Listener = (*network)(nil)
