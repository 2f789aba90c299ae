package schedulers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quernmr/quern/bench/schedulers/tasktimes"
	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/sim/papers"
	"github.com/quernmr/quern/wire"
)

// The batches of FLEX's simulation (section 4.1, base case): eight small jobs, and two large
// ones of ten times the mean work.
const (
	flexSlots = 40
	flexWork  = 600.0 // slot-seconds of all jobs of a batch
	small     = 8
	large     = 2
	minWaves  = 3 // of a large job
	minMaps   = 8 // of a job: with fewer, its time depends more on fixed costs than on the schedule
)

// draw draws the batch of a seed, the same for every policy.
func draw(seed uint64) *batch { return drawUntil(seed, "flex", drawOnce) }

// drawUntil repeats a draw until no job is too small.
func drawUntil(seed uint64, name string, once func(*rand.Rand) *batch) *batch {
	for try := 0; ; try++ {
		if drawn := once(papers.Rand(seed, name, try)); drawn != nil {
			return drawn
		}
	}
}

func drawOnce(r *rand.Rand) *batch {
	works, total := make([]float64, small+large), 0.0
	for i := range works {
		mean := 1.0
		if i >= small {
			mean = 10
		}
		works[i] = truncated(r, mean)
		total += works[i]
	}
	drawn := &batch{}
	horizon := flexWork / flexSlots
	for i, work := range works {
		work *= flexWork / total
		mean := 0.4 + 0.3*r.Float64()
		j := &job{
			maps: int(work/mean + 0.5), weight: 1 - r.Float64(), deadline: r.Float64() * horizon,
			taskTimes: tasktimes.Job{Seed: r.Uint64(), Mean: time.Duration(mean * float64(time.Second)), Spread: 0.3},
		}
		if j.maps < minMaps || i >= small && j.maps < minWaves*flexSlots {
			return nil
		}
		j.work = j.taskTimes.Seconds(j.maps)
		j.alone = j.work
		j.levels = steps(r, horizon)
		drawn.jobs = append(drawn.jobs, j)
	}
	r.Shuffle(len(drawn.jobs), func(i, k int) { drawn.jobs[i], drawn.jobs[k] = drawn.jobs[k], drawn.jobs[i] })
	for i, j := range drawn.jobs {
		j.name = fmt.Sprintf("flex%d", i)
	}
	return drawn
}

// steps draws the steps of an SLA.
func steps(r *rand.Rand, horizon float64) []wire.SLAStep {
	const n = 3
	times, costs := make([]float64, n), make([]float64, n)
	for i := range n {
		times[i], costs[i] = r.Float64()*horizon, r.Float64()
	}
	slices.Sort(times)
	slices.Sort(costs)
	levels := make([]wire.SLAStep, n)
	for i := range levels {
		levels[i] = wire.SLAStep{After: time.Duration(times[i] * float64(time.Second)), Cost: costs[i]}
	}
	return levels
}

// truncated draws from the normal distribution with that mean and a third of it as standard
// deviation, until the value is positive.
func truncated(r *rand.Rand, mean float64) float64 {
	for {
		if x := mean + r.NormFloat64()*mean/3; x > 0 {
			return x
		}
	}
}

// flexMetrics lists the metrics for FLEX.
func flexMetrics() []string {
	return []string{
		"sum-response", "sum-response-weighted", "max-stretch", "sum-tardy",
		"sum-tardiness", "max-tardiness", "max-response", "sum-sla",
	}
}

// flexColumns returns FIFO, FAIR, the policies that overlap maps and shuffle, and FLEX with each
// metric. The jobs have only maps.
func flexColumns() []column {
	return append(columns("fifo", "fair", "srpt", "maxsrpt"), withMetrics("flex", flexMetrics())...)
}

func (b *bench) flex() error {
	m := &matrix{shape: testbed.Shape{Trackers: 4, Maps: flexSlots / 4, Reduces: 1}, columns: flexColumns(), seeds: b.Seeds(10), draw: draw}
	fmt.Printf("Seeds %v: %d small and %d large jobs, %.0f slot-seconds, 4 task trackers of %d map slots, no minima.\n",
		m.seeds, small, large, flexWork, m.shape.Maps)
	predicted := &predictions{byJob: make(map[string][]prediction)}
	m.during = func(ctx context.Context, c *testbed.Cluster, col column, _ []wire.JobID) {
		if col.name == "flex sum-response" {
			predicted.watch(ctx, c)
		}
	}
	r, err := b.measure(m)
	if err != nil {
		return err
	}
	r.printUse(b.lanes)
	r.gains("average response", scheduler.Metric{Penalty: scheduler.Response},
		gainRow{"flex sum-response", "fair", "≥ 25 %"}, gainRow{"flex sum-response", "fifo", "more than against fair"},
		gainRow{"maxsrpt", "fifo", "≥ 40 %"}, gainRow{"srpt", "fifo", "≥ 40 %"})
	fmt.Println()
	if err := r.byMetric("flex", flexMetrics(), nil); err != nil {
		return err
	}
	fmt.Println()
	fmt.Print("Predictions for jobs without history:\n\n")
	b.printPredictions(predicted, r.outcomes["flex sum-response"])
	return nil
}
