package tasktracker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/tasktracker/account"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/tasktracker/isolation"
	"github.com/quernmr/quern/tasktracker/process"
	"github.com/quernmr/quern/tasktracker/sidedirs"
	"github.com/quernmr/quern/tasktracker/workers"
	"github.com/quernmr/quern/wire"
)

// Isolation says how jobs are isolated, see package isolation.
type Isolation struct {
	Level  isolation.Level // empty: Namespace if it works, else None
	Users  account.Users   // of the level User
	Shown  []string        // more paths that jobs may read
	Hidden []string        // paths that jobs may not read, in addition to the tracker's directories

	Outputs  []string // directories for outputs; empty: see isolation.RootOutputs
	Replaced []string // of these, see isolation.Config
}

// isolator is a workers.Starter that can isolate its workers.
type isolator interface {
	Isolate(cfg isolation.Config, probe *account.Account) error
}

var _ isolator = (*process.Starter)(nil)

// checkUsers refuses the level User if the process is not root's, or if the map of accounts is wrong.
func (i *Isolation) checkUsers(uid int) error {
	if uid != 0 {
		return fmt.Errorf("run jobs as their owners (-isolation user): the task tracker must be root's, and has user id %d", uid)
	}
	_, err := i.Users.Read()
	return err
}

// isolate isolates workers as configured. It returns the level, and why it is None although the configuration does
// not say so.
func (cfg *Config) isolate() (level isolation.Level, reason string, err error) {
	starter, ok := cfg.Workers.(isolator)
	var probe *account.Account
	if want := cfg.Isolation.Level; (want == isolation.Namespace || want == isolation.User) && (!ok || cfg.Embedded) {
		return "", "", fmt.Errorf("this task tracker cannot isolate jobs (-isolation %s)", want)
	}
	if cfg.Isolation.Level == isolation.User {
		if err := cfg.Isolation.checkUsers(os.Geteuid()); err != nil {
			return "", "", err
		}
		id := cfg.Isolation.Users.Min
		probe = &account.Account{Name: "probe", UID: id, GID: id}
	}
	if !ok || cfg.Embedded || cfg.Isolation.Level == isolation.None {
		return isolation.None, "", nil
	}
	home, _ := os.UserHomeDir() // without one, there is nothing to hide
	seen := isolation.Config{
		Hidden: slices.Concat([]string{cfg.Dir}, cfg.Disks, cfg.Isolation.Hidden), Shown: cfg.Isolation.Shown, Home: home,
		Replaced: cfg.Isolation.Replaced, Kept: cfg.programDirs(), Outputs: cfg.Isolation.Outputs,
	}
	if seen.Outputs == nil && probe == nil && os.Geteuid() == 0 {
		seen.Outputs = isolation.RootOutputs
	}
	// Directories of other daemons, and private files. A worker does not look for them in what all workers see.
	settings := []string{"/etc", "/opt"}
	seen.Hidden = append(seen.Hidden, isolation.Secrets(slices.Concat(settings, seen.Shown), shownEntries)...)
	if probe == nil { // else the rights of the owner's account count
		seen.Hidden = append(seen.Hidden, isolation.Private(settings, seen.Shown, shownEntries)...)
	}
	if err := seen.CheckReplaced(); err != nil {
		return "", "", fmt.Errorf("isolate jobs: %w", err)
	}
	err = starter.Isolate(seen, probe)
	switch {
	case err == nil && probe != nil:
		return isolation.User, "", nil
	case probe != nil:
		return "", "", fmt.Errorf("run jobs as their owners: %w", err)
	case err == nil:
		if os.Geteuid() == 0 {
			cfg.Logger.Warn("jobs run as root, in namespaces: they can read all files that their submissions name. Give the task tracker an account of its own, or use -isolation user")
		}
		return isolation.Namespace, "", nil
	case cfg.Isolation.Level == isolation.Namespace:
		return "", "", fmt.Errorf("isolate jobs in namespaces: %w", err)
	}
	cfg.Logger.Warn("jobs are not isolated: they can read what this task tracker can, its keys included", "reason", err)
	return isolation.None, err.Error(), nil
}

// shownEntries limits the search for what is hidden in directories that all workers see.
const shownEntries = 50_000

// programDirs returns the directories with the programs that this process executes: its own, in which those of the other
// daemons usually are, and the health script.
func (cfg *Config) programDirs() []string {
	var dirs []string
	if exe, err := os.Executable(); err == nil {
		dirs = append(dirs, filepath.Dir(exe))
	}
	if script := cfg.Health.Script; script != "" {
		if path, err := filepath.Abs(script); err == nil {
			dirs = append(dirs, filepath.Dir(path))
		}
	}
	return dirs
}

