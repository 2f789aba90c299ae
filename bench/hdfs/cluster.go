package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/quernmr/quern/dfs/hdfs"
	"github.com/quernmr/quern/integration/hdfs/minicluster"
	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/jobtracker/web"
	mrruntime "github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

// startWait bounds how long trackers may take to register.
const startWait = time.Minute

// client makes a file system with properties of its own, of a process beside a
// DataNode or, at nil, of one that is beside none.
func (b *bench) client(at *minicluster.Daemon, properties map[string]string) (*hdfs.FS, error) {
	conf, err := hdfs.ReadConf(b.hdfs.Conf())
	if err != nil {
		return nil, err
	}
	maps.Copy(conf, properties)
	if at != nil {
		conf["dfs.client.local.interfaces"] = at.IP
	}
	return hdfs.New(hdfs.Options{Conf: conf, User: minicluster.Superuser}), nil
}

// put copies a local file to HDFS, from beside a DataNode.
func (b *bench) put(local, name string, at *minicluster.Daemon, properties map[string]string) (err error) {
	f, err := b.client(at, properties)
	if err != nil {
		return err
	}
	defer f.Close()
	in, err := os.Open(local)
	if err != nil {
		return err
	}
	defer in.Close()
	w, err := f.Create(name)
	if err != nil {
		return err
	}
	if _, err := io.Copy(w, in); err != nil {
		return errors.Join(err, w.Abort())
	}
	return w.Close()
}

// directory makes a new one in HDFS and gives its URL.
func (b *bench) directory() (string, error) {
	f, err := b.client(nil, nil)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b.made++
	name := fmt.Sprintf("%s/bench/%d", b.hdfs.URL(), b.made)
	return name, f.MkdirAll(name)
}

func (b *bench) remove(name string) error {
	f, err := b.client(nil, nil)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.RemoveAll(name)
}

// trackers starts a job tracker, and a task tracker beside each of some DataNodes.
func (b *bench) trackers(beside []*minicluster.Daemon, slots int, flags ...string) (*processes.Cluster, error) {
	b.made++
	c, err := processes.Start(b.ctx, processes.Config{
		Programs: b.programs(), Dir: b.path(fmt.Sprintf("cluster%d", b.made)),
		JobTrackers: 1, MapSlots: slots, ReduceSlots: slots,
		JobTrackerFlags: append([]string{"-scheduler", "fifo", "-delay", "none"}, flags...),
		Env:             []string{"HADOOP_CONF_DIR=" + b.hdfs.Conf(), "HADOOP_USER_NAME=" + minicluster.Superuser},
	})
	if err != nil {
		return nil, err
	}
	for _, node := range beside {
		if err := b.tracker(c, node); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	if err := b.connected(c, len(beside)); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (b *bench) tracker(c *processes.Cluster, node *minicluster.Daemon) error {
	conf, err := b.hdfs.ConfBeside(node)
	if err != nil {
		return err
	}
	d, err := c.AddTaskTracker("tracker-"+node.ID, "-host", node.ID)
	if err != nil {
		return err
	}
	d.Env = append(d.Env[:len(d.Env):len(d.Env)], "HADOOP_CONF_DIR="+conf)
	if err := d.Start(); err != nil {
		return err
	}
	return d.Ready(b.ctx)
}

// connected waits until so many task trackers can be given work.
func (b *bench) connected(c *processes.Cluster, n int) error {
	ctx, cancel := context.WithTimeout(b.ctx, startWait)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	asked := web.NewClient(strings.Split(c.Addrs(), ","))
	defer asked.Close()
	for {
		ready := 0
		if s, err := asked.Cluster(ctx); err == nil {
			for _, t := range s.Trackers {
				if t.Connected {
					ready++
				}
			}
		}
		if ready == n {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d task trackers are connected: %w", ready, n, ctx.Err())
		}
	}
}

// submit makes the command that runs a job on a cluster.
func (b *bench) submit(c *processes.Cluster, program, in, out string, args ...string) *exec.Cmd {
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
func (b *bench) last(c *processes.Cluster) (*web.Job, error) {
	asked := web.NewClient(strings.Split(c.Addrs(), ","))
	defer asked.Close()
	jobs, err := asked.Jobs(b.ctx)
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
	return asked.Job(b.ctx, id)
}

func jobCounter(j *web.Job, name string) int64  { return j.Counters[mrruntime.JobCounters][name] }
func readCounter(j *web.Job, name string) int64 { return j.Counters[mrruntime.ReadCounters][name] }
