package flowflex

import (
	"cmp"
	"slices"
)

// proportional divides the slots of a pseudo-job among its parts in proportion to their maxima,
// in whole slots. Stage 3 of the paper (section 4.3) uses McNaughton's wrap-around rule: its
// pieces are shorter than tasks. Leftover slots go to the largest remainders, so no part
// exceeds its maximum. O(parts log parts).
func (c *chain) proportional(into []Share, parts []allocation, r run) []Share {
	slots, most := int64(r.slots), int64(c.jobs[r.job].max)
	byRest, left := make([]int, len(parts)), slots
	first := len(into)
	for i, p := range parts {
		byRest[i] = i
		into = append(into, Share{int(r.flow), int(p.job), int(p.slots * slots / most)})
		left -= p.slots * slots / most
	}
	slices.SortStableFunc(byRest, func(a, b int) int {
		return cmp.Compare(parts[b].slots*slots%most, parts[a].slots*slots%most)
	})
	for _, i := range byRest[:left] {
		into[first+i].Slots++
	}
	return slices.DeleteFunc(into, func(s Share) bool { return s.Slots == 0 })
}

// Share is a job's slots at one instant.
type Share struct {
	Flow, Job int // positions in the Problem
	Slots     int
}
