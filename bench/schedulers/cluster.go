package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/quernmr/quern/integration/hdfs/minicluster"
	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/jobtracker/web"
)

// startWait bounds how long trackers may take to register.
const startWait = time.Minute

// trackerVariable tells tasks which of the trackers they run on: see the program.
const trackerVariable = "BENCH_TRACKER"

// cluster is one job tracker and some task trackers.
type cluster struct {
	*processes.Cluster
	api  *web.Client
	dir  string
	runs atomic.Int64

	mapSlots int
}

// shape is what a section wants of its trackers.
type shape struct {
	trackers           int
	maps, reduces      int // slots of each
	jobTracker, worker []string
	hdfs               *minicluster.Cluster // a DataNode beside each tracker; nil: none
}

func (b *bench) cluster(s shape) (*cluster, error) {
	dir := b.path(fmt.Sprintf("cluster%d", b.clusters.Add(1)))
	started, err := processes.Start(b.ctx, processes.Config{
		Programs: b.programs(), Dir: dir,
		JobTrackers: 1, MapSlots: s.maps, ReduceSlots: s.reduces, JobTrackerFlags: s.jobTracker, Env: s.env(),
	})
	if err != nil {
		return nil, err
	}
	c := &cluster{Cluster: started, dir: dir, mapSlots: s.trackers * s.maps, api: web.NewClient(strings.Split(started.Addrs(), ","))}
	for i := range s.trackers {
		if err := c.join(b.ctx, i, s); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	if err := c.connected(b.ctx, s.trackers); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// env is what all processes are told.
func (s *shape) env() []string {
	if s.hdfs == nil {
		return nil
	}
	return []string{"HADOOP_CONF_DIR=" + s.hdfs.Conf(), "HADOOP_USER_NAME=" + minicluster.Superuser}
}

// join starts one more task tracker.
func (c *cluster) join(ctx context.Context, i int, s shape) error {
	id, flags := fmt.Sprintf("tt%d", i+1), slices.Clone(s.worker)
	env := append(s.env(), trackerVariable+"="+id)
	if s.hdfs != nil {
		node := s.hdfs.DataNodes[i]
		conf, err := s.hdfs.ConfBeside(node)
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

func (c *cluster) close() error {
	c.api.Close()
	return c.Close()
}

// connected waits until so many task trackers can be given work.
func (c *cluster) connected(ctx context.Context, n int) error {
	return await(ctx, startWait, fmt.Sprintf("%d task trackers", n), func() bool {
		ready := 0
		if s, err := c.api.Cluster(ctx); err == nil {
			for _, t := range s.Trackers {
				if t.Connected {
					ready++
				}
			}
		}
		return ready == n
	})
}

// await polls what tells nobody when it changes.
func await(ctx context.Context, limit time.Duration, what string, holds func() bool) error {
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

// processor is the seconds of processor time that tasks and daemons have taken.
func (c *cluster) processor() (tasks [2]float64) {
	for _, d := range c.All() {
		if !d.Running() {
			continue
		}
		own, ended := processorOf(d.Pid())
		tasks[0] += ended
		tasks[1] += own
		for _, child := range children(d.Pid()) {
			live, _ := processorOf(child)
			tasks[0] += live
		}
	}
	return tasks
}

// processorOf is a process's own time and that of children it has waited for. One that has
// gone meanwhile took none.
func processorOf(pid int) (own, ended float64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0
	}
	const ticks = 100 // of the kernel's interface, a second
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	seconds := func(i int) float64 {
		n, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return 0
		}
		return n / ticks
	}
	return seconds(11) + seconds(12), seconds(13) + seconds(14)
}

func children(pid int) (pids []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is well-formed
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue
		}
		for field := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}
