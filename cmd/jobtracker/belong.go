package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/cmd/internal/daemon"
	"github.com/quernmr/quern/gossip"
	"github.com/quernmr/quern/jobtracker/web"
)

// These files are in -data, beside the log. With them, a job tracker knows its cluster before it
// contacts others. The log shows the cluster's id only later, with a majority of voters.
const (
	clusterFile   = "cluster"
	candidateFile = "candidate"
)

func readCluster(data string) (string, error) {
	text, err := os.ReadFile(filepath.Join(data, clusterFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the cluster of -data: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// joinWait limits how long a job tracker waits for gossip before it opens its log. The wait is
// short if the addresses of -join answer or refuse the connection.
const joinWait = 5 * time.Second

// awaitJoin waits until gossip has tried the addresses of -join.
func (j *jobTracker) awaitJoin(ctx context.Context) {
	timer := time.NewTimer(joinWait)
	defer timer.Stop()
	select {
	case <-j.gossip.JoinTried():
	case <-timer.C:
	case <-ctx.Done():
	}
}

// checkCluster fails if -data belongs to one cluster and gossip finds only job trackers of another.
func (j *jobTracker) checkCluster() error {
	if j.cluster == "" {
		return nil
	}
	for _, m := range j.gossip.Members() {
		if m.Role == gossip.JobTracker && m.ID != j.id && m.Cluster == j.cluster {
			return nil
		}
	}
	if foreign := j.gossip.Foreign(); len(foreign) > 0 {
		return fmt.Errorf("directory %s is of cluster %s, but %s at %s is of cluster %s: check -data and -join",
			j.data, j.cluster, foreign[0].ID, foreign[0].HTTP, foreign[0].Cluster)
	}
	return nil
}

// checkState refuses to start a voter that has lost its state. It runs before the log listens,
// since the leader would send its entries to an empty log.
func (j *jobTracker) checkState(ctx context.Context) error {
	entries, err := os.ReadDir(daemon.LogDir(j.data))
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case len(entries) > 0:
		return j.checkRemoved(ctx)
	case j.cluster != "":
		return fmt.Errorf("directory %s is of cluster %s, but its log is gone: %w", j.data, j.cluster, j.lostStateError())
	case hasFile(j.data, candidateFile):
		return nil
	}
	if j.knowsCluster() {
		_, err := j.askVoters(ctx)
		return err
	}
	return nil
}

// knowsCluster reports whether gossip has found a job tracker of a cluster, which this one would join.
func (j *jobTracker) knowsCluster() bool {
	return slices.ContainsFunc(j.gossip.Members(), func(m gossip.Member) bool {
		return m.Role == gossip.JobTracker && m.ID != j.id && (m.Cluster != "" || m.Voter)
	})
}

// removedWait limits how long checkRemoved looks for a leader. There may be none until this job
// tracker starts.
const removedWait = 500 * time.Millisecond

// checkRemoved refuses to start if this job tracker is no longer a voter of its cluster.
func (j *jobTracker) checkRemoved(ctx context.Context) error {
	client, err := j.client()
	if err != nil || j.cluster == "" {
		return nil // no other job tracker is known, or -data has no cluster yet
	}
	defer client.Close()
	client.Patience = removedWait
	ctx, cancel := context.WithTimeout(ctx, 2*removedWait)
	defer cancel()
	cluster, err := client.Cluster(ctx)
	if err != nil || !cluster.IsLeader || cluster.ID != j.cluster {
		return nil
	}
	if slices.ContainsFunc(cluster.Voters, func(v web.Voter) bool { return v.ID == j.id }) {
		return nil
	}
	return fmt.Errorf("job tracker %[2]s is no longer in cluster %[1]s: it was removed, or the cluster was recovered without it; to add it again, empty directory %[3]s and start it without -bootstrap-expect",
		j.cluster, j.id, j.data)
}

// removedPoll is how often watchRemoved asks.
const removedPoll = time.Second

// watchRemoved repeats checkRemoved until a leader reaches this job tracker: when it started, the others may have been busy or
// stopped. No leader ever reaches one that was removed.
func (j *jobTracker) watchRemoved(ctx context.Context) error {
	return every(ctx, removedPoll, func() (more bool, err error) {
		if _, ok := j.replica.Leader(); ok {
			return false, nil
		}
		return true, j.checkRemoved(ctx)
	})
}

// clusterPoll is how often recordCluster asks the log for the cluster's id.
const clusterPoll = 100 * time.Millisecond

// recordCluster stores the cluster's id in -data once the log has it, and tells gossip.
func (j *jobTracker) recordCluster(ctx context.Context) error {
	tick := time.NewTicker(clusterPoll)
	defer tick.Stop()
	for {
		status, err := j.server.Cluster(ctx)
		switch {
		case err != nil:
			return nil // the server stops
		case status.Cluster == "":
		case j.cluster == "":
			if err := writeDurably(j.data, clusterFile, status.Cluster); err != nil {
				return err
			}
			j.log.Info("belongs to a cluster", "cluster", status.Cluster, "staging", status.Staging)
			return j.gossip.Update(func(m gossip.Member) gossip.Member {
				m.Cluster = status.Cluster
				return m
			})
		case j.cluster != status.Cluster:
			return fmt.Errorf("directory %s is of cluster %s, but its log is of cluster %s", j.data, j.cluster, status.Cluster)
		default:
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// writeDurably writes a file atomically, and syncs it and its directory.
func writeDurably(dir, name, text string) error {
	path := filepath.Join(dir, name)
	f, err := os.CreateTemp(dir, "."+name)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = f.WriteString(text + "\n")
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("write %s: %w", path, err)
	}
	return syncDir(dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// hasFile reports whether a file exists.
func hasFile(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}
