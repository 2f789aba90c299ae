package tasktracker

import (
	"fmt"
	"os"
	"slices"

	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/tasktracker/isolation"
	"github.com/quernmr/quern/tasktracker/workers"
	"github.com/quernmr/quern/wire"
)

// Isolation says how jobs are isolated, see package isolation.
type Isolation struct {
	Level  isolation.Level // empty: Namespace if it works, else None
	Shown  []string        // more paths that jobs may read
	Hidden []string        // paths that jobs may not read, in addition to the tracker's directories

	Replaced []string // of these, see isolation.Config
}

// isolator is a workers.Starter that can isolate its workers.
type isolator interface{ Isolate(isolation.Config) error }

// isolate isolates workers as configured. It returns the level, and why it is None although the configuration does
// not say so.
func (cfg *Config) isolate() (level isolation.Level, reason string, err error) {
	starter, ok := cfg.Workers.(isolator)
	if !ok || cfg.Embedded || cfg.Isolation.Level == isolation.None {
		return isolation.None, "", nil
	}
	home, _ := os.UserHomeDir() // without one, there is nothing to hide
	err = starter.Isolate(isolation.Config{
		Hidden: slices.Concat([]string{cfg.Dir}, cfg.Disks, cfg.Isolation.Hidden), Shown: cfg.Isolation.Shown, Home: home,
		Replaced: cfg.Isolation.Replaced,
	})
	switch {
	case err == nil:
		return isolation.Namespace, "", nil
	case cfg.Isolation.Level == isolation.Namespace:
		return "", "", fmt.Errorf("isolate jobs in namespaces: %w", err)
	}
	cfg.Logger.Warn("jobs are not isolated: they can read what this task tracker can, its keys included", "reason", err)
	return isolation.None, err.Error(), nil
}

// startWorker starts a worker. The directories of all its jobs exist before: an isolated worker sees no
// later ones.
func (l *loop) startWorker(c core.StartWorker) {
	sub := l.programs.Submission(c.Staging, c.Root)
	l.workers.Start(c.Worker, c.Dir, func() (*workers.Program, error) {
		staged, exe, err := l.prepare(c, sub)
		if err != nil {
			return nil, err
		}
		p := &workers.Program{Submission: staged, Executable: exe}
		if l.isolation != isolation.Namespace {
			return p, nil
		}
		for i := range staged.Plan.Jobs {
			job := wire.JobID{Start: c.First.Start, N: c.First.N + i}
			for _, disk := range l.jobDisks() {
				p.Jobs = append(p.Jobs, core.JobPath(disk, job))
			}
		}
		l.post(func() { l.jobDirs[c.Staging] = p.Jobs })
		return p, nil
	})
}

// removeUnusedJobs removes the directories of jobs that had nothing here.
func (l *loop) removeUnusedJobs(staging string) {
	dirs := l.jobDirs[staging]
	if len(dirs) == 0 {
		return
	}
	delete(l.jobDirs, staging)
	l.diskWork.Put(func() {
		for _, dir := range dirs {
			_ = os.Remove(dir) // fails if it is not empty, or was removed with its job
		}
	})
}

// jobDisks returns the directories with jobs: all disks, and the tracker's own, for service attempts.
func (l *loop) jobDisks() []string {
	if slices.Contains(l.cfg.Disks, l.cfg.Dir) {
		return l.cfg.Disks
	}
	return append(slices.Clone(l.cfg.Disks), l.cfg.Dir)
}
