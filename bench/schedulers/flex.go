package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quernmr/quern/bench/schedulers/waits"
	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/sim/papers"
	"github.com/quernmr/quern/wire"
)

// The batches of FLEX's simulation (section 4.1, base case): eight small jobs and two of ten times their mean.
const (
	flexSlots = 40
	flexWork  = 600.0 // slot-seconds of all jobs of a batch
	small     = 8
	large     = 2
	waves     = 3 // of a large job at least
	fewest    = 8 // maps of a job: of fewer, what a job costs at all says more than its schedule
)

// draw draws a batch, anew where a job is too small. It is the same for every policy.
func draw(seed uint64) *batch {
	for try := 0; ; try++ {
		r := papers.Rand(seed, "flex", try)
		if of := drawOnce(r); of != nil {
			return of
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
	of := &batch{}
	horizon := flexWork / flexSlots
	for i, work := range works {
		work *= flexWork / total
		mean := 0.4 + 0.3*r.Float64()
		j := &job{
			maps: int(work/mean + 0.5), weight: 1 - r.Float64(), due: r.Float64() * horizon,
			waits: waits.Job{Seed: r.Uint64(), Mean: time.Duration(mean * float64(time.Second)), Spread: 0.3},
		}
		if j.maps < fewest || i >= small && j.maps < waves*flexSlots {
			return nil
		}
		j.work = j.waits.Seconds(j.maps)
		j.alone = j.work
		j.levels = steps(r, horizon)
		of.jobs = append(of.jobs, j)
	}
	r.Shuffle(len(of.jobs), func(i, k int) { of.jobs[i], of.jobs[k] = of.jobs[k], of.jobs[i] })
	for i, j := range of.jobs {
		j.name = fmt.Sprintf("flex%d", i)
	}
	return of
}

// steps are an SLA's.
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

// truncated is normal with that mean and a third of it as standard deviation, drawn
// again while it is not positive.
func truncated(r *rand.Rand, mean float64) float64 {
	for {
		if x := mean + r.NormFloat64()*mean/3; x > 0 {
			return x
		}
	}
}

// flexMetrics are those that FLEX is set to.
func flexMetrics() []string {
	return []string{
		"sum-response", "sum-response-weighted", "max-stretch", "sum-tardy",
		"sum-tardiness", "max-tardiness", "max-response", "sum-sla",
	}
}

// flexColumns are FIFO, FAIR and FLEX set to each metric; the overlapping policies
// too, which see nothing but maps here.
func flexColumns() []column {
	columns := []column{{name: "fifo"}, {name: "fair"}, {name: "srpt"}, {name: "maxsrpt"}}
	for i := range columns {
		columns[i].scheduling = wire.Scheduling{Scheduler: columns[i].name, Metric: "sum-response", Delay: "none"}
	}
	for _, metric := range flexMetrics() {
		columns = append(columns, column{"flex " + metric, wire.Scheduling{Scheduler: "flex", Metric: metric, Delay: "none"}})
	}
	return columns
}

func (b *bench) flex() error {
	m := &matrix{shape: testbed.Shape{Trackers: 4, Maps: flexSlots / 4, Reduces: 1}, columns: flexColumns(), seeds: b.seedsOf(10), draw: draw}
	fmt.Printf("Seeds %v: %d small and %d large jobs, %.0f slot-seconds, 4 task trackers of %d map slots, no minima.\n",
		m.seeds, small, large, flexWork, m.shape.Maps)
	said := &foresights{said: make(map[string][]foresight)}
	m.while = func(ctx context.Context, c *cluster, of column, _ []wire.JobID) {
		if of.name == "flex sum-response" {
			said.watch(ctx, c)
		}
	}
	r, err := b.measure(m)
	if err != nil {
		return err
	}
	r.sayTook(b.lanes)
	r.responses()
	fmt.Println()
	r.byMetric()
	fmt.Println()
	fmt.Print("Of these jobs nothing was known before:\n\n")
	b.foreseen(said, r.outcomes["flex sum-response"])
	return nil
}

// responses compares average responses.
func (r *results) responses() {
	response := scheduler.Metric{Penalty: scheduler.Response}
	of := func(col string) float64 { return r.cost(col, response) }
	testbed.Table("average response", "by how much less", "to reach")
	flex := of("flex sum-response")
	testbed.Row("flex against fair", gain(flex, of("fair")), "≥ 25 %")
	testbed.Row("flex against fifo", gain(flex, of("fifo")), "more than against fair")
	testbed.Row("maxsrpt against fifo", gain(of("maxsrpt"), of("fifo")), "≥ 40 %")
	testbed.Row("srpt against fifo", gain(of("srpt"), of("fifo")), "≥ 40 %")
}

// byMetric compares FLEX set to each metric with the best of all columns.
func (r *results) byMetric() {
	columns := flexColumns()
	testbed.Table("metric", "fifo", "fair", "flex set to it", "best column", "its value", "flex / best", "to reach")
	for _, name := range flexMetrics() {
		m, err := scheduler.ParseMetric(name)
		if err != nil {
			panic(err) // of our own list
		}
		var values []float64
		for _, col := range columns {
			values = append(values, r.cost(col.name, m))
		}
		least, at := best(values)
		own := r.cost("flex "+name, m)
		ratio := own / least
		if m.Penalty == scheduler.Tardy { // counts
			ratio = (own + 1) / (least + 1)
		}
		testbed.Row(name, fmt.Sprintf("%.2f", values[0]), fmt.Sprintf("%.2f", values[1]), fmt.Sprintf("%.2f", own),
			columns[at].name, fmt.Sprintf("%.2f", least), times(ratio), "≤ 1.05")
	}
}
