// Package testbed has common code of the benchmarks: flags, parts and tables, alternating
// measurements, clusters of processes, task trackers beside the DataNodes of an HDFS, and slow
// reads as from a disk or a network.
//
// A [Cluster] may be used from several goroutines; a [Bench] too, except AtEnd.
package testbed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/quernmr/quern/bench/schedulers/tasktimes"
	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/integration/hdfs/minicluster"
	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/wire"
)

// StartWait limits the time for a cluster to start, or to change its state.
const StartWait = time.Minute

// Shape describes a cluster.
type Shape struct {
	Programs                          string // directory; default: Bench.Programs
	JobTrackers                       int    // default 1
	Trackers                          int
	Maps, Reduces                     int // of each tracker
	JobTrackerFlags, TaskTrackerFlags []string
	TLS                               bool // otherwise -insecure, which builds of any age have
	HDFS                              *minicluster.Cluster
	// With HDFS, the first tracker runs beside the first DataNode, and so on.
}

// Cluster is a running cluster. Its task trackers are tt1, tt2 and so on.
type Cluster struct {
	*processes.Cluster
	API      *web.Client
	Dir      string
	MapSlots int // of all trackers
	paths    atomic.Int64
}

// Cluster starts a cluster in its own directory, and waits until its trackers have registered.
// The caller closes it.
func (b *Bench) Cluster(s Shape) (*Cluster, error) {
	dir := b.Path(fmt.Sprintf("cluster%d", b.clusters.Add(1)))
	if err := os.RemoveAll(dir); err != nil { // left by an earlier run
		return nil, err
	}
	started, err := processes.Start(b.Ctx, processes.Config{
		Programs: cmp.Or(s.Programs, b.Programs()), Dir: dir, TLS: s.TLS, Insecure: !s.TLS, JobTrackers: max(s.JobTrackers, 1),
		MapSlots: s.Maps, ReduceSlots: s.Reduces, JobTrackerFlags: s.JobTrackerFlags, Env: s.env(),
	})
	if err != nil {
		return nil, err
	}
	c := &Cluster{Cluster: started, Dir: dir, MapSlots: s.Trackers * s.Maps, API: web.NewClient(strings.Split(started.Addrs(), ","))}
	c.API.Secure(c.Dialer(identity.JobTracker))
	for i := range s.Trackers {
		if err := c.join(b.Ctx, i, s); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	err = Await(b.Ctx, StartWait, fmt.Sprintf("%d task trackers", s.Trackers), func() bool {
		return c.Connected(b.Ctx) == s.Trackers
	})
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Close stops the cluster.
func (c *Cluster) Close() error {
	c.API.Close()
	return c.Cluster.Close()
}

// NewPath returns a new path below the cluster's directory.
func (c *Cluster) NewPath(name string) string {
	return filepath.Join(c.Dir, fmt.Sprintf("%s%d", name, c.paths.Add(1)))
}

// Run runs a job with mrsubmit and returns the time.
func (c *Cluster) Run(ctx context.Context, args ...string) (time.Duration, error) {
	return Timed(c.Command(ctx, "mrsubmit", append([]string{"run"}, args...)...))
}

// LastJob returns the job submitted last; for a flow, the job that ends last.
func (c *Cluster) LastJob(ctx context.Context) (*web.Job, error) {
	jobs, err := c.API.Jobs(ctx, core.Query{})
	if err != nil {
		return nil, err
	}
	if len(jobs) == 0 {
		return nil, errors.New("the cluster has no job")
	}
	id, err := wire.ParseJobID(jobs[0].ID)
	if err != nil {
		return nil, err
	}
	return c.API.Job(ctx, id)
}

// env returns additional environment variables of all processes.
func (s *Shape) env() []string {
	if s.HDFS == nil {
		return nil
	}
	return []string{"HADOOP_CONF_DIR=" + s.HDFS.Conf(), "HADOOP_USER_NAME=" + minicluster.Superuser}
}

// join starts one more task tracker.
func (c *Cluster) join(ctx context.Context, i int, s Shape) error {
	id, flags := fmt.Sprintf("tt%d", i+1), slices.Clone(s.TaskTrackerFlags)
	env := append(s.env(), tasktimes.TrackerVariable+"="+id)
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
