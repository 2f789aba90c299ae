// Package schedulers measures the papers' schedulers on a cluster of processes, one job tracker
// and four task trackers, and the cost of their decisions.
//
// Tasks hold their slots by waiting for random times, so that two cores can run forty slots. The
// bench prints how much of the processors the tasks use. A figure over several seeds is the ratio
// of the sums over them.
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
		Name: "schedulers", About: "schedulers compared on a cluster, and the cost of their decisions; an hour",
		Seeds: 10,
		Flags: func(f *flag.FlagSet) {
			f.IntVar(&b.lanes, "lanes", 2, "`clusters` that run at a time, in parts with tasks that only wait")
			f.Float64Var(&b.flowWork, "flow-work", flexWork, "`slot-seconds` of all four flows; with fewer, times depend more on a job's fixed cost")
		},
		Programs: []string{"bench/schedulers/waiting"},
		Open: func(base *testbed.Bench) error {
			if b.Bench = base; !(b.flowWork >= 200 && b.flowWork <= 1e5) {
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

// gain returns the percentage by which one sum is less than another.
func gain(value, reference float64) string { return fmt.Sprintf("%.0f %%", 100*(1-value/reference)) }

// inLanes calls do for each thing, in several lanes at a time, each with its own cluster. After
// an error it starts nothing more.
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
