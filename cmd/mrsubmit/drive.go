package main

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/embedded"
	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/wire"
)

func programError(code int, err error) error { return cmp.Or(err, exitError(code)) }

// drive runs a program that drives jobs. Without a cluster they run embedded.
func (t *tool) drive(ctx context.Context, f *runFlags, cluster *clusterDriver, exe string, sub *wire.Submission) error {
	args := sub.Program.Args
	if f.scripted.quiet {
		args = append([]string{"-quiet"}, args...)
	}
	driven := client.Driven{Program: exe, Args: args, Stdin: t.stdin, Stdout: t.stdout, Stderr: t.stderr, GiveUp: t.signals.GiveUp}
	lines := &stepLines{tool: t}
	driven.Failed = lines.failed
	switch {
	case !f.scripted.json && cluster == nil:
		return programError(client.DriveAlone(ctx, driven))
	case cluster == nil:
		driven.Stdout = t.stderr
		return lines.end(t.driveEmbedded(ctx, lines, driven, sub))
	}
	owner := userName(f.identity, t.getenv)
	if identity.CheckName(owner) != nil {
		owner = "" // only without certificates: it could be no part of a file's name
	}
	driven.Sessions, driven.Run, driven.Find = wire.Sessions(cluster.cfg.Staging, owner), cluster.run, cluster.find
	if !f.scripted.json {
		return programError(client.Drive(ctx, driven))
	}
	driven.Stdout, cluster.lines = t.stderr, lines
	return lines.end(client.Drive(ctx, driven))
}

// driveEmbedded runs the jobs of a program on an embedded cluster of this process, which starts with the first one.
func (t *tool) driveEmbedded(ctx context.Context, lines *stepLines, driven client.Driven, sub *wire.Submission) (code int, err error) {
	sessions, err := embedded.Sessions(sub.Program.Flags["D quern.embedded.dir"])
	if err != nil {
		return 0, err
	}
	steps := embedded.NewSteps(nil, t.stderr, nil, t.signals.GiveUp, true)
	steps.Changed = lines.ofStep
	defer func() { err = errors.Join(err, steps.Close()) }()
	var begin sync.Once
	var failed error
	type runs = func(ctx context.Context, sub *wire.Submission) ([]wire.EndedJob, error)
	started := func(run runs) runs {
		return func(ctx context.Context, sub *wire.Submission) ([]wire.EndedJob, error) {
			if begin.Do(func() { _, failed = steps.Start(sub) }); failed != nil {
				return nil, failed
			}
			return run(ctx, sub)
		}
	}
	driven.Sessions, driven.Sweep = sessions+"/", true
	driven.Run, driven.Find = started(steps.Run), started(steps.Find)
	return client.Drive(ctx, driven)
}

// clusterDriver runs the submissions of a program that drives jobs.
type clusterDriver struct {
	*tool
	flags  *runFlags
	cfg    client.Config
	status *web.Cluster
	lines  *stepLines // of -json; or nil

	warnings sync.Once

	mu       sync.Mutex
	program  wire.Program // path and hash of the uploaded program
	uploaded time.Time
}

// uploadAgain is when the program is uploaded again: job trackers keep it for two days.
const uploadAgain = 12 * time.Hour

func (c *clusterDriver) run(ctx context.Context, sub *wire.Submission) ([]wire.EndedJob, error) {
	if err := c.settle(c.flags, sub); err != nil {
		return nil, err
	}
	if err := checkShared(sub, c.status, c.flags.sharedLocal); err != nil {
		return nil, err
	}
	c.warnings.Do(func() { c.warnEmbedded(&sub.Plan) })
	if err := c.upload(&sub.Program); err != nil {
		return nil, err
	}
	return client.Do(ctx, c.config(), sub)
}

func (c *clusterDriver) find(ctx context.Context, sub *wire.Submission) ([]wire.EndedJob, error) {
	return client.Find(ctx, c.config(), sub)
}

// config returns the configuration of a step.
func (c *clusterDriver) config() client.Config {
	cfg := c.cfg
	if c.lines != nil {
		cfg.Changed = c.lines.ofStep()
	}
	return cfg
}

// upload sets the path and hash of the program, which it uploads once.
func (c *clusterDriver) upload(program *wire.Program) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.uploaded.IsZero() || time.Since(c.uploaded) > uploadAgain {
		day := time.Now().Add(c.flags.clockAhead)
		if err := client.Upload(c.cfg.FS, c.cfg.Staging, day, c.cfg.Program, &c.program); err != nil {
			return err
		}
		c.uploaded = time.Now()
	}
	program.Path, program.Hash = c.program.Path, c.program.Hash
	return nil
}
