package schedulers

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/wire"
)

// column is a scheduler with its metric.
type column struct {
	name       string
	scheduling wire.Scheduling
}

// columns returns policies with the default metric.
func columns(names ...string) (all []column) {
	for _, name := range names {
		all = append(all, column{name, wire.Scheduling{Scheduler: name, Metric: "sum-response", Delay: "none"}})
	}
	return all
}

// withMetrics returns a policy with each metric.
func withMetrics(policy string, metrics []string) (all []column) {
	for _, metric := range metrics {
		all = append(all, column{policy + " " + metric, wire.Scheduling{Scheduler: policy, Metric: metric, Delay: "none"}})
	}
	return all
}

// matrix describes runs of the same batches under several columns.
type matrix struct {
	shape       testbed.Shape
	columns     []column
	seeds       []uint64
	draw        func(seed uint64) *batch
	withHistory bool                                                                        // jobs keep their names, so that the cluster has history from a first run, which does not count
	during      func(ctx context.Context, c *testbed.Cluster, col column, ids []wire.JobID) // see bench.run; may be nil
}

// results are the outcomes of a matrix.
type results struct {
	columns  []column
	batches  []*batch              // by seed
	outcomes map[string][]*outcome // by column, then by seed
}

// measure runs a matrix seed by seed, so that other load affects all columns alike. Each lane
// has its own cluster. With history, a lane runs all columns of a seed, and begins with another
// column for each seed.
func (b *bench) measure(m *matrix) (*results, error) {
	r := &results{columns: m.columns, outcomes: make(map[string][]*outcome)}
	for _, col := range m.columns {
		r.outcomes[col.name] = make([]*outcome, len(m.seeds))
	}
	type share struct { // runs that a lane does on its cluster
		seed    int
		columns []column
	}
	var shares []share
	for i, seed := range m.seeds {
		r.batches = append(r.batches, m.draw(seed))
		if m.withHistory {
			first := i % len(m.columns)
			shares = append(shares, share{i, slices.Concat(m.columns[:1], m.columns[first:], m.columns[:first])})
			continue
		}
		for _, col := range m.columns {
			shares = append(shares, share{i, []column{col}})
		}
	}
	return r, inLanes(b, m.shape, shares, func(c *testbed.Cluster, s share) error {
		for _, col := range s.columns {
			if err := b.cell(c, m, r, s.seed, col); err != nil {
				return err
			}
		}
		return nil
	})
}

// cell runs one batch under one column.
func (b *bench) cell(c *testbed.Cluster, m *matrix, r *results, i int, col column) error {
	if err := c.API.Schedule(b.Ctx, col.scheduling); err != nil {
		return fmt.Errorf("%s: %w", col.name, err)
	}
	drawn := m.draw(m.seeds[i])
	for k, j := range drawn.jobs {
		if !m.withHistory {
			j.name = fmt.Sprintf("%s-%d-%d", col.name, m.seeds[i], k) // a new name, without history
		}
		if j.clusterWeight = 1; strings.HasSuffix(col.scheduling.Metric, "-weighted") {
			j.clusterWeight = j.weight // only for these metrics: under fair it changes the job's share
		}
	}
	var during func(context.Context, []wire.JobID)
	if m.during != nil {
		during = func(ctx context.Context, ids []wire.JobID) { m.during(ctx, c, col, ids) }
	}
	o, err := b.run(c, drawn, during)
	if err != nil {
		return fmt.Errorf("%s, seed %d: %w", col.name, m.seeds[i], err)
	}
	b.Logf("%s, seed %d: mean response %.2f s, tasks took %.0f %% of the machine", col.name, m.seeds[i], o.sum()/float64(len(o.ends)), 100*o.machineUse[0])
	r.outcomes[col.name][i] = o
	return nil
}

// cost returns a metric's value, summed over the seeds.
func (r *results) cost(col string, m scheduler.Metric) float64 {
	total := 0.0
	for i, o := range r.outcomes[col] {
		costs := make([]scheduler.Cost, len(o.ends))
		for k, j := range r.batches[i].jobs {
			costs[k] = m.Cost(j.goal(), j.alone, 0)
		}
		total += m.Aggregate.Combine(costs, o.ends)
	}
	return total
}

// goal returns a job's goal; times count from the start of the batch.
func (j *job) goal() scheduler.Goal {
	g := scheduler.Goal{Weight: j.weight, Deadline: seconds(j.deadline)}
	for _, level := range j.levels {
		g.Steps = append(g.Steps, scheduler.Step{By: level.After, Cost: level.Cost})
	}
	return g
}

// printUse prints the fractions of the machine used by tasks and daemons.
func (r *results) printUse(lanes int) {
	var mean, peak [2]float64
	n := 0.0
	for _, list := range r.outcomes {
		for _, o := range list {
			for i, took := range o.machineUse {
				mean[i] += took
				peak[i] = max(peak[i], took)
			}
			n++
		}
	}
	fmt.Printf("Tasks of a cluster took %.0f %% of the machine, at most %.0f %% in a run, and its daemons %.0f %%; %d clusters ran at a time.\n\n",
		100*mean[0]/n, 100*peak[0], 100*mean[1]/n, lanes)
}

// gainRow compares a policy's column with another column.
type gainRow struct{ policy, against, target string }

// gains prints the percentages by which columns cost less than others.
func (r *results) gains(what string, m scheduler.Metric, rows ...gainRow) {
	testbed.Table(what, "by how much less", "target")
	for _, row := range rows {
		policy, _, _ := strings.Cut(row.policy, " ")
		testbed.Row(policy+" against "+row.against, gain(r.cost(row.policy, m), r.cost(row.against, m)), row.target)
	}
}

// byMetric compares a policy, set to each metric, with the best column. Unless bound is nil, it
// also compares with a lower bound of all schedules.
func (r *results) byMetric(policy string, metrics []string, bound func(scheduler.Metric) (float64, error)) error {
	head := []string{"metric", "fifo", "fair", policy + " set to it", "best column", "its value", policy + " / best", "target"}
	if bound != nil {
		head = append(head, "lower bound", policy+" / bound")
	}
	testbed.Table(head...)
	cell := func(x float64) string { return fmt.Sprintf("%.2f", x) }
	for _, name := range metrics {
		m, err := scheduler.ParseMetric(name)
		if err != nil {
			return err
		}
		best, lowest := "", math.Inf(1)
		for _, col := range r.columns {
			if cost := r.cost(col.name, m); cost < lowest {
				best, lowest = col.name, cost
			}
		}
		own := r.cost(policy+" "+name, m)
		ratio := own / lowest
		if m.Penalty == scheduler.Tardy { // counts
			ratio = (own + 1) / (lowest + 1)
		}
		row := []string{name, cell(r.cost("fifo", m)), cell(r.cost("fair", m)), cell(own), best, cell(lowest), cell(ratio), "≤ 1.05"}
		if bound != nil {
			limit, err := bound(m)
			if err != nil {
				return err
			}
			row = append(row, cell(limit), cell(own/limit))
		}
		testbed.Row(row...)
	}
	return nil
}
