package replica

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// confirmations are the calls of Confirm that wait. A round with the other voters answers all that
// came before it began.
type confirmations struct {
	mu      sync.Mutex
	waiting []func(term uint64)
	running bool
}

// Confirm implements [jobtracker.Log]. A majority of the voters confirms that this replica leads.
func (r *Replica) Confirm(answer func(term uint64)) {
	c := &r.confirmations
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = append(c.waiting, answer)
	if !c.running {
		c.running = true
		go r.confirmAll()
	}
}

func (r *Replica) confirmAll() {
	for batch := r.confirmations.take(); batch != nil; batch = r.confirmations.take() {
		term := r.confirmedTerm()
		for _, answer := range batch {
			answer(term)
		}
	}
}

// take returns the waiting calls; nil: there is none.
func (c *confirmations) take() []func(term uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	batch := c.waiting
	c.waiting, c.running = nil, batch != nil
	return batch
}

// verifyLeader asks a majority of the voters whether raft leads. Raft also counts answers to messages
// that it sent before, perhaps before this process was stopped. Of each other voter there are at most
// two, one to a heartbeat and one to entries or a snapshot: MaxRPCsInFlight is 1. So one round at least
// has only new answers. There is a round even if the voters are not known during a restart of raft.
func verifyLeader(r *raft.Raft, voters int) error {
	for range 1 + 2*max(voters-1, 0) {
		if err := r.VerifyLeader().Error(); err != nil {
			return err
		}
	}
	return nil
}

// confirmedTerm returns the term in which this replica leads; 0: it does not, or no majority answers
// in time. Raft's term is read last: if it equals the term of an earlier answer, no other replica
// has led in between.
func (r *Replica) confirmedTerm() uint64 {
	inst := r.instance()
	if inst == nil {
		return 0
	}
	result := make(chan error, 1)
	go func() { result <- verifyLeader(inst.raft, len(r.Voters())) }()
	timer := time.NewTimer(4 * r.cfg.Timeout)
	defer timer.Stop()
	select {
	case err := <-result:
		if err == nil {
			return inst.raft.CurrentTerm()
		}
	case <-timer.C:
	case <-inst.ended:
	}
	return 0
}
