package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/quernmr/quern/gossip"
	"github.com/quernmr/quern/jobtracker/replica"
	"github.com/quernmr/quern/jobtracker/web"
)

// begin makes this job tracker part of a cluster, unless its log says that it is.
func (j *jobTracker) begin(ctx context.Context) error {
	if j.replica.HasState() {
		return j.tell(func(m *gossip.Member) { m.Voter, m.Ballot = true, ballotOf(j.replica.Voters()) })
	}
	if j.cluster != "" {
		return fmt.Errorf("directory %s has been of cluster %s, but its log is gone: %w", j.data, j.cluster, j.lostState())
	}
	if err := j.tell(nil); err != nil {
		return err
	}
	if err := j.lookAround(ctx); err != nil {
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

// lookAround gives a job tracker that would begin a cluster by itself the time to
// see that there is one.
func (j *jobTracker) lookAround(ctx context.Context) error {
	others := slices.DeleteFunc(slices.Clone(j.join), func(addr string) bool { return addr == j.gossip.Addr() })
	if j.expect != 1 || len(others) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, otherWait)
	defer cancel()
	for {
		changed := j.gossip.Changed()
		if len(j.gossip.Members()) > 1 {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
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
		case errors.Is(err, errLostState):
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
	var addrs []string
	for _, m := range j.gossip.Members() {
		if m.Role == gossip.JobTracker && m.ID != j.id {
			addrs = append(addrs, m.HTTP)
		}
	}
	if len(addrs) == 0 {
		return false, errors.New("no job tracker is to be seen")
	}
	client := web.NewClient(addrs)
	client.Patience = 5 * time.Second
	defer client.Close()
	cluster, err := client.Cluster(ctx)
	if err != nil {
		return false, err
	}
	self := web.Voter{ID: j.id, Addr: j.raftAddr}
	i := slices.IndexFunc(cluster.Voters, func(v web.Voter) bool { return v.ID == j.id })
	switch {
	case i >= 0 && !hasFile(j.data, candidateFile):
		return false, fmt.Errorf("cluster %s has a job tracker %s, but directory %s holds nothing of it: %w", cluster.ID, j.id, j.data, j.lostState())
	case i >= 0 && cluster.Voters[i] == self:
		return false, nil // the leader has yet to reach it
	}
	if err := writeDown(j.data, candidateFile, j.id); err != nil {
		return false, err
	}
	return false, client.AddVoter(ctx, self)
}

// errLostState refuses to vote again under a name that may have voted otherwise.
var errLostState = errors.New("what this job tracker had promised is lost")

func (j *jobTracker) lostState() error {
	return fmt.Errorf("%w; if it was started with another -data before, use that; else remove it with \"mrsubmit cluster remove %s\", empty the directory and start it without -bootstrap-expect", errLostState, j.id)
}
