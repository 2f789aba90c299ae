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

// Which cluster a directory belongs to is written beside the log, since a log
// tells only when most voters can be reached: too late to keep it away from the
// job trackers of another cluster, which may have the same names.
const (
	clusterFile   = "cluster"
	candidateFile = "candidate"
)

func readCluster(data string) (string, error) {
	text, err := os.ReadFile(filepath.Join(data, clusterFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("find out the cluster of -data: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// firstWait bounds how long a job tracker waits for the first attempts to join others
// before it opens its log. Where somebody answers, or nobody listens, that is short.
const firstWait = 5 * time.Second

// metOthers waits until gossip has tried the addresses of -join.
func (j *jobTracker) metOthers(ctx context.Context) {
	timer := time.NewTimer(firstWait)
	defer timer.Stop()
	select {
	case <-j.gossip.Tried():
	case <-timer.C:
	case <-ctx.Done():
	}
}

// avoidOtherClusters refuses to serve a directory among the job trackers of
// another cluster.
func (j *jobTracker) avoidOtherClusters() error {
	if j.cluster == "" {
		return nil
	}
	for _, m := range j.gossip.Members() {
		if m.Role == gossip.JobTracker && m.ID != j.id && m.Cluster == j.cluster {
			return nil
		}
	}
	if foreign := j.gossip.Foreign(); len(foreign) > 0 {
		return fmt.Errorf("state directory %s is of cluster %s, but %s at %s is of cluster %s",
			j.data, j.cluster, foreign[0].ID, foreign[0].HTTP, foreign[0].Cluster)
	}
	return nil
}

// avoidLostState refuses to take part under a name that has voted with state that
// is gone. It must do so before the log listens: the leader would fill it again.
func (j *jobTracker) avoidLostState(ctx context.Context) error {
	entries, err := os.ReadDir(daemon.LogDir(j.data))
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case len(entries) > 0:
		return j.avoidRemoved(ctx)
	case j.cluster != "":
		return fmt.Errorf("directory %s has been of cluster %s, but its log is gone: %w", j.data, j.cluster, j.lostState())
	case hasFile(j.data, candidateFile):
		return nil
	}
	for _, m := range j.gossip.Members() {
		if m.Role == gossip.JobTracker && m.ID != j.id && (m.Cluster != "" || m.Voter) {
			_, err := j.askVoters(ctx)
			return err
		}
	}
	return nil
}

// removedWait bounds how long a job tracker with state looks for a leader before it
// opens its log. Where there is none, which may be since it is missing, it goes on.
const removedWait = 500 * time.Millisecond

// avoidRemoved refuses to take part with state of a time before this job tracker was
// removed from its cluster, or the cluster recovered without it.
func (j *jobTracker) avoidRemoved(ctx context.Context) error {
	client, err := j.client()
	if err != nil || j.cluster == "" {
		return nil // nobody to ask, or no state yet that could be wrong
	}
	defer client.Close()
	client.Patience = removedWait
	ctx, cancel := context.WithTimeout(ctx, 2*removedWait)
	defer cancel()
	cluster, err := client.Cluster(ctx)
	if err != nil || !cluster.Leads || cluster.ID != j.cluster {
		return nil
	}
	if slices.ContainsFunc(cluster.Voters, func(v web.Voter) bool { return v.ID == j.id }) {
		return nil
	}
	return fmt.Errorf("cluster %s has no job tracker %s any more: it was removed, or the cluster was recovered without it; to have it added anew, empty directory %s and start it without -bootstrap-expect",
		j.cluster, j.id, j.data)
}

// rememberEvery is how often the log is asked for the cluster's id, until it knows.
const rememberEvery = 100 * time.Millisecond

// rememberCluster writes the cluster's id down once the log has it, and tells it.
func (j *jobTracker) rememberCluster(ctx context.Context) error {
	tick := time.NewTicker(rememberEvery)
	defer tick.Stop()
	for {
		status, err := j.server.Cluster(ctx)
		switch {
		case err != nil:
			return nil // it ends
		case status.Cluster == "":
		case j.cluster == "":
			if err := writeDown(j.data, clusterFile, status.Cluster); err != nil {
				return err
			}
			j.log.Info("belongs to a cluster", "cluster", status.Cluster, "staging", status.Staging)
			return j.gossip.Update(func(m gossip.Member) gossip.Member {
				m.Cluster = status.Cluster
				return m
			})
		case j.cluster != status.Cluster:
			return fmt.Errorf("state directory %s is of cluster %s, but its log is of cluster %s", j.data, j.cluster, status.Cluster)
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

// writeDown makes a file in a directory that is there whole, and stays.
func writeDown(dir, name, text string) error {
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

// hasFile says whether a file is there.
func hasFile(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}
