package replica

import (
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

const (
	// requestWait limits how long a clean stop waits until the job tracker takes the request for a
	// snapshot. The job tracker may have stopped already.
	requestWait = 500 * time.Millisecond
	// lastSnapshotWait limits how long it then waits for the snapshot.
	lastSnapshotWait = 5 * time.Second
)

// Close closes the replica within a time limit. A leader hands over, the replica takes a last
// snapshot if the job tracker still takes events, and raft stops.
func (r *Replica) Close() error {
	r.close.Do(func() { r.closeErr = r.shutDown() })
	return r.closeErr
}

func (r *Replica) shutDown() error {
	r.mu.Lock()
	r.closing = true // no restart from here
	inst := r.inst
	r.mu.Unlock()
	if inst != nil && !r.hasFailed() {
		r.handOver(inst)
		r.lastSnapshot(inst)
	}
	close(r.done)
	r.events.close()
	if inst != nil {
		r.endInstance(inst)
	}
	if !r.waitIdle() {
		return fmt.Errorf("job tracker %s's log: raft did not stop within %v; its files stay open", r.cfg.ID, r.cfg.stopWait)
	}
	r.release()
	return nil
}

// waitIdle waits until the files are no longer in use. It returns false if raft may still use them.
func (r *Replica) waitIdle() bool {
	ended := make(chan struct{})
	go func() {
		r.loops.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(r.cfg.stopWait):
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.hangs
}

// endInstance stops an instance, and sets hangs if it does not stop in time.
func (r *Replica) endInstance(inst *instance) bool {
	if inst.end(r.cfg.stopWait) {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hangs = true
	return false
}

// handOver transfers the leadership to another voter, if this replica leads.
func (r *Replica) handOver(inst *instance) {
	if inst.raft.State() != raft.Leader || len(r.Voters()) < 2 {
		return
	}
	done := make(chan error, 1)
	go func() { done <- inst.raft.LeadershipTransfer().Error() }()
	select {
	case err := <-done:
		if err != nil {
			r.cfg.Logger.Info("no voter takes over the leadership before the stop", "error", err)
		}
	case <-time.After(3 * r.cfg.Timeout):
	}
}

// lastSnapshot takes a snapshot if there are new entries, so that the next start replays few.
func (r *Replica) lastSnapshot(inst *instance) {
	if !r.hasGrown(1, 1) {
		return
	}
	begun := make(chan struct{})
	r.fsm.snapshotBegun.Store(&begun)
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.snapshot(inst)
	}()
	timer := time.NewTimer(requestWait)
	defer timer.Stop()
	select {
	case <-done:
		return
	case <-begun:
	case <-timer.C:
		return
	}
	select {
	case <-done:
	case <-time.After(lastSnapshotWait):
	}
}
