package schedulers

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/quernmr/quern/bench/schedulers/tasktimes"
	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/sim/papers"
	"github.com/quernmr/quern/wire"
)

// The batches of HMHS: each pair of job and tracker has a factor for the tasks' times (section 4
// of the paper: from 0.1 to 1).
const (
	hmhsTrackers = 4
	hmhsJobs     = 10
)

// drawHeterogeneous draws jobs with maps and reduces. With alike, a tracker's factor is the same
// for all jobs.
func drawHeterogeneous(seed uint64, alike bool) *batch {
	r := papers.Rand(seed, "hmhs", 0)
	drawn := &batch{}
	factors := func() (list [hmhsTrackers]float64) {
		for i := range list {
			list[i] = 0.1 + 0.9*r.Float64()
		}
		return list
	}
	common := factors()
	for i := range hmhsJobs {
		j := &job{
			name: fmt.Sprintf("unlike%d-%d", seed, i), maps: 15 + r.IntN(60), weight: 1, clusterWeight: 1, bytes: 1, reduces: 2 + r.IntN(8),
			taskTimes: tasktimes.Job{Seed: r.Uint64(), Mean: time.Duration((0.5 + 2*r.Float64()) * float64(time.Second)), Spread: 0.1},
		}
		reduce := time.Duration((0.5 + 2*r.Float64()) * float64(time.Second))
		j.args = []string{"-reduce-time", reduce.String()}
		own := factors()
		if alike {
			own = common
		}
		for t, f := range own {
			j.args = append(j.args, "-slow", fmt.Sprintf("tt%d=%.3f", t+1, f))
		}
		j.work = j.taskTimes.Seconds(j.maps)
		j.alone = j.work
		drawn.jobs = append(drawn.jobs, j)
	}
	return drawn
}

func (b *bench) hmhs() error {
	seeds := b.Seeds(10)
	fmt.Printf("Seeds %v: %d jobs, factors of 0.1 to 1 on %d task trackers of 10 map and 4 reduce slots. HMHS has the jobs' history from their run under FIFO.\n\n",
		seeds, hmhsJobs, hmhsTrackers)
	testbed.Table("trackers are slow", "fifo", "hmhs", "makespan less by", "target")
	for _, alike := range []bool{false, true} {
		var fifo, hmhs float64
		var mu sync.Mutex // guards fifo and hmhs
		err := inLanes(b, testbed.Shape{
			Trackers: hmhsTrackers, Maps: 10, Reduces: 4, TaskTrackerFlags: []string{"-pass-env", tasktimes.TrackerVariable},
		}, seeds, func(c *testbed.Cluster, seed uint64) error {
			a, err := b.makespan(c, "fifo", drawHeterogeneous(seed, alike))
			if err != nil {
				return err
			}
			z, err := b.makespan(c, "hmhs", drawHeterogeneous(seed, alike))
			mu.Lock()
			defer mu.Unlock()
			fifo += a
			hmhs += z
			b.Logf("seed %d: fifo %.2f s, hmhs %.2f s", seed, a, z)
			return err
		})
		if err != nil {
			return err
		}
		name, target := "for some jobs", "≥ 25 %"
		if alike {
			name, target = "for all jobs", "≥ 0 %"
		}
		n := float64(len(seeds))
		testbed.Row(name, fmt.Sprintf("%.2f s", fifo/n), fmt.Sprintf("%.2f s", hmhs/n), gain(hmhs, fifo), target)
	}
	return nil
}

func (b *bench) makespan(c *testbed.Cluster, name string, drawn *batch) (float64, error) {
	s := wire.Scheduling{Scheduler: name, Metric: "max-response", Delay: "none"}
	if err := c.API.Schedule(b.Ctx, s); err != nil {
		return 0, err
	}
	o, err := b.run(c, drawn, nil)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return slices.Max(o.ends), nil
}
