package flowflex

import (
	"cmp"
	"slices"

	"github.com/quernmr/quern/scheduler"
)

// lateness lists equally likely factors by which flows end later than a schedule with divisible
// slots: tasks are whole, and slots are freed one by one. They were found by trial on flows
// like those of bench/schedulers; wider and narrower spreads gain less. docs/benchmarks.md has
// the gain.
var lateFactors = [...]float64{1, 1.1, 1.25, 1.6}

// expected is a flow's mean cost over these factors, for step costs. Without it a schedule that
// meets a step with nothing to spare is as good as one with slack.
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
