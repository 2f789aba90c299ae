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

// column is a way to schedule.
type column struct {
	name       string
	scheduling wire.Scheduling
}

// columns are policies by their names.
func columns(names ...string) (all []column) {
	for _, name := range names {
		all = append(all, column{name, wire.Scheduling{Scheduler: name, Metric: "sum-response", Delay: "none"}})
	}
	return all
}

// setTo is a policy with each of some metrics.
func setTo(policy string, metrics []string) (all []column) {
	for _, metric := range metrics {
		all = append(all, column{policy + " " + metric, wire.Scheduling{Scheduler: policy, Metric: metric, Delay: "none"}})
	}
	return all
}

// matrix is the same batches under several columns.
type matrix struct {
	shape   testbed.Shape
	columns []column
	seeds   []uint64
	draw    func(seed uint64) *batch
	known   bool                                                                       // jobs keep their names, so that the cluster knows them from a first run that does not count
	while   func(ctx context.Context, c *testbed.Cluster, of column, ids []wire.JobID) // see bench.run; may be nil
}

// results are the outcomes of a matrix.
type results struct {
	columns  []column
	batches  []*batch              // by seed
	outcomes map[string][]*outcome // by column, then by seed
}

// measure runs a matrix seed by seed, so that other load of the machine affects all columns
// alike. Each lane has its own cluster; with known jobs it runs all columns of a seed, starting
// with another one each time.
func (b *bench) measure(m *matrix) (*results, error) {
	r := &results{columns: m.columns, outcomes: make(map[string][]*outcome)}
	for _, col := range m.columns {
		r.outcomes[col.name] = make([]*outcome, len(m.seeds))
	}
	type share struct { // of a lane at a time
		seed    int
		columns []column
	}
	var shares []share
	for i, seed := range m.seeds {
		r.batches = append(r.batches, m.draw(seed))
		if m.known {
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
	of := m.draw(m.seeds[i])
	for k, j := range of.jobs {
		if !m.known {
			j.name = fmt.Sprintf("%s-%d-%d", col.name, m.seeds[i], k) // a new name, without history
		}
		if j.clusterWeight = 1; strings.HasSuffix(col.scheduling.Metric, "-weighted") {
			j.clusterWeight = j.weight // otherwise it would be the job's share under fair
		}
	}
	var while func(context.Context, []wire.JobID)
	if m.while != nil {
		while = func(ctx context.Context, ids []wire.JobID) { m.while(ctx, c, col, ids) }
	}
	o, err := b.run(c, of, while)
	if err != nil {
		return fmt.Errorf("%s, seed %d: %w", col.name, m.seeds[i], err)
	}
	b.Say("%s, seed %d: mean response %.2f s, tasks took %.0f %% of the machine", col.name, m.seeds[i], o.sum()/float64(len(o.ends)), 100*o.used[0])
	r.outcomes[col.name][i] = o
	return nil
}

// cost is a metric's value, summed over the seeds.
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

// goal returns a job's goal, counted from the time at which all are present.
func (j *job) goal() scheduler.Goal {
	g := scheduler.Goal{Weight: j.weight, Deadline: seconds(j.due)}
	for _, level := range j.levels {
		g.Steps = append(g.Steps, scheduler.Step{By: level.After, Cost: level.Cost})
	}
	return g
}

// printUse prints the fractions of the machine used by tasks and daemons.
func (r *results) printUse(lanes int) {
	var mean, most [2]float64
	n := 0.0
	for _, list := range r.outcomes {
		for _, o := range list {
			for i, took := range o.used {
				mean[i] += took
				most[i] = max(most[i], took)
			}
			n++
		}
	}
	fmt.Printf("Tasks of a cluster took %.0f %% of the machine, at most %.0f %% in a run, and its daemons %.0f %%; %d clusters ran at a time.\n\n",
		100*mean[0]/n, 100*most[0], 100*mean[1]/n, lanes)
}

// gainRow compares a column with another.
type gainRow struct{ own, against, reach string }

// gains prints by how much less columns cost than others.
func (r *results) gains(what string, m scheduler.Metric, rows ...gainRow) {
	testbed.Table(what, "by how much less", "to reach")
	for _, row := range rows {
		policy, _, _ := strings.Cut(row.own, " ")
		testbed.Row(policy+" against "+row.against, gain(r.cost(row.own, m), r.cost(row.against, m)), row.reach)
	}
}

// byMetric compares a policy with each metric to the best of all columns and, unless bound is
// nil, to a lower bound of all schedules.
func (r *results) byMetric(policy string, metrics []string, bound func(scheduler.Metric) (float64, error)) error {
	head := []string{"metric", "fifo", "fair", policy + " set to it", "best column", "its value", policy + " / best", "to reach"}
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
		best, least := "", math.Inf(1)
		for _, col := range r.columns {
			if cost := r.cost(col.name, m); cost < least {
				best, least = col.name, cost
			}
		}
		own := r.cost(policy+" "+name, m)
		ratio := own / least
		if m.Penalty == scheduler.Tardy { // counts
			ratio = (own + 1) / (least + 1)
		}
		row := []string{name, cell(r.cost("fifo", m)), cell(r.cost("fair", m)), cell(own), best, cell(least), cell(ratio), "≤ 1.05"}
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
