package scheduler

import (
	"cmp"
	"slices"
)

// Fair guarantees each job its minimum and raises the lowest allocations with the
// rest, like water: FLEX's FAIR (section 1). It measures nothing and minimises
// nothing.
type Fair struct{}

// Plan implements [Policy] in O(J log J). The slots that cannot be shared evenly
// go to the jobs that arrived first. Order of precedence is order of arrival.
func (Fair) Plan(s Snapshot) (Plan, error) {
	s, err := s.Normal()
	if err != nil {
		return Plan{}, err
	}
	order := byArrival(s.Jobs)
	shares := make([]Share, len(order))
	for k, i := range order {
		shares[k] = Share{Min: s.Jobs[i].Min, Max: s.Jobs[i].Max}
	}
	plan := Plan{Targets: make([]Target, 0, len(order))}
	for k, slots := range Waterline(shares, s.Slots) {
		plan.Targets = append(plan.Targets, Target{Job: s.Jobs[order[k]].ID, Slots: slots})
	}
	return plan, nil
}

// Share is what a job may have of the slots.
type Share struct{ Min, Max int }

// Waterline fills the shares up to a common level between each one's Min and Max,
// until the slots are used up; what does not go round is given one each to the
// first that are at the level. The minima together must not exceed the slots.
// O(J log J).
func Waterline(shares []Share, slots int) []int {
	given := make([]int, len(shares))
	left := slots
	// Below a level a share is at its Min, between at the level, above at its Max:
	// the total is piecewise linear in the level, with a bend at each Min and Max.
	type bend struct{ level, slope int }
	bends := make([]bend, 0, 2*len(shares))
	for i, s := range shares {
		given[i] = s.Min
		left -= s.Min
		if s.Min < s.Max {
			bends = append(bends, bend{s.Min, 1}, bend{s.Max, -1})
		}
	}
	slices.SortFunc(bends, func(a, b bend) int { return cmp.Compare(a.level, b.level) })
	level, slope := 0, 0
	for _, b := range bends {
		if rise := (b.level - level) * slope; rise > left {
			break
		} else {
			left -= rise
		}
		level = b.level
		slope += b.slope
	}
	if slope > 0 {
		level += left / slope
		left %= slope
	}
	for i, s := range shares {
		given[i] = max(s.Min, min(s.Max, level))
		if given[i] == level && level < s.Max && left > 0 && slope > 0 {
			given[i]++
			left--
		}
	}
	return given
}
