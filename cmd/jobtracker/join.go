package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/quernmr/quern/cmd/internal/daemon"
	"github.com/quernmr/quern/gossip"
	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/jobtracker/replica"
	"github.com/quernmr/quern/jobtracker/web"
)

// enterCluster creates a cluster or joins one, unless the log has state.
func (j *jobTracker) enterCluster(ctx context.Context) error {
	if j.replica.HasState() {
		return j.publish(func(m *gossip.Member) { m.Voter, m.Ballot = true, ballotOf(j.replica.Voters()) })
	}
	if err := j.publish(nil); err != nil {
		return err
	}
	logged := false
	for ctx.Err() == nil {
		changed := j.gossip.Changed()
		if j.replica.HasState() { // a leader has sent it
			return j.endCandidacy()
		}
		d, err := decide(j.gossip.Self(), j.gossip.Members())
		if err != nil {
			return err
		}
		switch d.step {
		case publishBallot:
			if err := writeDurably(j.data, candidateFile, j.id); err != nil {
				return err
			}
			j.log.Info("proposes to create a cluster", "voters", d.voters)
			if err := j.publish(func(m *gossip.Member) { m.Ballot = d.ballot }); err != nil {
				return err
			}
			continue
		case bootstrap:
			return j.bootstrap(d.voters)
		case join:
			return j.requestJoin(ctx)
		case waitForCluster:
			if !logged {
				logged = true
				j.log.Info("waits for a cluster to join: it was started without -bootstrap-expect")
			}
		}
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
	return nil
}

// publish updates the entry of this job tracker in gossip: it sets the address of the log, and
// calls more.
func (j *jobTracker) publish(more func(*gossip.Member)) error {
	return j.gossip.Update(func(m gossip.Member) gossip.Member {
		m.Raft = j.raftAddr
		if more != nil {
			more(&m)
		}
		return m
	})
}

func (j *jobTracker) bootstrap(voters []replica.Voter) error {
	if err := writeDurably(j.data, candidateFile, j.id); err != nil {
		return err
	}
	err := j.replica.Bootstrap(voters)
	if err != nil && !errors.Is(err, replica.ErrHasState) { // otherwise a faster member has sent the state
		return err
	}
	j.log.Info("creates a cluster", "voters", voters)
	return j.endCandidacy()
}

// endCandidacy removes the candidate file once the log has state, and tells gossip.
func (j *jobTracker) endCandidacy() error {
	err := os.Remove(filepath.Join(j.data, candidateFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return j.publish(func(m *gossip.Member) { m.Voter, m.Ballot = true, ballotOf(j.replica.Voters()) })
}

// joinPause is the time between requests to join.
const joinPause = 500 * time.Millisecond

// requestJoin repeats joinOnce until the leader has sent state. It makes this job tracker a voter
// later, when it has caught up.
func (j *jobTracker) requestJoin(ctx context.Context) error {
	logged := ""
	for ctx.Err() == nil {
		joined, err := j.joinOnce(ctx)
		switch {
		case errors.Is(err, errLostState), errors.Is(err, errCannotAdd):
			return err
		case err != nil && err.Error() != logged && ctx.Err() == nil:
			logged = err.Error()
			j.log.Warn("the cluster has not added this job tracker yet", "error", err)
		case joined:
			return j.endCandidacy()
		}
		pause := time.NewTimer(joinPause)
		select {
		case <-ctx.Done():
			pause.Stop()
		case <-pause.C:
		}
	}
	return nil
}

// joinOnce reports whether the log has state. If not, it asks the leader to add this job tracker.
func (j *jobTracker) joinOnce(ctx context.Context) (joined bool, err error) {
	if j.replica.HasState() {
		return true, nil
	}
	voters, err := j.askVoters(ctx)
	self := web.Voter{ID: j.id, Addr: j.raftAddr}
	isSelf := func(v web.Voter) bool { return v.ID == self.ID && v.Addr == self.Addr }
	if err != nil || slices.ContainsFunc(voters, isSelf) {
		return false, err // the leader has not sent state yet
	}
	if err := writeDurably(j.data, candidateFile, j.id); err != nil {
		return false, err
	}
	client, err := j.client()
	if err != nil {
		return false, err
	}
	defer client.Close()
	return false, client.AddVoter(ctx, self)
}

// askVoters returns the cluster's voters and nonvoters. It fails with errLostState if this job tracker is a voter
// but has no state.
func (j *jobTracker) askVoters(ctx context.Context) ([]web.Voter, error) {
	client, err := j.client()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	cluster, err := client.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	isVoter := slices.ContainsFunc(cluster.Voters, func(v web.Voter) bool { return v.ID == j.id && !v.Nonvoter })
	if isVoter && !hasFile(j.data, candidateFile) {
		return nil, fmt.Errorf("cluster %s has a job tracker %s, but directory %s has no state of it: %w",
			cluster.ID, j.id, j.data, j.lostStateError())
	}
	return cluster.Voters, j.checkJoin(cluster)
}

// errCannotAdd refuses a job tracker that would harm the cluster as a voter.
var errCannotAdd = errors.New("the cluster cannot add this job tracker")

// checkJoin fails if this job tracker must not become a voter. With another staging directory it
// would halt after joining, as a dead voter. With another voter's address it would vote in that
// voter's place, without its state.
func (j *jobTracker) checkJoin(cluster *web.Cluster) error {
	if cluster.Staging != "" && cluster.Staging != j.staging {
		return fmt.Errorf("%w: staging directory differs from the cluster's: %s, not %s", errCannotAdd, cluster.Staging, j.staging)
	}
	addr := j.raftAddr
	if addr == "" { // the log does not listen yet
		var err error
		if addr, err = daemon.Advertised("-raft-advertise", j.raftAdvertise, j.raft); err != nil {
			return err
		}
	}
	for _, v := range cluster.Voters {
		if v.ID != j.id && v.Addr == addr {
			return fmt.Errorf("%w: job tracker %s has the same -raft address %s; choose another -raft or, if %s is gone, remove it first with \"mrsubmit cluster remove %s\"",
				errCannotAdd, v.ID, addr, v.ID, v.ID)
		}
	}
	return nil
}

// client makes a client of the other job trackers that gossip knows.
func (j *jobTracker) client() (*web.Client, error) {
	var addrs []string
	for _, m := range j.gossip.Members() {
		if m.Role == gossip.JobTracker && m.ID != j.id {
			addrs = append(addrs, m.HTTP)
		}
	}
	if len(addrs) == 0 {
		return nil, errors.New("gossip has found no other job tracker")
	}
	client := web.NewClient(addrs)
	client.Secure(j.identity.Dialer(identity.JobTracker))
	client.Patience = 5 * time.Second
	return client, nil
}

// errLostState refuses a voter that has lost its state: it could vote twice in one term.
var errLostState = errors.New("the state that this job tracker voted with is lost")

func (j *jobTracker) lostStateError() error {
	return fmt.Errorf("%w; if it ran with another -data before, use that; else remove it with \"mrsubmit cluster remove %s\", empty the directory and start it without -bootstrap-expect", errLostState, j.id)
}
