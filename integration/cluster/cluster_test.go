// Package cluster_test runs jobs on clusters of real processes with faults: it kills, stops,
// isolates and restarts daemons. The output must equal a simple word count, without leftover
// files.
package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/integration/trial"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/wire"
)

// programs is the directory of the programs, which TestMain builds.
var programs string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "quern-cluster-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	programs = dir
	if err := processes.Build(dir, "examples/wordcount", "examples/sort", "examples/grep", "examples/pagerank", "examples/kmeans", "examples/components", "examples/tera", "examples/pi", "examples/leftjoin",
		"examples/invertedindex", "examples/join", "examples/randomtext", "examples/revenue", "examples/secondarysort", "examples/wordmean", "examples/tpch", "integration/trial/driven",
		trial.Paced, trial.Bad, "integration/embedded/faulty"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// cluster is a running cluster of a test.
type cluster struct {
	*processes.Cluster
	t      *testing.T
	ctx    context.Context
	dir    string
	client *web.Client
}

// start starts three job trackers and three task trackers, unless configured otherwise. Tests run
// in parallel, because they mostly wait. When the test ends, its cleanup stops the daemons and
// fails the test if files or processes are left.
func start(t *testing.T, configure ...func(*processes.Config)) *cluster {
	t.Helper()
	t.Parallel()
	return startWithLimit(t, commandLimit, configure...)
}

// commandLimit limits all commands of a test together. It only ends a test that hangs.
const commandLimit = 5 * trial.Deadline

// startWithLimit starts a cluster. Its commands are killed after the limit. Tests that lose task trackers set
// a shorter lease.
func startWithLimit(t *testing.T, limit time.Duration, configure ...func(*processes.Config)) *cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	cfg := processes.Config{Programs: programs, Dir: t.TempDir(), JobTrackers: 3, TaskTrackers: 3}
	for _, f := range configure {
		f(&cfg)
	}
	defaults := []string{"-lease", "30s"} // a busy machine loses no task tracker
	if cfg.JobTrackers > 1 {
		defaults = append(defaults, "-raft-timeout", "1s") // nor does it often change leaders
	}
	cfg.JobTrackerFlags = append(defaults, cfg.JobTrackerFlags...)
	c := &cluster{t: t, ctx: ctx, dir: cfg.Dir}
	var err error
	c.Cluster, err = processes.Start(ctx, cfg)
	t.Cleanup(cancel)
	if errors.Is(err, processes.ErrUnprivileged) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	c.client = web.NewClient(strings.Split(c.Addrs(), ","))
	c.client.Secure(c.Dialer(identity.JobTracker))
	t.Cleanup(c.stop)
	c.awaitTrackers(cfg.TaskTrackers)
	return c
}

// awaitTrackers waits until n task trackers are ready for work.
func (c *cluster) awaitTrackers(n int) {
	c.t.Helper()
	c.await("task trackers", func() bool { return processes.Connected(c.ctx, c.client) >= n })
}

// stop checks for leftover files and closes the cluster.
func (c *cluster) stop() {
	if c.t.Failed() {
		for _, d := range c.All() {
			c.t.Logf("== %s\n%s", d.ID, d.LastLines())
		}
	} else {
		c.awaitClean()
	}
	if err := c.Close(); err != nil {
		c.t.Error(err)
	}
	if left := trial.Processes(c.dir); len(left) > 0 {
		c.t.Errorf("processes %v of programs in %s are left", left, c.dir)
	}
}

// awaitClean waits until ended jobs have no leftover files.
func (c *cluster) awaitClean() {
	c.t.Helper()
	var left []string
	if !trial.Within(trial.Deadline, func() bool {
		left = append(trial.Processes(c.dir), c.leftovers()...)
		return len(left) == 0
	}) {
		c.t.Errorf("%d left behind, first:\n%s", len(left), strings.Join(left[:min(len(left), 20)], "\n"))
	}
}

// leftovers lists files of jobs in the staging directory and in the data directories of running
// trackers. In the staging directory, clusters, programs and history stay, and the empty directory of sessions.
func (c *cluster) leftovers() []string {
	var list []string
	entries, _ := os.ReadDir(filepath.Join(c.dir, "staging"))
	for _, e := range entries {
		if name := e.Name(); name == wire.StagingSessions {
			sessions, _ := os.ReadDir(filepath.Join(c.dir, "staging", name))
			for _, s := range sessions {
				list = append(list, "staging/sessions/"+s.Name())
			}
		} else if name != wire.StagingClusters && name != wire.StagingPrograms && name != wire.StagingHistory {
			list = append(list, "staging/"+name)
		}
	}
	for _, d := range c.TaskTrackers {
		if !d.Running() {
			continue
		}
		for _, sub := range []string{"jobs", "shared", "run", "programs"} {
			root := filepath.Join(d.Data(), sub)
			filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
				if err == nil && path != root {
					list = append(list, path)
				}
				return nil
			})
		}
	}
	return list
}

// await waits until a condition holds, or fails the test.
func (c *cluster) await(what string, holds func() bool) {
	c.t.Helper()
	trial.Await(c.t, what, holds)
}

// leader waits for a leader and returns it.
func (c *cluster) leader() *processes.Daemon {
	c.t.Helper()
	var leader *processes.Daemon
	c.await("leader", func() bool {
		leader = c.leaderExcept(nil)
		return leader != nil
	})
	return leader
}

// mrsubmit starts a command of mrsubmit.
func (c *cluster) mrsubmit(args ...string) *trial.Run {
	c.t.Helper()
	return c.command("mrsubmit", args...)
}

func (c *cluster) command(program string, args ...string) *trial.Run {
	c.t.Helper()
	return trial.Begin(c.t, c.Command(c.ctx, program, args...))
}

// job is a run of the program paced.
type job struct {
	*trial.Job
	t    *testing.T
	text []byte // of the input

	began time.Time
}

var jobCount atomic.Int64 // for the jobs' names

// paced submits a word count over a number of splits. With -gate in flags, its maps wait until
// the test calls OpenGate.
func (c *cluster) paced(splits int, flags ...string) *job {
	c.t.Helper()
	dir := filepath.Join(c.dir, fmt.Sprintf("job%d", jobCount.Add(1)))
	traces, in, out := dir+"/traces", dir+"/in", dir+"/out"
	j := &job{t: c.t, text: trial.Lines(splits), began: time.Now()}
	if err := errors.Join(os.MkdirAll(traces, 0o777), os.WriteFile(in, j.text, 0o666)); err != nil {
		c.t.Fatal(err)
	}
	run := c.mrsubmit(slices.Concat([]string{"run"}, trial.LinePerSplit(), []string{c.Program("paced")}, trial.Flags(in, out, traces, flags...))...)
	j.Job = trial.NewJob(run, out, traces)
	return j
}

// checkSuccess waits for the job's success and compares its output.
func (j *job) checkSuccess() {
	j.t.Helper()
	j.Succeed()
	checkCounts(j.t, j.Out, j.text)
}

// readOutput joins the part files of an output directory.
func readOutput(t *testing.T, dir string) []byte {
	t.Helper()
	return trial.JoinParts(trial.ReadParts(t, local.FS{}, dir))
}

// checkCounts compares a word count. It sorts all lines, because only each part file is sorted.
func checkCounts(t *testing.T, out string, text []byte) {
	t.Helper()
	trial.CheckEqual(t, out, trial.SortLines(readOutput(t, out)), trial.SortLines(trial.CountWords(text)))
}
