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

// begin makes this job tracker part of a cluster, unless its log says that it is.
func (j *jobTracker) begin(ctx context.Context) error {
	if j.replica.HasState() {
		return j.tell(func(m *gossip.Member) { m.Voter, m.Ballot = true, ballotOf(j.replica.Voters()) })
	}
	if err := j.tell(nil); err != nil {
		return err
	}
	said := wait
	for ctx.Err() == nil {
		changed := j.gossip.Changed()
		if j.replica.HasState() { // a leader has found it
			return j.begun()
		}
		d, err := decide(j.gossip.Self(), j.gossip.Members())
		if err != nil {
			return err
		}
		switch d.step {
		case vote:
			if err := writeDown(j.data, candidateFile, j.id); err != nil {
				return err
			}
			j.log.Info("wants to begin a cluster", "voters", d.voters)
			if err := j.tell(func(m *gossip.Member) { m.Ballot = d.ballot }); err != nil {
				return err
			}
			continue
		case begin:
			return j.bootstrap(d.voters)
		case askFor:
			return j.askToJoin(ctx)
		case unasked:
			if said != unasked {
				said = unasked
				j.log.Info("waits for a cluster that adds it: it was started without -bootstrap-expect")
			}
		}
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
	return nil
}

// tell changes what gossip tells of this job tracker: where its log listens, and more.
func (j *jobTracker) tell(more func(*gossip.Member)) error {
	return j.gossip.Update(func(m gossip.Member) gossip.Member {
		m.Raft = j.raftAddr
		if more != nil {
			more(&m)
		}
		return m
	})
}

func (j *jobTracker) bootstrap(voters []replica.Voter) error {
	if err := writeDown(j.data, candidateFile, j.id); err != nil {
		return err
	}
	err := j.replica.Bootstrap(voters)
	if err != nil && !errors.Is(err, replica.ErrHasState) { // a quicker one has reached it
		return err
	}
	j.log.Info("begins a cluster", "voters", voters)
	return j.begun()
}

// begun is called once the log has state.
func (j *jobTracker) begun() error {
	err := os.Remove(filepath.Join(j.data, candidateFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return j.tell(func(m *gossip.Member) { m.Voter, m.Ballot = true, ballotOf(j.replica.Voters()) })
}

// askAgain is the pause between requests to be added.
const askAgain = 500 * time.Millisecond

// askToJoin has the leader of the cluster that is there make this one a voter.
func (j *jobTracker) askToJoin(ctx context.Context) error {
	said := ""
	for ctx.Err() == nil {
		joined, err := j.askOnce(ctx)
		switch {
		case errors.Is(err, errLostState), errors.Is(err, errMisplaced):
			return err
		case err != nil && err.Error() != said && ctx.Err() == nil:
			said = err.Error()
			j.log.Warn("not added to the cluster yet", "error", err)
		case joined:
			return j.begun()
		}
		pause := time.NewTimer(askAgain)
		select {
		case <-ctx.Done():
			pause.Stop()
		case <-pause.C:
		}
	}
	return nil
}

// askOnce says whether this one is a voter that the leader has reached.
func (j *jobTracker) askOnce(ctx context.Context) (joined bool, err error) {
	if j.replica.HasState() {
		return true, nil
	}
	voters, err := j.askVoters(ctx)
	self := web.Voter{ID: j.id, Addr: j.raftAddr}
	if err != nil || slices.Contains(voters, self) {
		return false, err // the leader has yet to reach it
	}
	if err := writeDown(j.data, candidateFile, j.id); err != nil {
		return false, err
	}
	client, err := j.client()
	if err != nil {
		return false, err
	}
	defer client.Close()
	return false, client.AddVoter(ctx, self)
}

// askVoters asks the cluster that is there who votes. It fails with errLostState when
// this one does, but its directory has nothing to show for it.
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
	votes := slices.ContainsFunc(cluster.Voters, func(v web.Voter) bool { return v.ID == j.id })
	if votes && !hasFile(j.data, candidateFile) {
		return nil, fmt.Errorf("cluster %s has a job tracker %s, but directory %s holds nothing of it: %w",
			cluster.ID, j.id, j.data, j.lostState())
	}
	return cluster.Voters, j.misplaced(cluster)
}

// errMisplaced refuses what would do harm once this job tracker votes.
var errMisplaced = errors.New("it is not to be added like this")

// misplaced says why this job tracker must not be added to the cluster as it was
// started. With another staging directory it would end as soon as it knew, but be a
// voter by then. At the address of another voter it would be taken for that one, and
// vouch for what that one has promised.
func (j *jobTracker) misplaced(cluster *web.Cluster) error {
	if cluster.Staging != "" && cluster.Staging != j.staging {
		return fmt.Errorf("%w: staging directory differs from the cluster's: %s, not %s", errMisplaced, cluster.Staging, j.staging)
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
			return fmt.Errorf("%w: the cluster has job tracker %s at %s, the address of this one's log; say another -raft, or, if %s is gone, remove it first with \"mrsubmit cluster remove %s\"",
				errMisplaced, v.ID, addr, v.ID, v.ID)
		}
	}
	return nil
}

// client asks the other job trackers that gossip knows.
func (j *jobTracker) client() (*web.Client, error) {
	var addrs []string
	for _, m := range j.gossip.Members() {
		if m.Role == gossip.JobTracker && m.ID != j.id {
			addrs = append(addrs, m.HTTP)
		}
	}
	if len(addrs) == 0 {
		return nil, errors.New("no other job tracker is to be seen")
	}
	client := web.NewClient(addrs)
	client.Secure(j.who.Dialer(identity.JobTracker))
	client.Patience = 5 * time.Second
	return client, nil
}

// errLostState refuses to vote again under a name that may have voted otherwise.
var errLostState = errors.New("what this job tracker had promised is lost")

func (j *jobTracker) lostState() error {
	return fmt.Errorf("%w; if it was started with another -data before, use that; else remove it with \"mrsubmit cluster remove %s\", empty the directory and start it without -bootstrap-expect", errLostState, j.id)
}
