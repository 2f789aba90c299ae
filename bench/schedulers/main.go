// Command schedulers measures what the papers' schedulers make of a cluster of
// processes on this machine, four task trackers beside one job tracker, and what
// their decisions cost.
//
//	go run ./bench/schedulers [-seeds 10] [-seed 1] [-only REGEXP] [-lanes 2] [-flow-work 600] [-dir DIR]
//
// Tasks hold their slots by waiting for times that the seed draws, so that a cluster
// of forty slots fits two cores; what they take of these all the same is printed. A
// figure over several seeds is the ratio of the sums over them. It asserts no timing.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/integration/processes"
)

func main() {
	var o options
	flag.IntVar(&o.seeds, "seeds", 10, "`number` of seeds; sections that need fewer take fewer")
	flag.Uint64Var(&o.seed, "seed", 1, "the first `seed`; the others follow it")
	flag.StringVar(&o.only, "only", ".", "`regexp` of the sections to measure")
	flag.StringVar(&o.dir, "dir", "", "working `directory`, kept; default: a temporary one, removed")
	flag.IntVar(&o.lanes, "lanes", 2, "`clusters` that run at a time where tasks only wait")
	flag.Float64Var(&o.flowWork, "flow-work", flexWork, "`slot-seconds` of all four flows; with fewer, what a job costs beside its tasks weighs more")
	flag.BoolVar(&o.verbose, "v", false, "print what each job of each run took")
	flag.Parse()
	if o.seeds < 1 || o.lanes < 1 || !(o.flowWork >= 200 && o.flowWork <= 1e5) {
		fmt.Fprintln(os.Stderr, "bench/schedulers: -seeds and -lanes are at least 1, -flow-work is from 200 to 100000")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/schedulers:", err)
		os.Exit(1)
	}
}

type options struct {
	seeds    int
	seed     uint64
	only     string
	dir      string
	lanes    int
	flowWork float64
	verbose  bool
}

func (b *bench) sections() []testbed.Section {
	return []testbed.Section{
		{Name: "FLEX, FAIR and FIFO on ten jobs", Measure: b.flex},
		{Name: "FlowFlex on four flows", Measure: b.flows},
		{Name: "prediction: jobs seen once before", Measure: b.predict},
		{Name: "overlap: policies for maps and shuffle together", Measure: b.overlap},
		{Name: "HMHS on unlike trackers", Measure: b.hmhs},
		{Name: "shuffle: homes keep up with maps", Measure: b.keepUp},
		{Name: "shuffle: copy–compute splitting", Measure: b.splitting},
		{Name: "delay rules over HDFS", Measure: b.delay},
		{Name: "live: 1,000 trackers", Measure: b.live},
		{Name: "core: assignment", Measure: b.core},
	}
}

type bench struct {
	options
	ctx      context.Context
	clusters atomic.Int64 // so far
	inputs   sync.Mutex   // guards the making of inputs
}

func run(ctx context.Context, o options) (err error) {
	if o.dir == "" {
		if o.dir, err = os.MkdirTemp("", "quern-bench-"); err != nil {
			return err
		}
		defer os.RemoveAll(o.dir)
	}
	b := &bench{options: o, ctx: ctx}
	wanted, err := testbed.Wanted(o.only, b.sections())
	if err != nil {
		return err
	}
	if err := os.MkdirAll(b.programs(), 0o777); err != nil {
		return err
	}
	if err := processes.Build(b.programs(), "bench/schedulers/waiting"); err != nil {
		return err
	}
	return testbed.Measure(wanted)
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

func (b *bench) programs() string { return b.path("programs") }

// seedsOf are the first n seeds, or as many as there are.
func (b *bench) seedsOf(n int) []uint64 { return testbed.Seeds(b.seed, b.seeds, n) }

// say tells how far it is.
func (b *bench) say(format string, args ...any) {
	if b.verbose {
		fmt.Printf(format+"\n", args...)
	}
}

func times(ratio float64) string { return fmt.Sprintf("%.2f", ratio) }

// gain is by how much less one sum is than another.
func gain(of, against float64) string { return fmt.Sprintf("%.0f %%", 100*(1-of/against)) }
