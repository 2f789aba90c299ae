package flowflex

import (
	"fmt"
	"math"
)

// Cost is what a flow costs when it completes at a time t ≥ 0, in seconds from
// now: a non-decreasing function in linear pieces, continuous from the left, so
// that completing exactly at a deadline is in time (FlowFlex, section 3, Figure 2).
//
// Times that differ by less than a billionth of their size are the same instant:
// schedules are sums of many terms, and a rounding error must not miss a deadline.
type Cost []Piece

// Piece holds for t > From, up to the From of the next; the first holds at its
// From too, which is 0.
type Piece struct {
	From  float64 // seconds
	Value float64 // cost just after From
	Slope float64 // cost per second
}

const sameInstant = 1e-9

// Response is the cost weight × t: completion time, or stretch where the weight
// is one over the flow's size.
func Response(weight float64) Cost { return Cost{{0, 0, weight}} }

// Tardy costs weight when the flow completes after its deadline. A deadline that
// is not after now is missed.
func Tardy(weight, deadline float64) Cost {
	if deadline <= 0 {
		return Cost{{0, weight, 0}}
	}
	return Cost{{0, 0, 0}, {deadline, weight, 0}}
}

// Tardiness costs weight for each second after the deadline, which may be past.
func Tardiness(weight, deadline float64) Cost {
	if deadline <= 0 {
		return Cost{{0, -weight * deadline, weight}}
	}
	return Cost{{0, 0, 0}, {deadline, 0, weight}}
}

// Lateness costs weight for each second after the deadline, and has a negative
// cost before it.
func Lateness(weight, deadline float64) Cost { return Cost{{0, -weight * deadline, weight}} }

// Step is one of several deadlines of a service level agreement.
type Step struct {
	Deadline float64 // seconds from now; may be past
	Cost     float64 // in all, for a flow that completes after it
}

// Agreement is the cost of the last step that was missed, 0 if none was. Steps
// are in order of their deadlines.
func Agreement(steps []Step) Cost {
	c := Cost{{0, 0, 0}}
	for _, s := range steps {
		if s.Deadline <= 0 {
			c[0].Value = s.Cost
		} else {
			c = append(c, Piece{s.Deadline, s.Cost, 0})
		}
	}
	return c
}

// At is the cost of completing at t.
func (c Cost) At(t float64) float64 {
	for i := len(c) - 1; i > 0; i-- {
		if t > c[i].From*(1+sameInstant) {
			return c[i].Value + c[i].Slope*(t-c[i].From)
		}
	}
	return c[0].Value + c[0].Slope*t
}

// After is the least cost of completing later than t: the limit from the right.
func (c Cost) After(t float64) float64 {
	for i := len(c) - 1; i > 0; i-- {
		if t >= c[i].From*(1-sameInstant) {
			return c[i].Value + c[i].Slope*max(0, t-c[i].From)
		}
	}
	return c[0].Value + c[0].Slope*t
}

// Latest is the last instant at which completing costs at most value: minus
// infinity where there is none, infinity where there is no last (FlowFlex, Figure
// 8, step 5).
func (c Cost) Latest(value float64) float64 {
	value += 1e-12 * math.Abs(value)
	latest := math.Inf(-1)
	for i, p := range c {
		if p.Value > value {
			break
		}
		end := math.Inf(1)
		if i+1 < len(c) {
			end = c[i+1].From
		}
		if p.Slope == 0 {
			latest = end
			continue
		}
		if latest = min(end, p.From+(value-p.Value)/p.Slope); latest < end {
			break
		}
	}
	return latest
}

// check names what is wrong with a cost.
func (c Cost) check() error {
	if len(c) == 0 {
		return fmt.Errorf("cost has no pieces")
	}
	for i, p := range c {
		for _, x := range []float64{p.From, p.Value, p.Slope} {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return fmt.Errorf("cost piece %d is not finite: %+v", i, p)
			}
		}
		switch {
		case p.Slope < 0:
			return fmt.Errorf("cost piece %d falls by %v a second", i, -p.Slope)
		case i == 0 && p.From != 0:
			return fmt.Errorf("cost piece 0 is from %v, not 0", p.From)
		case i > 0 && p.From <= c[i-1].From:
			return fmt.Errorf("cost piece %d is from %v, not after %v", i, p.From, c[i-1].From)
		case i > 0 && p.Value < c[i-1].Value+c[i-1].Slope*(p.From-c[i-1].From)*(1-sameInstant):
			return fmt.Errorf("cost piece %d falls to %v", i, p.Value)
		}
	}
	return nil
}
