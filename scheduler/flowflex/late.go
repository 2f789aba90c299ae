package flowflex

import (
	"cmp"
	"slices"

	"github.com/quernmr/quern/scheduler"
)

// lateness is by what factors flows end later than a schedule has it that divides slots
// at will, one as likely as another: tasks are whole, and slots come back one by one.
// These were chosen by trial on flows like those of bench/schedulers; with a wider or a
// narrower spread less was gained. What they gain there is in docs/benchmarks.md.
var lateness = [...]float64{1, 1.1, 1.25, 1.6}

// expected is the mean of what a flow costs that ends that much later than foreseen, where
// costs have steps. Otherwise a schedule that meets a step with nothing to spare
// is as good as one that meets it for sure.
func expected(c scheduler.Cost) scheduler.Cost {
	if c.Penalty == scheduler.Tardy {
		c.Penalty, c.Levels = scheduler.SLA, []scheduler.Level{{Due: c.Due, Cost: 1}}
	}
	if c.Penalty != scheduler.SLA {
		return c
	}
	levels, before := make([]scheduler.Level, 0, len(c.Levels)*len(lateness)), 0.0
	for _, l := range c.Levels {
		for _, factor := range lateness {
			due := l.Due
			if due > 0 {
				due /= factor
			}
			levels = append(levels, scheduler.Level{Due: due, Cost: (l.Cost - before) / float64(len(lateness))})
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
