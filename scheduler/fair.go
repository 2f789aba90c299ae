package scheduler

import (
	"cmp"
	"math"
	"slices"
)

// Fair guarantees each job its minimum and raises the lowest allocations with the
// rest, like water: FLEX's FAIR (section 1). Jobs are raised in proportion to their
// [Job.Share]. It measures nothing and minimises nothing.
type Fair struct{}

// Plan implements [Policy] in O(J log J). The slots that cannot be shared evenly
// go to the jobs that lack most of one, then to those that are first by priority
// and arrival, which is also the order of precedence.
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

// Share is what somebody may have of the slots.
type Share struct {
	Min, Max int
	Weight   float64 // 0: 1
}

func (s Share) weight() float64 { return cmp.Or(s.Weight, 1) }

// At is what the share holds when it is filled up to a level.
func (s Share) At(level float64) float64 {
	return max(float64(s.Min), min(float64(s.Max), s.weight()*level))
}

// WaterLevel is how high the shares are filled by so many slots, each to its weight
// times the level between its Min and its Max: 0 when the minima alone use them up,
// +Inf when nobody can use them all. O(J log J).
func WaterLevel(shares []Share, slots int) float64 {
	// Below a level a share is at its Min, between on its slope, above at its Max:
	// the total is piecewise linear in the level, with a bend at each Min and Max.
	type bend struct{ level, slope float64 }
	bends := make([]bend, 0, 2*len(shares))
	left := float64(slots)
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

// exactLevel divides anew what is about level, so that what can be divided evenly is.
func exactLevel(shares []Share, slots int, level float64) float64 {
	left, weights := float64(slots), 0.0
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

// Waterline fills the shares up to their [WaterLevel] in whole slots; what does not go
// round is given one each to those that lack most of it, then to the first. The
// minima together must not exceed the slots. O(J log J).
func Waterline(shares []Share, slots int) []int {
	level := WaterLevel(shares, slots)
	given, lack := make([]int, len(shares)), make([]float64, len(shares))
	var open []int
	left := slots
	for i, s := range shares {
		at := s.At(level)
		given[i] = int(at + tiny)
		left -= given[i]
		if rest := at - float64(given[i]); rest > tiny {
			lack[i] = math.Round(rest / tiny)
			open = append(open, i)
		}
	}
	slices.SortStableFunc(open, func(a, b int) int { return cmp.Compare(lack[b], lack[a]) })
	for _, i := range open[:max(0, min(left, len(open)))] {
		given[i]++
	}
	return given
}

// tiny is the rounding of sums of slots, with room.
const tiny = 1e-6
