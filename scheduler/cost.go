package scheduler

import (
	"fmt"
	"math"
	"time"
)

// Goal is the owner's settings for the end of a job or flow.
type Goal struct {
	Penalty   Penalty       // replaces the metric's; 0: the metric's
	Weight    float64       // 0: 1
	Submitted time.Duration // since the core's zero time
	Deadline  time.Duration // since the core's zero time; 0: none
	Steps     []Step        // for SLA, by time
}

// Step is a level of an SLA: the cost of ending after By.
type Step struct {
	By   time.Duration // since the core's zero time
	Cost float64       // in total, not on top of the step before
}

// Check reports the first field with an invalid value.
func (g Goal) Check() error {
	if int(g.Penalty) >= len(penaltyNames) {
		return fmt.Errorf("Goal.Penalty is %v", g.Penalty)
	}
	if !validAmount(g.Weight) {
		return fmt.Errorf("Goal.Weight is %v", g.Weight)
	}
	for i, step := range g.Steps {
		switch {
		case !validAmount(step.Cost):
			return fmt.Errorf("Goal.Steps[%d].Cost is %v", i, step.Cost)
		case i > 0 && step.By <= g.Steps[i-1].By:
			return fmt.Errorf("Goal.Steps[%d].By is %v, not after %v", i, step.By, g.Steps[i-1].By)
		case i > 0 && step.Cost < g.Steps[i-1].Cost:
			return fmt.Errorf("Goal.Steps[%d].Cost is %v, less than %v", i, step.Cost, g.Steps[i-1].Cost)
		}
	}
	return nil
}

// noDeadline is the deadline, in seconds, of a job without one: 30 years.
const noDeadline = 1e9

// Says reports whether a value of the metric says something. A job without a deadline counts as 30 years early, so the
// lateness of other jobs does not matter beside it.
func (m Metric) Says(value float64) bool { return m.Penalty != Lateness || value > -noDeadline/1000 }

// Cost is the cost of ending at a time: a non-decreasing function of seconds from now.
// Responses count from now, because past waiting adds the same to a sum under every plan. So
// their maximum is the makespan. The maximum stretch counts from the submission, because past
// waiting weighs more for short jobs.
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

// Cost returns the cost function of a goal under the metric. Stretch divides by alone: the
// slot-seconds of a job, or the seconds of a whole flow with all slots. A penalty of the goal
// replaces the metric's; the metric's aggregate and its rule on weights remain.
func (m Metric) Cost(g Goal, alone float64, now time.Duration) Cost {
	c := Cost{Penalty: m.Penalty, Weight: 1, Due: noDeadline}
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

// tolerance allows for the rounding of sums of times.
func tolerance(t float64) float64 { return 1e-9 * max(1, math.Abs(t)) }

// At returns the cost of ending at t. O(1), or the number of levels.
func (c *Cost) At(t float64) float64 {
	switch c.Penalty {
	case Tardy:
		if t > c.Due+tolerance(c.Due) {
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
			if t <= l.Due+tolerance(l.Due) {
				break
			}
			cost = l.Cost
		}
		return c.Weight * cost
	default:
		return c.Weight * t
	}
}

// Latest returns the latest time that costs at most limit: +Inf if every time does, -Inf if
// none does.
func (c *Cost) Latest(limit float64) float64 {
	switch c.Penalty {
	case Tardy:
		if limit >= c.Weight {
			return math.Inf(1)
		}
		return c.nonNegative(limit, c.Due)
	case Tardiness:
		return c.nonNegative(limit, c.Due+limit/c.Weight)
	case Lateness:
		return c.Due + limit/c.Weight
	case SLA:
		for _, l := range c.Levels {
			if c.Weight*l.Cost > limit {
				return c.nonNegative(limit, l.Due)
			}
		}
		return c.nonNegative(limit, math.Inf(1))
	default:
		return limit / c.Weight
	}
}

// nonNegative returns t, or -Inf for a negative limit: these penalties are never below 0.
func (c *Cost) nonNegative(limit, t float64) float64 {
	if limit < 0 {
		return math.Inf(-1)
	}
	return t
}

// Breakpoints lists the times at which the cost jumps or bends, ascending.
func (c *Cost) Breakpoints() []float64 {
	switch c.Penalty {
	case Tardy, Tardiness:
		return []float64{c.Due}
	case SLA:
		dues := make([]float64, len(c.Levels))
		for i, l := range c.Levels {
			dues[i] = l.Due
		}
		return dues
	default:
		return nil
	}
}

// IsStep reports whether the cost is a step function of time. Such a cost is not convex, neither
// in the time nor in the slots.
func (c *Cost) IsStep() bool { return c.Penalty == Tardy || c.Penalty == SLA }

// Combine returns the sum or the maximum of the costs if job i ends at ends[i], in seconds from
// now.
func (a Aggregate) Combine(costs []Cost, ends []float64) float64 {
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
