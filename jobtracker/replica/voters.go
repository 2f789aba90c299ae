package replica

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft"
)

// Voter is a job tracker that votes.
type Voter struct{ ID, Addr string }

// maxNonvoters limits the job trackers that are not voters yet. The leader works for each of them.
const maxNonvoters = 3

// newVoterWait limits how long a new voter may take to answer.
const newVoterWait = 10 * time.Second

// Bootstrap creates a cluster of these voters, which must include this replica. Each voter may call
// it with the same list. [ErrHasState] is harmless: the cluster exists already.
func (r *Replica) Bootstrap(voters []Voter) error {
	inst := r.instance()
	if inst == nil {
		return fmt.Errorf("bootstrap: %w", ErrClosed)
	}
	var c raft.Configuration
	for _, v := range voters {
		c.Servers = append(c.Servers, raft.Server{ID: raft.ServerID(v.ID), Address: raft.ServerAddress(v.Addr)})
	}
	slices.SortFunc(c.Servers, func(a, b raft.Server) int { return strings.Compare(string(a.ID), string(b.ID)) })
	switch err := inst.raft.BootstrapCluster(c).Error(); {
	case errors.Is(err, raft.ErrCantBootstrap):
		return fmt.Errorf("bootstrap: %w", ErrHasState)
	case errors.Is(err, raft.ErrNotVoter):
		return fmt.Errorf("bootstrap: %s is not among the voters %v", r.cfg.ID, voters)
	case err != nil:
		return fmt.Errorf("bootstrap: %w", err)
	}
	return nil
}

// Voters returns the voters of the latest known configuration, by id.
func (r *Replica) Voters() []Voter { return r.servers(raft.Voter) }

// Nonvoters returns the job trackers that will be voters once they have caught up, by id.
func (r *Replica) Nonvoters() []Voter { return r.servers(raft.Nonvoter) }

func (r *Replica) servers(suffrage raft.ServerSuffrage) []Voter {
	inst := r.instance()
	if inst == nil {
		return nil
	}
	var servers []Voter
	for _, s := range inst.raft.GetConfiguration().Configuration().Servers {
		if s.Suffrage == suffrage {
			servers = append(servers, Voter{ID: string(s.ID), Addr: string(s.Address)})
		}
	}
	slices.SortFunc(servers, func(a, b Voter) int { return strings.Compare(a.ID, b.ID) })
	return servers
}

// AddVoter makes a job tracker a nonvoter, or changes the address of a voter. Only the leader can do
// it. The leader makes a nonvoter a voter when it has caught up, also a later leader: a job tracker
// that cannot follow must not count for the majority.
func (r *Replica) AddVoter(ctx context.Context, v Voter) error {
	if err := r.mayAdd(v); err != nil {
		return fmt.Errorf("add job tracker %s: %w", v.ID, err)
	}
	conn, err := dialTo(r.cfg.dial, v.ID, v.Addr, newVoterWait)
	if err != nil {
		return fmt.Errorf("add job tracker %s: %w", v.ID, err)
	}
	conn.Close()
	if err := r.change(ctx, func(inst *instance, timeout time.Duration) error {
		if err := r.mayAdd(v); err != nil { // requests before this one may have added others
			return err
		}
		return inst.raft.AddNonvoter(raft.ServerID(v.ID), raft.ServerAddress(v.Addr), 0, timeout).Error()
	}); err != nil {
		return fmt.Errorf("add job tracker %s at %s: %w", v.ID, v.Addr, err)
	}
	return nil
}

// mayAdd returns an error if too many job trackers are nonvoters beside v.
func (r *Replica) mayAdd(v Voter) error {
	waiting := r.Nonvoters()
	known := slices.ContainsFunc(append(r.Voters(), waiting...), func(other Voter) bool { return other.ID == v.ID })
	if !known && len(waiting) >= maxNonvoters {
		return fmt.Errorf("%w: %s", ErrManyNonvoters, idsOf(waiting))
	}
	return nil
}

func idsOf(servers []Voter) string {
	var ids []string
	for _, s := range servers {
		ids = append(ids, s.ID)
	}
	return strings.Join(ids, ", ")
}

// RemoveVoter makes a job tracker a non-voter, even the leader, or removes a nonvoter. The last
// voter cannot be removed.
func (r *Replica) RemoveVoter(ctx context.Context, id string) error {
	isIt := func(v Voter) bool { return v.ID == id }
	voters := r.Voters()
	votes := slices.ContainsFunc(voters, isIt)
	if !votes && !slices.ContainsFunc(r.Nonvoters(), isIt) {
		return fmt.Errorf("remove job tracker %s: %w", id, ErrNotVoter)
	}
	if votes && len(voters) == 1 {
		return fmt.Errorf("remove job tracker %s: it is the last voter", id)
	}
	if err := r.change(ctx, func(inst *instance, timeout time.Duration) error {
		return inst.raft.RemoveServer(raft.ServerID(id), 0, timeout).Error()
	}); err != nil {
		return fmt.Errorf("remove job tracker %s: %w", id, err)
	}
	return nil
}

// change calls request to change the voters, and waits for the result until ctx ends. Changes take
// turns, so that request may decide by the configuration.
func (r *Replica) change(ctx context.Context, request func(*instance, time.Duration) error) error {
	inst := r.instance()
	if inst == nil {
		return ErrClosed
	}
	select {
	case r.changing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-inst.ended:
		return ErrClosed
	}
	timeout := 10 * r.cfg.Timeout
	if deadline, ok := ctx.Deadline(); ok {
		timeout = max(time.Until(deadline), time.Millisecond)
	}
	result := make(chan error, 1)
	go func() {
		defer func() { <-r.changing }()
		result <- request(inst, timeout)
	}()
	select {
	case err := <-result:
		if errors.Is(err, raft.ErrNotLeader) || errors.Is(err, raft.ErrLeadershipLost) {
			return ErrNotLeader
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-inst.ended:
		return ErrClosed
	}
}
