//go:build unix

package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

// Steps runs the submissions of one program on a cluster that starts with the first of them, with that
// submission's properties. Several may run at once.
type Steps struct {
	Changed func() func([]wire.JobStatus) // returns [client.Config.Changed] of a submission; nil: none

	load    runtime.Load
	out     io.Writer
	width   func() int
	giveUp  <-chan struct{}
	quiet   bool
	cluster *Cluster
	program string // URL of the kept program
	note    string // to print after the first failure of a job
	noted   sync.Once
}

// NewSteps prints progress to out; if quiet, only about jobs that do not succeed. GiveUp ends the wait for killed jobs.
func NewSteps(load runtime.Load, out io.Writer, width func() int, giveUp <-chan struct{}, quiet bool) *Steps {
	return &Steps{load: load, out: out, width: width, giveUp: giveUp, quiet: quiet}
}

// Start starts the cluster, and returns the URL of a directory that it removes at its end.
func (s *Steps) Start(sub *wire.Submission) (dir string, err error) {
	cfg, err := FromProperties(sub.Plan.Jobs[0].Properties, s.load)
	if err != nil {
		return "", err
	}
	if s.cluster, err = Start(cfg); err != nil {
		return "", err
	}
	if cfg.Output {
		s.width = nil // as in Run
	}
	s.note = cfg.failureNote()
	kept := *sub
	if err := s.cluster.KeepProgram(&kept); err != nil {
		return "", errors.Join(err, s.Close())
	}
	s.program = kept.Program.Path
	return dfs.Join(s.cluster.Staging(), wire.StagingSessions), nil
}

// Run runs a submission after Start, as [client.Do] does.
func (s *Steps) Run(ctx context.Context, sub *wire.Submission) ([]wire.EndedJob, error) {
	sub.Program.Path = s.program
	cfg := s.config()
	if s.Changed != nil {
		cfg.Changed = s.Changed()
	}
	jobs, err := client.Do(ctx, cfg, sub)
	if !s.quiet && slices.ContainsFunc(jobs, func(job wire.EndedJob) bool { return job.State == wire.Failed }) {
		s.noted.Do(func() { fmt.Fprint(s.out, s.note) })
	}
	return jobs, err
}

// Find looks for a submission after Start, as [client.Find] does. The cluster of the earlier process has ended with it, and
// had the rights of this one, so Find removes what the jobs left of all their outputs.
func (s *Steps) Find(ctx context.Context, sub *wire.Submission) ([]wire.EndedJob, error) {
	jobs, err := client.Find(ctx, s.config(), sub)
	if err == nil && len(jobs) == 0 {
		err = discard(s.cluster.FS(), s.cluster.Staging(), sub)
	}
	return jobs, err
}

// discard removes the outputs that the jobs of a submission had not completed.
func discard(files dfs.FS, staging string, sub *wire.Submission) error {
	for i := range sub.Plan.Jobs {
		out, err := dfs.Clean(sub.Plan.Jobs[i].Output)
		if err == nil {
			err = runtime.Discard(files, out, dfs.Join(staging, sub.Key), sub.Key)
		}
		if err != nil {
			return fmt.Errorf("remove what an earlier process left: %w", err)
		}
	}
	return nil
}

func (s *Steps) config() client.Config {
	return client.Config{
		Cluster: s.cluster,
		FS:      s.cluster.FS(),
		Staging: s.cluster.Staging(),
		Out:     s.out,
		Width:   s.width,
		GiveUp:  s.giveUp,
		Brief:   true,
		Quiet:   s.quiet,
	}
}

// Close ends the cluster.
func (s *Steps) Close() error {
	if s.cluster == nil {
		return nil
	}
	return s.cluster.Close()
}
