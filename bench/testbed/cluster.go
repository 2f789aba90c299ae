// Package testbed is what benchmarks measure on: clusters of processes, task trackers
// beside the DataNodes of an HDFS, reads that take as long as they would from a disk
// and over a network. It also prints what they have measured.
//
// A [Cluster] may be used from several goroutines.
package testbed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/integration/hdfs/minicluster"
	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/jobtracker/web"
)

// StartWait bounds how long trackers may take to register.
const StartWait = time.Minute

// TrackerVariable is in the environment of tasks: which of the trackers they run on.
const TrackerVariable = "BENCH_TRACKER"

// Shape is what a benchmark wants of a cluster.
type Shape struct {
	Trackers           int
	Maps, Reduces      int      // slots of each
	JobTracker, Worker []string // flags
	HDFS               *minicluster.Cluster
	// With HDFS, the first tracker runs beside the first DataNode, and so on.
}

// Cluster is one job tracker and some task trackers, tt1, tt2 and so on.
type Cluster struct {
	*processes.Cluster
	API      *web.Client
	Dir      string
	MapSlots int // of all trackers
}

// Start starts a cluster, in a directory of its own, of programs that [processes.Build]
// has made, and waits until its trackers can be given work.
func Start(ctx context.Context, programs, dir string, s Shape) (*Cluster, error) {
	started, err := processes.Start(ctx, processes.Config{
		Programs: programs, Dir: dir,
		JobTrackers: 1, MapSlots: s.Maps, ReduceSlots: s.Reduces, JobTrackerFlags: s.JobTracker, Env: s.env(),
	})
	if err != nil {
		return nil, err
	}
	c := &Cluster{Cluster: started, Dir: dir, MapSlots: s.Trackers * s.Maps, API: web.NewClient(strings.Split(started.Addrs(), ","))}
	for i := range s.Trackers {
		if err := c.join(ctx, i, s); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	if err := c.connected(ctx, s.Trackers); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Close ends it.
func (c *Cluster) Close() error {
	c.API.Close()
	return c.Cluster.Close()
}

// env is what all processes are told.
func (s *Shape) env() []string {
	if s.HDFS == nil {
		return nil
	}
	return []string{"HADOOP_CONF_DIR=" + s.HDFS.Conf(), "HADOOP_USER_NAME=" + minicluster.Superuser}
}

// join starts one more task tracker.
func (c *Cluster) join(ctx context.Context, i int, s Shape) error {
	id, flags := fmt.Sprintf("tt%d", i+1), slices.Clone(s.Worker)
	env := append(s.env(), TrackerVariable+"="+id)
	if s.HDFS != nil {
		node := s.HDFS.DataNodes[i]
		conf, err := s.HDFS.ConfBeside(node)
		if err != nil {
			return err
		}
		flags = append(flags, "-host", node.ID)
		env = append(env, "HADOOP_CONF_DIR="+conf)
	}
	d, err := c.AddTaskTracker(id, flags...)
	if err != nil {
		return err
	}
	d.Env = env
	if err := d.Start(); err != nil {
		return err
	}
	return d.Ready(ctx)
}

// connected waits until so many task trackers can be given work.
func (c *Cluster) connected(ctx context.Context, n int) error {
	return Await(ctx, StartWait, fmt.Sprintf("%d task trackers", n), func() bool {
		ready := 0
		if s, err := c.API.Cluster(ctx); err == nil {
			for _, t := range s.Trackers {
				if t.Connected {
					ready++
				}
			}
		}
		return ready == n
	})
}

// Await polls what tells nobody when it changes.
func Await(ctx context.Context, limit time.Duration, what string, holds func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("no %s within %v: %w", what, limit, ctx.Err())
		}
	}
	return nil
}
