package scheduler

import (
	"cmp"
	"math"
	"slices"
)

// Fair gives each job its minimum and raises the lowest allocations with the rest, like water:
// FLEX's FAIR (section 1). Jobs rise in proportion to their [Job.Share]. It minimises nothing.
type Fair struct{}

// Plan implements [Policy] in O(J log J). Leftover slots go to the jobs with the largest
// remainders, then to the first by priority and arrival. That is also the order of precedence.
func (Fair) Plan(s Snapshot) (Plan, error) {
	s, err := s.Normal()
	if err != nil {
		return Plan{}, err
	}
	order := byArrival(s.Jobs)
	shares := make([]Share, len(order))
	for k, i := range order {
		j := &s.Jobs[i]
		shares[k] = Share{Min: j.Min, Max: j.Max, Weight: j.Share}
	}
	plan := Plan{Targets: make([]Target, 0, len(order))}
	for k, slots := range Waterline(shares, s.Slots) {
		plan.Targets = append(plan.Targets, Target{Job: s.Jobs[order[k]].ID, Slots: slots})
	}
	return plan, nil
}

// Share has the bounds and the weight of one job or pool that gets a part of the slots.
type Share struct {
	Min, Max int
	Weight   float64 // 0: 1
}

func (s Share) weight() float64 { return cmp.Or(s.Weight, 1) }

// At returns the share's slots at a water level.
func (s Share) At(level float64) float64 {
	return max(float64(s.Min), min(float64(s.Max), s.weight()*level))
}

// WaterLevel returns the level at which the shares use all slots: each share gets its weight
// times the level, but at least its Min and at most its Max. It returns 0 if the minima use up
// all slots, +Inf if slots remain at the maxima. O(J log J) for J shares.
func WaterLevel(shares []Share, slots float64) float64 {
	// Below a level a share is at its Min, then on its slope, then at its Max: the total is
	// piecewise linear in the level, with a bend at each Min and Max.
	type bend struct{ level, slope float64 }
	bends := make([]bend, 0, 2*len(shares))
	left := slots
	for _, s := range shares {
		left -= float64(s.Min)
		if w := s.weight(); s.Min < s.Max {
			bends = append(bends, bend{float64(s.Min) / w, w}, bend{float64(s.Max) / w, -w})
		}
	}
	if left <= 0 {
		return 0
	}
	slices.SortFunc(bends, func(a, b bend) int { return cmp.Compare(a.level, b.level) })
	level, slope := 0.0, 0.0
	for _, b := range bends {
		rise := (b.level - level) * slope
		if rise > left {
			return exactLevel(shares, slots, level+left/slope)
		}
		left -= rise
		level = b.level
		slope += b.slope
	}
	return math.Inf(1)
}

// exactLevel recomputes an approximate level without the rounding errors of the sum, so that
// equal shares get equal slots.
func exactLevel(shares []Share, slots, level float64) float64 {
	left, weights := slots, 0.0
	for _, s := range shares {
		w := s.weight()
		if at := w * level; float64(s.Min) < at && at < float64(s.Max) {
			weights += w
		} else {
			left -= s.At(level)
		}
	}
	if weights == 0 {
		return level
	}
	return left / weights
}

// Waterline returns each share's whole slots at the [WaterLevel]. Slots left by rounding down
// go, one each, to the largest remainders, ties to the first share. The minima together must
// not exceed the slots. O(J log J) for J shares.
func Waterline(shares []Share, slots int) []int {
	level := WaterLevel(shares, float64(slots))
	given, remainders := make([]int, len(shares)), make([]float64, len(shares))
	var partial []int
	left := slots
	for i, s := range shares {
		at := s.At(level)
		given[i] = int(at + rounding)
		left -= given[i]
		if rest := at - float64(given[i]); rest > rounding {
			remainders[i] = math.Round(rest / rounding)
			partial = append(partial, i)
		}
	}
	slices.SortStableFunc(partial, func(a, b int) int { return cmp.Compare(remainders[b], remainders[a]) })
	for _, i := range partial[:max(0, min(left, len(partial)))] {
		given[i]++
	}
	return given
}

// rounding bounds the rounding error of sums of slots.
const rounding = 1e-6
