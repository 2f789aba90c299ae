package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/wire"
)

// column is a way to schedule.
type column struct {
	name       string
	scheduling wire.Scheduling
}

// matrix is the same batches under several columns.
type matrix struct {
	shape   testbed.Shape
	columns []column
	seeds   []uint64
	draw    func(seed uint64) *batch
	known   bool                                                               // jobs keep their names: they are known from a run under the first column that does not count
	while   func(ctx context.Context, c *cluster, of column, ids []wire.JobID) // see bench.run; may be nil
}

// results are the outcomes of a matrix.
type results struct {
	batches  []*batch              // by seed
	outcomes map[string][]*outcome // by column, then by seed
}

// measure runs a matrix, seed by seed, so that what the machine does beside it meets all
// columns alike. Each lane has a cluster of its own; where jobs are known, it has all
// columns of a seed, each time another one first.
func (b *bench) measure(m *matrix) (*results, error) {
	r := &results{outcomes: make(map[string][]*outcome)}
	for _, seed := range m.seeds {
		r.batches = append(r.batches, m.draw(seed))
	}
	for _, col := range m.columns {
		r.outcomes[col.name] = make([]*outcome, len(m.seeds))
	}
	if m.known {
		return r, b.bySeed(m.shape, m.seeds, func(c *cluster, seed uint64) error {
			i := slices.Index(m.seeds, seed)
			if err := b.cell(c, m, r, i, m.columns[0]); err != nil {
				return err
			}
			for k := range m.columns {
				if err := b.cell(c, m, r, i, m.columns[(k+i)%len(m.columns)]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	type cell struct {
		seed int
		col  column
	}
	cells := make(chan cell)
	errs := make([]error, b.lanes)
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	var lanes sync.WaitGroup
	for lane := range b.lanes {
		lanes.Go(func() {
			defer cancel()
			c, err := b.cluster(m.shape)
			if err != nil {
				errs[lane] = err
				return
			}
			for at := range cells {
				if err = b.cell(c, m, r, at.seed, at.col); err != nil {
					break
				}
			}
			errs[lane] = errors.Join(err, c.Close())
		})
	}
	for i := range m.seeds {
		for _, col := range m.columns {
			select {
			case cells <- cell{i, col}:
			case <-ctx.Done():
			}
		}
	}
	close(cells)
	lanes.Wait()
	return r, errors.Join(errs...)
}

// cell runs one batch under one column.
func (b *bench) cell(c *cluster, m *matrix, r *results, i int, col column) error {
	if err := c.API.Schedule(b.ctx, col.scheduling); err != nil {
		return fmt.Errorf("%s: %w", col.name, err)
	}
	of := m.draw(m.seeds[i])
	for k, j := range of.jobs {
		if !m.known {
			j.name = fmt.Sprintf("%s-%d-%d", col.name, m.seeds[i], k) // of which nothing is known
		}
		if j.told = 1; strings.HasSuffix(col.scheduling.Metric, "-weighted") {
			j.told = j.weight // else it would be the job's share under fair
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
	b.say("%s, seed %d: mean response %.2f s, tasks took %.0f %% of the machine", col.name, m.seeds[i], o.sum()/float64(len(o.ends)), 100*o.took[0])
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
		total += m.Aggregate.Of(costs, o.ends)
	}
	return total
}

// goal is a job's, from when all are present.
func (j *job) goal() scheduler.Goal {
	g := scheduler.Goal{Weight: j.weight, Deadline: seconds(j.due)}
	for _, level := range j.levels {
		g.Steps = append(g.Steps, scheduler.Step{By: level.After, Cost: level.Cost})
	}
	return g
}

// sayTook prints what tasks and daemons took of the machine.
func (r *results) sayTook(lanes int) {
	var mean, most [2]float64
	n := 0.0
	for _, list := range r.outcomes {
		for _, o := range list {
			for i, took := range o.took {
				mean[i] += took
				most[i] = max(most[i], took)
			}
			n++
		}
	}
	fmt.Printf("Tasks of a cluster took %.0f %% of the machine, at most %.0f %% in a run, and its daemons %.0f %%; %d clusters ran at a time.\n\n",
		100*mean[0]/n, 100*most[0], 100*mean[1]/n, lanes)
}

// best is the least of some values, and which it is.
func best(values []float64) (least float64, at int) {
	least = slices.Min(values)
	return least, slices.Index(values, least)
}
