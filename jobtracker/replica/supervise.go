package replica

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// growth measures how much the log has grown since the last snapshot.
type growth struct {
	snapshot  atomic.Uint64 // index of the last one
	bytes     atomic.Int64  // store.bytes at that time; at the start: minus the bytes that the log had
	attempted atomic.Int64  // when a snapshot was last attempted, in Unix nanoseconds
}

// wakeSupervisor wakes the supervisor after a change.
func (r *Replica) wakeSupervisor() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// supervise checks disk and raft and takes snapshots, until Close.
func (r *Replica) supervise() {
	tick := time.NewTicker(jitter(r.cfg.Timeout / 2))
	defer tick.Stop()
	p, rounds := progress{index: r.fsm.applied.Load()}, make(rounds)
	var w stall
	for {
		select {
		case <-r.done:
			return
		case <-tick.C:
		case <-r.wake:
		}
		if r.hasFailed() {
			continue
		}
		r.checkDisk(&w)
		r.checkRaft(&p)
		r.checkNonvoters(rounds)
		r.checkGrowth()
	}
}

// checkDisk makes the replica fail if a write takes too long. Otherwise such a leader would renew
// its lease, and the others would elect no new one.
func (r *Replica) checkDisk(w *stall) {
	since, writes := r.store.writingSince()
	if !writes {
		return
	}
	if took := w.observe(since, time.Now(), r.cfg.Timeout); took > r.cfg.writeLimit {
		r.store.fail(fmt.Errorf("the disk of %s does not answer: a write has taken %v", r.cfg.Dir, took.Round(time.Second)))
	}
}

// stall measures how long a write has taken while this process ran. A process may be stopped, or
// its machine paused, in the middle of a write; the disk is not to blame for that time.
type stall struct {
	since, checked time.Time
	took           time.Duration
}

// observe counts the time since the previous check of the same write, but not more than the limit.
func (w *stall) observe(since, now time.Time, limit time.Duration) time.Duration {
	if !since.Equal(w.since) {
		*w = stall{since: since, checked: since}
	}
	w.took += min(now.Sub(w.checked), limit)
	w.checked = now
	return w.took
}

// progress has the last applied index, and the restarts of raft since.
type progress struct {
	index    uint64
	restarts int
}

const maxRestarts = 3

// checkRaft restarts raft on request, or if it leads but commits nothing and the disk answers.
func (r *Replica) checkRaft(p *progress) {
	if index := r.fsm.applied.Load(); index != p.index {
		*p = progress{index: index}
	}
	inst := r.instance()
	if inst == nil {
		return
	}
	if why := r.restart.Swap(nil); why != nil {
		r.restartRaft(*why)
		return
	}
	if _, writes := r.store.writingSince(); writes || inst.raft.State() != raft.Leader || !r.proposals.stuck() {
		return
	}
	if p.restarts++; p.restarts > maxRestarts {
		r.fail(fmt.Errorf("raft leads but commits nothing, even after %d restarts", maxRestarts))
		return
	}
	r.restartRaft("it leads but commits nothing")
}

// restartRaft replaces the instance, like a restart of the process.
func (r *Replica) restartRaft(why string) {
	r.cfg.Logger.Warn("raft is restarted", "why", why)
	r.mu.Lock()
	inst := r.inst
	if r.closing {
		r.mu.Unlock()
		return
	}
	r.inst = nil
	r.mu.Unlock()
	if !r.endInstance(inst) {
		r.fail(fmt.Errorf("raft does not stop for a restart: %s", why))
		return
	}
	next, err := r.start()
	if err != nil {
		r.fail(fmt.Errorf("restart raft: %w", err))
		return
	}
	r.mu.Lock()
	closing := r.closing
	if !closing {
		r.inst = next
	}
	r.mu.Unlock()
	if closing {
		r.endInstance(next)
	}
}

// checkGrowth takes a snapshot if the log has grown enough.
func (r *Replica) checkGrowth() {
	enough := r.hasGrown(r.cfg.SnapshotEntries, r.cfg.SnapshotBytes)
	if age := time.Since(time.Unix(0, r.growth.attempted.Load())); !enough && age >= r.cfg.SnapshotInterval {
		enough = r.hasGrown(1, 1)
	}
	inst := r.instance()
	if !enough || inst == nil || !r.snapshotting.CompareAndSwap(false, true) {
		return
	}
	r.loops.Go(func() {
		defer r.snapshotting.Store(false)
		r.snapshot(inst)
	})
}

// hasGrown reports whether the log has this many entries or bytes since the last snapshot.
func (r *Replica) hasGrown(entries uint64, bytes int64) bool {
	n := r.fsm.applied.Load() - r.growth.snapshot.Load()
	return n >= entries || n > 0 && r.store.bytes.Load()-r.growth.bytes.Load() >= bytes
}

// snapshotRetry is the pause after a failed snapshot.
const snapshotRetry = 5 * time.Second

// snapshot makes raft take a snapshot.
func (r *Replica) snapshot(inst *instance) {
	index, bytes := r.fsm.applied.Load(), r.store.bytes.Load()
	err := inst.raft.Snapshot().Error()
	r.growth.attempted.Store(time.Now().UnixNano())
	switch {
	case err == nil:
		r.growth.snapshot.Store(index)
		r.growth.bytes.Store(bytes)
		r.cfg.Logger.Debug("snapshot", "index", index)
	case errors.Is(err, raft.ErrNothingNewToSnapshot), errors.Is(err, raft.ErrRaftShutdown), errors.Is(err, ErrClosed):
	default:
		r.cfg.Logger.Warn("cannot take a snapshot", "index", index, "error", err)
		select {
		case <-time.After(snapshotRetry):
		case <-r.done:
		}
	}
}
