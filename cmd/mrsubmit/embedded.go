package main

import (
	"context"
	"errors"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/embedded"
	"github.com/quernmr/quern/wire"
)

// startCluster starts a cluster for one submission.
type startCluster func(ctx context.Context, sub *wire.Submission) (*cluster, error)

// cluster is a running cluster with its file systems and staging directory.
type cluster struct {
	client.Cluster
	files   dfs.FS
	staging string // URL
	close   func() error
}

// embeddedCluster starts a cluster in this process, configured by the submission's properties.
func embeddedCluster(_ context.Context, sub *wire.Submission) (*cluster, error) {
	cfg, err := embedded.FromProperties(sub.Plan.Jobs[0].Properties, nil)
	if err != nil {
		return nil, err
	}
	c, err := embedded.Start(cfg)
	if err != nil {
		return nil, err
	}
	if err := c.KeepProgram(sub); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &cluster{Cluster: c, files: c.FS(), staging: c.Staging(), close: c.Close}, nil
}
