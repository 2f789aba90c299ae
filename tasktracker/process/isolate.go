package process

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/tasktracker/isolation"
	"github.com/quernmr/quern/tasktracker/workers"
)

// Isolate isolates all workers from now on, if a probe succeeds. Otherwise it returns what prevents it. Call it
// before the first Start.
func (p *Starter) Isolate(cfg isolation.Config) error {
	if err := cfg.Probe(filepath.Join(p.cfg.Dir, core.RunDir, "probe")); err != nil {
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
	steps, err := p.isolated.Plan(&isolation.Worker{Submission: program.Submission, Dir: dir, Jobs: program.Jobs, Env: env})
	if err != nil {
		return nil, nil, fmt.Errorf("isolate worker: %w", err)
	}
	plan, err = steps.Pipe()
	return env, plan, err
}
