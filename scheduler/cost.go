package scheduler

import (
	"fmt"
	"math"
	"time"
)

// Goal is what the owner of a job or flow asks of its end.
type Goal struct {
	Penalty   Penalty       // instead of the metric's; 0: the metric's
	Weight    float64       // 0: 1
	Submitted time.Duration // since the core's zero time
	Deadline  time.Duration // since the core's zero time; 0: none
	Steps     []Step        // for SLA, by time
}

// Step is a level of an SLA: what ending after By costs.
type Step struct {
	By   time.Duration // since the core's zero time
	Cost float64       // in total, not on top of the step before
}

// Check reports the field that has no meaning.
func (g Goal) Check() error {
	if int(g.Penalty) >= len(penaltyNames) {
		return fmt.Errorf("Goal.Penalty is %v", g.Penalty)
	}
	if !amount(g.Weight) {
		return fmt.Errorf("Goal.Weight is %v", g.Weight)
	}
	for i, step := range g.Steps {
		switch {
		case !amount(step.Cost):
			return fmt.Errorf("Goal.Steps[%d].Cost is %v", i, step.Cost)
		case i > 0 && step.By <= g.Steps[i-1].By:
			return fmt.Errorf("Goal.Steps[%d].By is %v, not after %v", i, step.By, g.Steps[i-1].By)
		case i > 0 && step.Cost < g.Steps[i-1].Cost:
			return fmt.Errorf("Goal.Steps[%d].Cost is %v, less than %v", i, step.Cost, g.Steps[i-1].Cost)
		}
	}
	return nil
}

// never is the deadline, in seconds, of a job that has none: 30 years.
const never = 1e9

// Cost is what it costs to end at a time: a non-decreasing function of seconds
// from now. Responses too are counted from now: in a sum, what a job has waited is
// paid whatever the plan, and the greatest of them is the makespan. The greatest
// stretch is of whole responses, since what one has waited weighs more the less
// work it is.
type Cost struct {
	Penalty Penalty // any but Stretch, which is Response with a weight
	Weight  float64
	Due     float64 // for Tardy, Tardiness and Lateness; negative: missed already
	Levels  []Level // for SLA, by time; the cost before the first is 0
}

// Level is an SLA's cost after a time.
type Level struct {
	Due  float64 // seconds from now
	Cost float64
}

// Cost is the cost function of a goal under the metric. Alone is what stretch
// divides by: the slot-seconds of a job, or the seconds that a whole flow would take
// with all slots. A penalty given with the goal replaces the metric's, with the
// metric's aggregate and its rule on weights.
func (m Metric) Cost(g Goal, alone float64, now time.Duration) Cost {
	c := Cost{Penalty: m.Penalty, Weight: 1, Due: never}
	if g.Penalty != 0 {
		c.Penalty = g.Penalty
	}
	if m.Weighted && g.Weight != 0 {
		c.Weight = g.Weight
	}
	if g.Deadline != 0 {
		c.Due = (g.Deadline - now).Seconds()
	}
	switch c.Penalty {
	case 0:
		c.Penalty = Response
	case Stretch:
		c.Penalty = Response
		if m.Aggregate == Max {
			c.Penalty, c.Due = Lateness, (g.Submitted - now).Seconds()
		}
		if alone > 0 {
			c.Weight /= alone
		}
	case SLA:
		for _, step := range g.Steps {
			c.Levels = append(c.Levels, Level{Due: (step.By - now).Seconds(), Cost: step.Cost})
		}
	}
	return c
}

// grace forgives the rounding of sums of times.
func grace(t float64) float64 { return 1e-9 * max(1, math.Abs(t)) }

// At is the cost of ending at t. O(1), or the number of levels.
func (c *Cost) At(t float64) float64 {
	switch c.Penalty {
	case Tardy:
		if t > c.Due+grace(c.Due) {
			return c.Weight
		}
		return 0
	case Tardiness:
		return c.Weight * max(0, t-c.Due)
	case Lateness:
		return c.Weight * (t - c.Due)
	case SLA:
		cost := 0.0
		for _, l := range c.Levels {
			if t <= l.Due+grace(l.Due) {
				break
			}
			cost = l.Cost
		}
		return c.Weight * cost
	default:
		return c.Weight * t
	}
}

// Latest is the latest time that costs at most limit: +Inf if every time does,
// -Inf if none does.
func (c *Cost) Latest(limit float64) float64 {
	switch c.Penalty {
	case Tardy:
		if limit >= c.Weight {
			return math.Inf(1)
		}
		return c.flat(limit, c.Due)
	case Tardiness:
		return c.flat(limit, c.Due+limit/c.Weight)
	case Lateness:
		return c.Due + limit/c.Weight
	case SLA:
		for _, l := range c.Levels {
			if c.Weight*l.Cost > limit {
				return c.flat(limit, l.Due)
			}
		}
		return c.flat(limit, math.Inf(1))
	default:
		return limit / c.Weight
	}
}

// flat is t for the penalties that are never negative.
func (c *Cost) flat(limit, t float64) float64 {
	if limit < 0 {
		return math.Inf(-1)
	}
	return t
}

// Breaks are the times at which the cost jumps or bends, ascending.
func (c *Cost) Breaks() []float64 {
	switch c.Penalty {
	case Tardy, Tardiness:
		return []float64{c.Due}
	case SLA:
		breaks := make([]float64, len(c.Levels))
		for i, l := range c.Levels {
			breaks[i] = l.Due
		}
		return breaks
	default:
		return nil
	}
}

// Steps says whether the cost is a step function, so that it is not convex in the
// time nor in the slots.
func (c *Cost) Steps() bool { return c.Penalty == Tardy || c.Penalty == SLA }

// Of is the metric's value for costs at times of completion.
func (a Aggregate) Of(costs []Cost, ends []float64) float64 {
	total := 0.0
	for i := range costs {
		c := costs[i].At(ends[i])
		switch {
		case a == Sum || i == 0:
			total += c
		default:
			total = max(total, c)
		}
	}
	return total
}
