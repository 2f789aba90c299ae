package process

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quernmr/quern/tasktracker/account"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/tasktracker/isolation"
	"github.com/quernmr/quern/tasktracker/workers"
)

// Isolate isolates all workers from now on, if a probe succeeds. Otherwise it returns what prevents it. Call it
// before the first Start. Unless the account of the probe is nil, each worker gets the account of its program.
func (p *Starter) Isolate(cfg isolation.Config, probe *account.Account) error {
	if err := cfg.Probe(filepath.Join(p.cfg.Dir, core.RunDir, "probe"), probe); err != nil {
		return err
	}
	p.isolated = &cfg
	return nil
}

// isolate returns the environment of a worker, and a pipe with its plan; nil: it is not isolated.
func (p *Starter) isolate(program *workers.Program, dir string) (env []string, plan *os.File, err error) {
	env = p.cfg.workerEnvironment(os.Environ(), program.Submission.Owner, dir)
	switch {
	case p.isolated == nil:
		return env, nil, nil
	case program.Executable == nil:
		return nil, nil, fmt.Errorf("isolate worker: program %s has no open copy", program.Submission.Program.Path)
	}
	env = slices.DeleteFunc(env, func(v string) bool { return strings.HasPrefix(v, "TMPDIR=") }) // it has its own /tmp
	if program.Account != nil {
		env = accountEnvironment(env, program.Account)
	}
	steps, err := p.isolated.Plan(&isolation.Worker{
		Submission: program.Submission, Dir: dir, Jobs: program.Jobs, Results: program.Results, Env: env, Account: program.Account,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("isolate worker: %w", err)
	}
	plan, err = isolation.Pipe(steps)
	return env, plan, err
}

// planned is what Plan finds out about a worker.
type planned struct {
	env  []string
	plan *os.File // nil: it is not isolated
}

// Plan looks at the files that the submission names. Any goroutine may call it, and only Start after it.
func (p *Starter) Plan(program *workers.Program, dir string) (release func(), err error) {
	env, plan, err := p.isolate(program, dir)
	if err != nil {
		return nil, err
	}
	program.Planned = planned{env, plan}
	return func() {
		program.Planned = nil
		if plan != nil {
			plan.Close()
		}
	}, nil
}

// noHome is the home directory of an account without one: a private directory of the worker.
const noHome = "/tmp"

// accountEnvironment changes the environment of a worker to the one of its account. Its user in HDFS stays the one
// that it would have without an account.
func accountEnvironment(env []string, a *account.Account) []string {
	isHDFSUser := func(v string) bool { return strings.HasPrefix(v, hdfsUser+"=") }
	if self, err := user.Current(); err == nil && !slices.ContainsFunc(env, isHDFSUser) {
		env = append(env, hdfsUser+"="+self.Username)
	}
	own := map[string]string{"HOME": cmp.Or(a.Home, noHome), "USER": a.Name, "LOGNAME": a.Name}
	env = slices.DeleteFunc(env, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return own[name] != "" || name == "SHELL"
	})
	for _, name := range slices.Sorted(maps.Keys(own)) {
		env = append(env, name+"="+own[name])
	}
	return env
}
