package main

import (
	"fmt"
	"sync/atomic"

	"github.com/quernmr/quern/bench/testbed"
)

// cluster is one job tracker and some task trackers.
type cluster struct {
	*testbed.Cluster
	runs atomic.Int64
}

func (b *bench) cluster(s testbed.Shape) (*cluster, error) {
	c, err := testbed.Start(b.ctx, b.programs(), b.path(fmt.Sprintf("cluster%d", b.clusters.Add(1))), s)
	return &cluster{Cluster: c}, err
}
