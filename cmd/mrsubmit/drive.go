package main

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/wire"
)

func programError(code int, err error) error { return cmp.Or(err, exitError(code)) }

// driveCluster runs a program that drives jobs, and its jobs on a cluster.
func (t *tool) driveCluster(ctx context.Context, f *runFlags, cfg client.Config, status *web.Cluster, args []string) error {
	owner := userName(f.identity, t.getenv)
	if identity.CheckName(owner) != nil {
		owner = "" // only without certificates: it could be no part of a file's name
	}
	c := &clusterDriver{tool: t, flags: f, cfg: cfg, status: status}
	return programError(client.Drive(ctx, client.Driven{
		Program: cfg.Program, Args: args, Sessions: wire.Sessions(cfg.Staging, owner),
		Stdin: t.stdin, Stdout: t.stdout, Stderr: t.stderr, GiveUp: cfg.GiveUp, Run: c.run,
		Find: func(ctx context.Context, sub *wire.Submission) ([]wire.EndedJob, error) {
			return client.Find(ctx, cfg, sub)
		},
	}))
}

// clusterDriver runs the submissions of a program that drives jobs.
type clusterDriver struct {
	*tool
	flags  *runFlags
	cfg    client.Config
	status *web.Cluster

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
	if err := checkShared(&sub.Plan, c.status, c.flags.sharedLocal); err != nil {
		return nil, err
	}
	if err := c.upload(&sub.Program); err != nil {
		return nil, err
	}
	return client.Do(ctx, c.cfg, sub)
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
