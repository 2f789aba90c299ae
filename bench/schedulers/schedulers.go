// Package schedulers measures the papers' schedulers on a cluster of processes on this machine,
// four task trackers and one job tracker, and the cost of their decisions.
//
// Tasks hold their slots by waiting for random times of the seed, so that a cluster of forty
// slots fits two cores; their remaining use of the cores is printed. A figure over several
// seeds is the ratio of the sums over them.
package schedulers

import (
	"errors"
	"flag"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/quernmr/quern/bench/testbed"
)

type bench struct {
	*testbed.Bench
	lanes    int
	flowWork float64
	inputs   sync.Mutex // guards the writing of inputs
}

// Section declares the flags and parts.
func Section() testbed.Section {
	b := &bench{}
	return testbed.Section{
		Name: "schedulers", About: "what schedulers make of a cluster, and what their decisions cost; an hour",
		Seeds: 10,
		Flags: func(f *flag.FlagSet) {
			f.IntVar(&b.lanes, "lanes", 2, "`clusters` that run at a time where tasks only wait")
			f.Float64Var(&b.flowWork, "flow-work", flexWork, "`slot-seconds` of all four flows; with fewer, the fixed cost of a job weighs more")
		},
		Programs: []string{"bench/schedulers/waiting"},
		Open: func(of *testbed.Bench) error {
			if b.Bench = of; !(b.flowWork >= 200 && b.flowWork <= 1e5) {
				return fmt.Errorf("-flow-work must be from 200 to 100000, got %v", b.flowWork)
			}
			return nil
		},
		Parts: []testbed.Part{
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
		},
	}
}

// gain is the percentage by which one sum is less than another.
func gain(of, against float64) string { return fmt.Sprintf("%.0f %%", 100*(1-of/against)) }

// inLanes runs do for each thing on one of the lanes, each with its own cluster. After an error
// nothing more is started.
func inLanes[T any](b *bench, s testbed.Shape, things []T, do func(*testbed.Cluster, T) error) error {
	next := make(chan T, len(things))
	for _, thing := range things {
		next <- thing
	}
	close(next)
	errs := make([]error, b.lanes)
	var failed atomic.Bool
	var lanes sync.WaitGroup
	for lane := range b.lanes {
		lanes.Go(func() {
			c, err := b.Cluster(s)
			if err != nil {
				failed.Store(true)
				errs[lane] = err
				return
			}
			for thing := range next {
				if failed.Load() {
					break
				}
				if err = do(c, thing); err != nil {
					failed.Store(true)
				}
			}
			errs[lane] = errors.Join(err, c.Close())
		})
	}
	lanes.Wait()
	return errors.Join(errs...)
}
