package core

import (
	"errors"
	"fmt"
)

// ErrNotLeader answers requests to a job tracker that does not lead. It comes as a
// [NotLeaderError]. If the job tracker has just lost leadership, the request may have been
// carried out.
var ErrNotLeader = errors.New("this job tracker does not lead")

// NotLeaderError is ErrNotLeader with the last known leader, which may be out of date. Both
// fields are empty if no leader is known.
type NotLeaderError struct {
	Leader string // its id
	Addr   string // host:port of its API
}

func (e *NotLeaderError) Error() string {
	if e.Leader == "" {
		return ErrNotLeader.Error()
	}
	return fmt.Sprintf("%v; the last known leader is %s at %s", ErrNotLeader, e.Leader, e.Addr)
}

// Unwrap makes it an ErrNotLeader.
func (e *NotLeaderError) Unwrap() error { return ErrNotLeader }

// IsLeader reports whether this job tracker is the leader.
func (c *Core) IsLeader() bool { return c.leader != nil }

// CheckLeading returns a [NotLeaderError] on a follower, and nil on a leader, also if
// it is elected but does not lead yet.
func (c *Core) CheckLeading() error {
	if c.term != 0 {
		return nil
	}
	return c.notLeader()
}

// Leader returns the last known leader and the address of its API; both are empty if none is
// known.
func (c *Core) Leader() (id, addr string) { return c.facts.Leader().Leader, c.facts.Leader().Addr }

// notLeader makes the error of a job tracker that does not lead.
func (c *Core) notLeader() *NotLeaderError {
	e := &NotLeaderError{Leader: c.facts.Leader().Leader, Addr: c.facts.Leader().Addr}
	if e.Leader == c.cfg.ID || e.Addr == "" {
		return &NotLeaderError{}
	}
	return e
}

// Epoch returns the term of the last known leader.
func (c *Core) Epoch() uint64 { return c.facts.Epoch() }
