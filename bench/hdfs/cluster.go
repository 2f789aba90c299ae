package main

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/dfs/hdfs"
	"github.com/quernmr/quern/jobtracker/web"
	mrruntime "github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

// client makes a file system of a process that is beside no DataNode.
func (b *bench) client() (*hdfs.FS, error) { return testbed.Client(b.hdfs, nil, nil) }

// directory makes a new one in HDFS and gives its URL.
func (b *bench) directory() (string, error) {
	f, err := b.client()
	if err != nil {
		return "", err
	}
	defer f.Close()
	b.made++
	name := fmt.Sprintf("%s/bench/%d", b.hdfs.URL(), b.made)
	return name, f.MkdirAll(name)
}

func (b *bench) remove(name string) error {
	f, err := b.client()
	if err != nil {
		return err
	}
	defer f.Close()
	return f.RemoveAll(name)
}

// trackers starts a job tracker, and a task tracker beside each of the first DataNodes.
func (b *bench) trackers(n, slots int, flags ...string) (*testbed.Cluster, error) {
	b.made++
	return testbed.Start(b.ctx, b.programs(), b.path(fmt.Sprintf("cluster%d", b.made)), testbed.Shape{
		Trackers: n, Maps: slots, Reduces: slots, HDFS: b.hdfs,
		JobTracker: append([]string{"-scheduler", "fifo", "-delay", "none"}, flags...),
	})
}

// submit makes the command that runs a job on a cluster.
func (b *bench) submit(c *testbed.Cluster, program, in, out string, args ...string) *exec.Cmd {
	args = append([]string{"run", c.Program(program), "-input", in, "-output", out}, args...)
	return c.Command(b.ctx, "mrsubmit", args...)
}

// timed runs a command and gives the time of its whole process.
func timed(cmd *exec.Cmd) (time.Duration, error) {
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, said.String())
	}
	return time.Since(began), nil
}

// last is the job that was submitted last.
func (b *bench) last(c *testbed.Cluster) (*web.Job, error) {
	jobs, err := c.API.Jobs(b.ctx)
	if err != nil {
		return nil, err
	}
	if len(jobs) == 0 {
		return nil, errors.New("the cluster knows no job")
	}
	id, err := wire.ParseJobID(jobs[len(jobs)-1].ID)
	if err != nil {
		return nil, err
	}
	return c.API.Job(b.ctx, id)
}

func jobCounter(j *web.Job, name string) int64  { return j.Counters[mrruntime.JobCounters][name] }
func readCounter(j *web.Job, name string) int64 { return j.Counters[mrruntime.ReadCounters][name] }