// startWorker starts a worker. The directories of all its jobs exist before: an isolated worker sees no
// later ones.
func (l *loop) startWorker(c core.StartWorker) {
	sub, disks := l.programs.Submission(c.Staging, c.Root), l.goodDisks()
	l.workers.Start(c.Worker, c.Dir, func() (*workers.Program, error) {
		owner, err := l.giveTo(c)
		if err != nil {
			return nil, err
		}
		staged, exe, err := l.prepare(c, sub)
		if err != nil {
			return nil, err
		}
		p := &workers.Program{Submission: staged, Executable: exe, Account: owner, Shared: l.shareSideFiles(c, staged, owner, disks)}
		if l.isolation == isolation.None {
			return p, nil
		}
		if p.Results, err = resultsFor(owner, staged, c); err != nil {
			return nil, errors.Join(err, closeExecutable(exe))
		}
		for i := range staged.Plan.Jobs {
			job := wire.JobID{Start: c.First.Start, N: c.First.N + i}
			for _, disk := range l.jobDisks() {
				p.Jobs = append(p.Jobs, core.JobPath(disk, job))
			}
		}
		made := slices.Clone(p.Jobs)
		l.post(func() { l.jobDirs[c.Staging] = made })
		for _, s := range p.Shared {
			p.Jobs = append(p.Jobs, s.Dir)
		}
		return p, nil
	})
}

// giveTo returns the account of a worker, and gives it the directories of the worker and of the staged submission.
// Without the level User it returns nil.
func (l *loop) giveTo(c core.StartWorker) (*account.Account, error) {
	if l.isolation != isolation.User {
		return nil, nil
	}
	users := l.cfg.Isolation.Users
	users.Start = process.StartChild
	a, err := users.Of(c.Owner)
	if err != nil {
		return nil, fmt.Errorf("task tracker %s: %w", l.cfg.ID, err)
	}
	if err := a.MakeDir(c.Dir); err != nil {
		return nil, fmt.Errorf("make the worker's directory: %w", err)
	}
	staging, err := local.Path(c.Staging)
	if err != nil {
		return a, nil // in another file system
	}
	if dfs.Dir(c.Staging) != c.Root { // a job could put links between
		return nil, fmt.Errorf("staging directory %s is not directly in %s", c.Staging, c.Root)
	}
	if err := a.Give(staging); err != nil {
		return nil, fmt.Errorf("staging directory: %w", err)
	}
	return a, nil
}

// resultsFor returns the directory with the results of the driver that made a submission, in which the submission's jobs
// read and write, and gives it to their account. It returns "" if there is none, or if it is in another file system.
func resultsFor(a *account.Account, sub *wire.Submission, c core.StartWorker) (string, error) {
	if sub.Program.Step == nil {
		return "", nil
	}
	results := dfs.Dir(sub.Program.Step.Result)
	session := dfs.Dir(results)
	root, err := local.Path(c.Root)
	if err != nil || dfs.Dir(session) != dfs.Join(c.Root, wire.StagingSessions) || dfs.Base(results) != wire.SessionResults {
		return "", nil // an output like others
	}
	name := dfs.Base(session)
	if of := wire.SessionOwner(name); of != c.Owner && (of != "" || a != nil) {
		return "", fmt.Errorf("session %s is not one of %q: run mrsubmit with the certificate of the jobs' owner", session, c.Owner)
	}
	dir := filepath.Join(wire.StagingSessions, name, wire.SessionResults)
	if err := a.GiveBelow(root, dir); err != nil {
		return "", fmt.Errorf("results of the driver: %w", err)
	}
	return filepath.Join(root, dir), nil
}

// closeExecutable closes the executable of a worker that does not start; nil: it runs in place.
func closeExecutable(exe *os.File) error {
	if exe == nil {
		return nil
	}
	return exe.Close()
}

// goodDisks returns the disks that have not failed.
func (l *loop) goodDisks() []string {
	return slices.DeleteFunc(slices.Clone(l.cfg.Disks), func(disk string) bool { return l.badDisks[disk] != "" })
}

// shareSideFiles returns where the jobs of a submission share copies of their archives and directories with other jobs
// of their owner.
func (l *loop) shareSideFiles(c core.StartWorker, sub *wire.Submission, a *account.Account, disks []string) (all []workers.Shared) {
	holder := c.Owner
	if a != nil {
		holder = fmt.Sprintf("%s %d", c.Owner, a.UID)
	}
	for i := range sub.Plan.Jobs {
		for name, url := range sub.Plan.Jobs[i].Files {
			base := strings.TrimSuffix(name, "/")
			if !runtime.IsDirectory(name) || base != filepath.Base(base) || !filepath.IsLocal(base) {
				continue // the attempt refuses a wrong name
			}
			if dir := l.sideDirs.Use(c.Staging, sidedirs.Source{Holder: holder, URL: url}, disks, time.Now()); dir != "" {
				all = append(all, workers.Shared{Job: i, Name: base, Dir: dir})
			}
		}
	}
	return all
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
