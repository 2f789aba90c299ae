package core

import (
	"errors"
	"fmt"
)

// ErrNotLeader answers requests to a job tracker that does not lead, or has just lost its term:
// then it is unknown whether the request took effect. It comes as a [NotLeaderError].
var ErrNotLeader = errors.New("this job tracker does not lead")

// NotLeaderError is ErrNotLeader with the likely leader, a hint that may be out of date. Both
// fields are empty when there is none.
type NotLeaderError struct {
	Leader string // its id
	Addr   string // host:port of its API
}

func (e *NotLeaderError) Error() string {
	if e.Leader == "" {
		return ErrNotLeader.Error()
	}
	return fmt.Sprintf("%v: %s did last, at %s", ErrNotLeader, e.Leader, e.Addr)
}

// Unwrap makes it an ErrNotLeader.
func (e *NotLeaderError) Unwrap() error { return ErrNotLeader }

// Leads says whether this job tracker is the leader.
func (c *Core) IsLeader() bool { return c.leader != nil }

// Following is nil when this job tracker leads or is about to, else a [NotLeaderError] with the
// leader.
func (c *Core) Following() error {
	if c.term != 0 {
		return nil
	}
	return c.notLeader()
}

// Leader is the last known leader and the address of its API; both are empty before the first
// leader.
func (c *Core) Leader() (id, addr string) { return c.facts.Leader().Leader, c.facts.Leader().Addr }

// notLeader names the likely leader, which is not this job tracker.
func (c *Core) notLeader() *NotLeaderError {
	e := &NotLeaderError{Leader: c.facts.Leader().Leader, Addr: c.facts.Leader().Addr}
	if e.Leader == c.cfg.ID || e.Addr == "" {
		return &NotLeaderError{}
	}
	return e
}

// Epoch is the term of the last known leader.
func (c *Core) Epoch() uint64 { return c.facts.Epoch() }
