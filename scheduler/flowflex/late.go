package flowflex

import (
	"cmp"
	"slices"

	"github.com/quernmr/quern/scheduler"
)

// lateFactors lists equally likely factors by which flows end later than in a schedule with
// divisible slots, because tasks are not divisible and slots become free one by one. Trials with
// the kind of flows in bench/schedulers gave them; docs/benchmarks.md has the gain.
var lateFactors = [...]float64{1, 1.1, 1.25, 1.6}

// expectedCost returns a step cost's mean over these factors; other costs stay. With the mean, a
// schedule that meets a step with slack is better than a schedule that just meets it.
func expectedCost(c scheduler.Cost) scheduler.Cost {
	if c.Penalty == scheduler.Tardy {
		c.Penalty, c.Levels = scheduler.SLA, []scheduler.Level{{Due: c.Due, Cost: 1}}
	}
	if c.Penalty != scheduler.SLA {
		return c
	}
	levels, before := make([]scheduler.Level, 0, len(c.Levels)*len(lateFactors)), 0.0
	for _, l := range c.Levels {
		for _, factor := range lateFactors {
			due := l.Due
			if due > 0 {
				due /= factor
			}
			levels = append(levels, scheduler.Level{Due: due, Cost: (l.Cost - before) / float64(len(lateFactors))})
		}
		before = l.Cost
	}
	slices.SortStableFunc(levels, func(a, b scheduler.Level) int { return cmp.Compare(a.Due, b.Due) })
	sum := 0.0
	for i := range levels {
		sum += levels[i].Cost
		levels[i].Cost = sum
	}
	c.Levels = levels
	return c
}
