package schedulers

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/quernmr/quern/bench/schedulers/tasktimes"
	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/sim/papers"
)

// The shuffle is the bottleneck: the jobs need the fetch capacity of all trackers for
// shuffleSeconds, and all map slots for mapSeconds.
const (
	shuffleRate    = 1 << 20 // bytes a second, of a tracker
	shuffleSeconds = 20.0
	mapSeconds     = 6.0
	overlapTracker = 4
)

// drawShuffles draws eight small and two large jobs. A job's shuffle is proportional to its
// maps, except for a random factor.
func drawShuffles(seed uint64) *batch {
	r := papers.Rand(seed, "overlap", 0)
	works, bytes := make([]float64, small+large), make([]float64, small+large)
	work, byte := 0.0, 0.0
	for i := range works {
		mean := 1.0
		if i >= small {
			mean = 10
		}
		works[i] = truncated(r, mean)
		bytes[i] = works[i] * (0.5 + r.Float64())
		work, byte = work+works[i], byte+bytes[i]
	}
	drawn := &batch{}
	for i := range works {
		seconds := works[i] / work * mapSeconds * flexSlots
		maps := max(4, int(seconds/0.4+0.5))
		each := bytes[i] / byte * shuffleSeconds * shuffleRate * overlapTracker / float64(maps)
		j := &job{
			maps: maps, bytes: max(1, int(each)), reduces: overlapTracker, weight: 1,
			taskTimes: tasktimes.Job{Seed: r.Uint64(), Mean: time.Duration(seconds / float64(maps) * float64(time.Second)), Spread: 0.3},
		}
		j.work = j.taskTimes.Seconds(j.maps)
		j.alone = j.work
		drawn.jobs = append(drawn.jobs, j)
	}
	shuffleJobs(r, drawn)
	return drawn
}

// shuffleJobs puts the jobs in a random order of arrival.
func shuffleJobs(r *rand.Rand, drawn *batch) {
	r.Shuffle(len(drawn.jobs), func(i, k int) { drawn.jobs[i], drawn.jobs[k] = drawn.jobs[k], drawn.jobs[i] })
}

func (b *bench) overlap() error {
	m := &matrix{seeds: b.Seeds(10), draw: drawShuffles, columns: columns("fair", "maxsrpt", "splitsrpt", "srpt"), shape: testbed.Shape{
		Trackers: overlapTracker, Maps: flexSlots / overlapTracker, Reduces: 4,
		TaskTrackerFlags: []string{"-shuffle-rate", fmt.Sprint(shuffleRate)},
	}}
	fmt.Printf("Seeds %v: %d small and %d large jobs, %.0f slot-seconds of maps, %.0f MB of shuffle, 4 task trackers of %d map slots that fetch %.0f MB a second each.\n\n",
		m.seeds, small, large, mapSeconds*flexSlots, shuffleSeconds*shuffleRate*overlapTracker/1e6, m.shape.Maps, shuffleRate/1e6)
	r, err := b.measure(m)
	if err != nil {
		return err
	}
	response := scheduler.Metric{Penalty: scheduler.Response}
	cost := func(col string) float64 { return r.cost(col, response) }
	r.printUse(b.lanes)
	testbed.Table("scheduler", "average response", "less than under fair by", "target")
	for _, col := range m.columns {
		target := "–"
		if col.name == "maxsrpt" || col.name == "srpt" {
			target = "≥ 30 %"
		}
		testbed.Row(col.name, fmt.Sprintf("%.2f s", cost(col.name)/float64(len(m.seeds)*(small+large))), gain(cost(col.name), cost("fair")), target)
	}
	fmt.Printf("\nsplitsrpt / maxsrpt: %s; target: ≤ 1.15\n", testbed.Ratio(cost("splitsrpt"), cost("maxsrpt")))
	return nil
}
