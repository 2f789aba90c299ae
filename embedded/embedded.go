//go:build unix

// Package embedded runs a cluster in one process, for a laptop, for tests and for the
// debugger. It runs the loops of the job tracker and the task trackers over an in-memory
// log. As in a real cluster, facts and messages are encoded, and map output passes through
// segment files. Tasks run in worker processes of the job's binary, or in this process if
// [Config.Load] is set.
//
// All files are below one directory, which [Cluster.Close] removes. After a crash the next
// [Start] removes it.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	goruntime "runtime"
	"sync"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/builtin"
	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/jobtracker"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/tasktracker"
	"github.com/quernmr/quern/tasktracker/attemptlog"
	trackercore "github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// Config describes a cluster. The zero value has one task tracker, with a map slot and a
// reduce slot for each core.
type Config struct {
	Slots    int          // map slots and reduce slots of each tracker; 0: one for each core
	Trackers int          // number of task trackers, which fetch from each other over loopback; 0: one
	Dir      string       // parent of the cluster's directory; empty: the system's temporary directory
	FS       dfs.FS       // nil: the built-in file systems
	Load     runtime.Load // not nil: returns the program that runs attempts in this process
	Logger   *slog.Logger // nil: silent
	History  bool         // keep the attempts of ended jobs, and their logs, until Close
	Keep     bool         // Close removes no files, and prints where they are
	Output   bool         // print what attempts print
	Notes    io.Writer    // for Keep and Output; nil: standard error
}

// Cluster is a running cluster.
type Cluster struct {
	*jobtracker.Server
	fs     dfs.FS
	log    *slog.Logger
	dir    *directory
	keep   bool
	notes  io.Writer
	prints *prints // nil: what attempts print is not shown
	cancel context.CancelFunc
	loops  sync.WaitGroup

	mu  sync.Mutex
	err error // errors of loops, joined
}

// Start starts a cluster. It runs until Close.
func Start(cfg Config) (*Cluster, error) {
	cfg = cfg.withDefaults()
	dir, err := openDirectory(cfg.Dir)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	volatile := dfs.Volatile(cfg.FS) // staged files need not outlive the cluster
	c := &Cluster{fs: volatile, log: cfg.Logger, dir: dir, cancel: cancel, keep: cfg.Keep, notes: cfg.Notes}
	if cfg.Output {
		c.prints = startPrints(dir.path, cfg.Notes)
	}
	c.Server = jobtracker.New(jobtracker.Config{
		Log:     jobtracker.NewMemoryLog(),
		FS:      volatile,
		Staging: c.Staging(),
		Logger:  cfg.Logger,
		History: cfg.History,
	})
	c.startLoop(func() error { return c.Server.Run(ctx) })
	for i := range cfg.Trackers {
		tracker, err := tasktracker.New(c.trackerConfig(cfg, i))
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.startLoop(func() error { return tracker.Run(ctx, c.dial) })
	}
	return c, nil
}

