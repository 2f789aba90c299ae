//go:build unix

package embedded

import (
	"context"
	"errors"
	"io"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

// Steps runs the submissions of one program on a cluster that starts with the first of them, with that
// submission's properties. Several may run at once.
type Steps struct {
	load    runtime.Load
	out     io.Writer
	width   func() int
	giveUp  <-chan struct{}
	quiet   bool
	cluster *Cluster
	program string // URL of the kept program
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
	return client.Do(ctx, s.config(), sub)
}

// Find looks for a submission after Start, as [client.Find] does.
func (s *Steps) Find(ctx context.Context, sub *wire.Submission) ([]wire.EndedJob, error) {
	return client.Find(ctx, s.config(), sub)
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
