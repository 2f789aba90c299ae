// Package mix measures delay scheduling on a mix of TPC-H's queries, sorts and greps over a
// real HDFS: the workload of the large experiment in the paper on dynamic delay. A NameNode,
// four DataNodes, and a task tracker of two slots beside each, run on loopback.
//
// Blocks have one replica, on a random node. A proxy delays reads like a disk, and reads from
// another node like a network: tasks mostly wait, so one machine can run four nodes. All rules
// run the same workloads, and answers are compared before a figure is printed. A figure over
// several seeds is the ratio of the sums over them.
package mix

import (
	"fmt"
	"time"

	"github.com/quernmr/quern/bench/input"
	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/integration/hdfs/minicluster"
	"github.com/quernmr/quern/integration/tpch/peers"
)

// The cluster, and the delays of its disks and network.
const (
	nodes      = 4
	slots      = 2 // map slots of a tracker, and reduce slots
	block      = 1 << 20
	localRead  = 500 * time.Millisecond // a block from the node's own disk
	remoteRead = 800 * time.Millisecond // a block from another node
)

func rules() []string { return []string{"none", "fixed=3s", "paper", "dynamic"} }

type bench struct {
	*testbed.Bench
	hdfs      *minicluster.Cluster
	slowReads *testbed.SlowReads
	cluster   *testbed.Cluster
	outputs   int                 // outputs so far
	written   map[uint64]bool     // by seed
	answers   map[string][32]byte // first answers, by seed and work
}

// Section declares the flags and parts.
func Section() testbed.Section {
	b := &bench{written: make(map[uint64]bool), answers: make(map[string][32]byte)}
	return testbed.Section{
		Name: "mix", About: "delay rules on a mix of queries, sorts and greps over a real HDFS",
		Seeds: 9, Scale: "0.05",
		Programs: []string{"examples/tpch", "examples/sort", "examples/grep"},
		Open:     b.open,
		Parts: []testbed.Part{
			{Name: "queries, a sort and a grep, one at a time", Measure: b.alone},
			{Name: "a mix of them, with arrivals", Measure: b.mixed},
		},
	}
}

// open writes tables and texts and starts all processes.
func (b *bench) open(base *testbed.Bench) error {
	b.Bench = base
	duckdb, err := peers.DuckDB(b.Ctx)
	if err != nil {
		return err
	}
	if b.hdfs, err = b.HDFS(block, true, nil); err != nil {
		return err
	}
	b.AtEnd(b.hdfs.Close)
	if b.slowReads, err = testbed.NewSlowReads(b.hdfs); err != nil {
		return err
	}
	b.AtEnd(b.slowReads.Close)
	for _, err := range []error{
		duckdb.Generate(b.Ctx, b.tables(), b.Scale, 1), input.Lines(b.Path("lines"), textBytes), input.Text(b.Path("text"), textBytes),
	} {
		if err != nil {
			return err
		}
	}
	b.slowReads.Set(block, localRead, remoteRead)
	b.cluster, err = b.Cluster(testbed.Shape{Trackers: nodes, Maps: slots, Reduces: slots, HDFS: b.hdfs})
	if err != nil {
		return err
	}
	b.AtEnd(b.cluster.Close)
	fmt.Printf("Blocks of %d MB with one replica on %d nodes of %d slots; one takes %v from the own node, %v from another.\n",
		block>>20, nodes, slots, localRead, remoteRead)
	return nil
}