func (cfg Config) withDefaults() Config {
	if cfg.Slots == 0 {
		cfg.Slots = goruntime.NumCPU()
	}
	cfg.Trackers = max(cfg.Trackers, 1)
	if cfg.FS == nil {
		cfg.FS = builtin.FileSystems()
	}
	if cfg.Notes == nil {
		cfg.Notes = os.Stderr
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return cfg
}

func (c *Cluster) trackerConfig(cfg Config, i int) tasktracker.Config {
	t := tasktracker.Config{
		ID:          fmt.Sprintf("%s%d", trackerDir, i+1),
		Host:        "localhost",
		Service:     tasktracker.Service{Listen: "127.0.0.1:0"},
		MapSlots:    cfg.Slots,
		ReduceSlots: cfg.Slots,
		Dir:         filepath.Join(c.dir.path, fmt.Sprintf("%s%d", trackerDir, i+1)),
		FS:          cfg.FS,
		Temporary:   true,
		KeepLogs:    cfg.History || cfg.Keep || cfg.Output,
		KeepFiles:   cfg.Keep,
		Embedded:    true,
		Logger:      cfg.Logger,
	}
	if cfg.Load != nil {
		t.Workers = &inProcess{load: cfg.Load, fs: cfg.FS}
	}
	return t
}

// dial connects a tracker to the job tracker over an in-memory stream.
func (c *Cluster) dial(ctx context.Context, _ string) (*wire.Conn, error) {
	trackerEnd, leaderEnd := wire.Pipe()
	c.loops.Go(func() {
		if err := c.Attach(leaderEnd, ""); err != nil && ctx.Err() == nil {
			c.log.Warn("task tracker stream ended", "error", err)
		}
	})
	return trackerEnd, nil
}

// OpenLog opens a log of an attempt, "stdout" or "stderr", that ran on a task tracker. Close it.
func (c *Cluster) OpenLog(tracker string, id wire.AttemptID, stream string) (*attemptlog.Text, error) {
	return attemptlog.Open(filepath.Join(trackercore.LogPath(filepath.Join(c.dir.path, tracker), id), stream))
}

// startLoop runs a loop until the cluster ends. An error ends the cluster.
func (c *Cluster) startLoop(run func() error) {
	c.loops.Go(func() {
		if err := run(); err != nil && !errors.Is(err, context.Canceled) {
			c.mu.Lock()
			c.err = errors.Join(c.err, err)
			c.mu.Unlock()
			c.cancel()
		}
	})
}

// FS returns the cluster's file system.
func (c *Cluster) FS() dfs.FS { return c.fs }

// Staging returns the URL below which clients make their staging directories.
func (c *Cluster) Staging() string { return "file://" + filepath.Join(c.dir.path, stagingDir) }

// Submit submits jobs and returns their ids. It checks no permissions, because callers are
// in this process.
func (c *Cluster) Submit(ctx context.Context, sub wire.Submission) ([]wire.JobID, error) {
	return c.Server.Submit(ctx, core.Caller{}, sub)
}

// Find returns the ids of the jobs that were submitted with a key.
func (c *Cluster) Find(ctx context.Context, key string) ([]wire.JobID, error) {
	return c.Server.Find(ctx, core.Caller{}, key)
}

// Kill stops a job.
func (c *Cluster) Kill(ctx context.Context, job wire.JobID, reason string) error {
	return c.Server.Kill(ctx, core.Caller{}, job, reason)
}

// Watch yields the states of jobs until all have ended. If the cluster fails before, Watch
// yields the cluster's error.
func (c *Cluster) Watch(ctx context.Context, jobs []wire.JobID) iter.Seq2[[]wire.JobStatus, error] {
	return func(yield func([]wire.JobStatus, error) bool) {
		for statuses, err := range c.Server.Watch(ctx, jobs) {
			if err != nil {
				c.mu.Lock()
				err = errors.Join(c.err, err)
				c.mu.Unlock()
			}
			if !yield(statuses, err) {
				return
			}
		}
	}
}

// KeepProgram links or copies the submission's executable into the cluster's directory:
// later workers must run the same program, even if its path names another file by then.
func (c *Cluster) KeepProgram(sub *wire.Submission) error {
	path, err := local.Path(sub.Program.Path)
	if err != nil {
		return fmt.Errorf("keep the program: %w", err)
	}
	dir, err := os.MkdirTemp(c.dir.path, programDir)
	if err != nil {
		return fmt.Errorf("keep the program: %w", err)
	}
	kept := filepath.Join(dir, filepath.Base(path))
	if os.Link(path, kept) != nil && linkProcess(path, kept) != nil { // another file system, or no permission
		if err := copyProgram(path, kept); err != nil {
			return fmt.Errorf("keep the program: %w", err)
		}
	}
	sub.Program.Path = "file://" + kept
	return nil
}

// linkProcess makes a symbolic link to this process's executable, if that is the file at a
// path. Linux follows it to the same file as long as the process lives, even if the file
// has been removed or replaced. A copy takes a quarter of the processor time of a small job.
func linkProcess(path, link string) error {
	exe := fmt.Sprintf("/proc/%d/exe", os.Getpid())
	running, err := os.Stat(exe)
	if err != nil {
		return err
	}
	named, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !os.SameFile(running, named) {
		return fmt.Errorf("this process does not run %s", path)
	}
	return os.Symlink(exe, link)
}

func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o700)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// Close stops the cluster, kills all workers and removes its directory, unless it is kept.
func (c *Cluster) Close() error {
	c.cancel()
	c.loops.Wait()
	if c.prints != nil {
		c.prints.stop()
	}
	if c.keep {
		err := c.dir.keep()
		fmt.Fprintf(c.notes, "the files of this run are kept in %s: logs in %s, working directories in %s; remove them yourself\n", c.dir.path,
			filepath.Join(trackerDir+"*", trackercore.LogsDir), trackerDir+"*")
		return errors.Join(c.err, err)
	}
	return errors.Join(c.err, c.dir.remove())
}
