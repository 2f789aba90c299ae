// Command mix measures what delay scheduling makes of a mix of TPC-H's queries, sorts
// and greps over a real HDFS: the workload of dynamic delay's large experiment. A
// NameNode, four DataNodes, and a task tracker of two slots beside each, run on
// loopback, on this machine.
//
//	go run ./bench/mix [-scale 0.05] [-seeds 9] [-seed 1] [-only REGEXP] [-dir DIR]
//
// Blocks have one replica, on a node that the seed draws. Reading one takes its time, as
// from a disk, and longer from another node, as over a network: tasks wait more than they
// compute, so that four machines fit into one. What is asked is the same for every rule,
// and answers are compared before a figure is printed. A figure over several seeds is the
// ratio of the sums over them. It asserts no timing.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/integration/hdfs/minicluster"
	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/integration/tpch/peers"
)

func main() {
	var o options
	flag.StringVar(&o.scale, "scale", "0.05", "TPC-H's scale `factor`; 1 is a gigabyte")
	flag.IntVar(&o.seeds, "seeds", 9, "`number` of seeds; the mix takes two at most")
	flag.Uint64Var(&o.seed, "seed", 1, "the first `seed`; the others follow it")
	flag.StringVar(&o.only, "only", ".", "`regexp` of the sections to measure")
	flag.StringVar(&o.dir, "dir", "", "working `directory`, kept with the tables; default: a temporary one, removed")
	flag.BoolVar(&o.verbose, "v", false, "print what each run took")
	flag.Parse()
	if err := o.check(); err != nil {
		fmt.Fprintln(os.Stderr, "bench/mix:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/mix:", err)
		os.Exit(1)
	}
}

type options struct {
	scale   string
	seeds   int
	seed    uint64
	only    string
	dir     string
	verbose bool
}

func (o options) check() error {
	if o.seeds < 1 {
		return fmt.Errorf("-seeds %d: want 1 or more", o.seeds)
	}
	return nil
}

// The cluster, and how long its disks and network take.
const (
	nodes   = 4
	slots   = 2 // of a tracker, of maps and of reduces
	block   = 1 << 20
	fromOwn = 500 * time.Millisecond // a block, from a disk of the node's own
	fromFar = 800 * time.Millisecond // from another node's
)

func rules() []string { return []string{"none", "fixed=3s", "paper", "dynamic"} }

func (b *bench) sections() []testbed.Section {
	return []testbed.Section{
		{Name: "queries, a sort and a grep, one at a time", Measure: b.alone},
		{Name: "a mix of them, with arrivals", Measure: b.mixed},
	}
}

type bench struct {
	options
	ctx     context.Context
	hdfs    *minicluster.Cluster
	slow    *testbed.Slowed
	cluster *testbed.Cluster
	made    int                 // outputs so far
	placed  map[uint64]bool     // by seed
	answers map[string][32]byte // what was computed first, by seed and work
}

func run(ctx context.Context, o options) (err error) {
	if o.dir == "" {
		if o.dir, err = os.MkdirTemp("", "quern-bench-"); err != nil {
			return err
		}
		defer os.RemoveAll(o.dir)
	}
	b := &bench{options: o, ctx: ctx, placed: make(map[uint64]bool), answers: make(map[string][32]byte)}
	wanted, err := testbed.Wanted(o.only, b.sections())
	if err != nil {
		return err
	}
	if err := b.prepare(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	fmt.Printf("TPC-H at scale %s, blocks of %d MB with one replica on %d nodes of %d slots; one takes %v from the own node, %v from another.\n",
		o.scale, block>>20, nodes, slots, fromOwn, fromFar)
	return testbed.Measure(wanted)
}

// prepare makes tables and texts and starts everything.
func (b *bench) prepare() error {
	duckdb, err := peers.DuckDB(b.ctx)
	if err != nil {
		return err
	}
	jars, err := minicluster.Fetch(b.ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(os.MkdirAll(b.programs(), 0o777), os.RemoveAll(b.path("hdfs")), os.RemoveAll(b.path("cluster"))); err != nil {
		return err
	}
	if err := processes.Build(b.programs(), "examples/tpch", "examples/sort", "examples/grep"); err != nil {
		return err
	}
	if err := b.inputs(duckdb); err != nil {
		return err
	}
	b.hdfs, err = minicluster.Start(b.ctx, minicluster.Config{
		Jars: jars, Dir: b.path("hdfs"), Racks: []string{"/a", "/a", "/b", "/b"}, Replication: 1, BlockSize: block, Behind: true,
	})
	if err != nil {
		return err
	}
	return b.begin()
}

// begin has DataNodes served slowly, and starts job tracker and task trackers.
func (b *bench) begin() (err error) {
	if b.slow, err = testbed.Slow(b.hdfs); err != nil {
		return errors.Join(err, b.hdfs.Close())
	}
	b.slow.Set(block, fromOwn, fromFar)
	b.cluster, err = testbed.Start(b.ctx, b.programs(), b.path("cluster"), testbed.Shape{
		Trackers: nodes, Maps: slots, Reduces: slots, HDFS: b.hdfs,
	})
	if err != nil {
		return errors.Join(err, b.slow.Close(), b.hdfs.Close())
	}
	return nil
}

func (b *bench) close() error { return errors.Join(b.cluster.Close(), b.slow.Close(), b.hdfs.Close()) }

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }
func (b *bench) programs() string        { return b.path("programs") }

// seedsOf are the first n seeds, or as many as there are.
func (b *bench) seedsOf(n int) []uint64 { return testbed.Seeds(b.seed, b.seeds, n) }

// say tells how far it is.
func (b *bench) say(format string, args ...any) {
	if b.verbose {
		fmt.Printf(format+"\n", args...)
	}
}
