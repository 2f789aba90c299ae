package flowflex

import (
	"cmp"
	"slices"
)

// proportional divides the slots of a pseudo-job's run among its jobs in proportion to their
// maxima, in whole slots, and appends the shares to into. Slots left by rounding down go to the
// largest remainders, so no job exceeds its maximum. O(n log n) for n jobs.
//
// The paper's stage 3 (section 4.3) uses McNaughton's wrap-around rule instead. Its pieces are
// shorter than tasks.
func (c *chain) proportional(into []Share, jobs []allocation, r run) []Share {
	slots, most := int64(r.slots), int64(c.jobs[r.job].max)
	byRemainder, left := make([]int, len(jobs)), slots
	first := len(into)
	for i, j := range jobs {
		byRemainder[i] = i
		into = append(into, Share{int(r.flow), int(j.job), int(j.slots * slots / most)})
		left -= j.slots * slots / most
	}
	slices.SortStableFunc(byRemainder, func(a, b int) int {
		return cmp.Compare(jobs[b].slots*slots%most, jobs[a].slots*slots%most)
	})
	for _, i := range byRemainder[:left] {
		into[first+i].Slots++
	}
	return slices.DeleteFunc(into, func(s Share) bool { return s.Slots == 0 })
}

// Share is a job's slots at one instant.
type Share struct {
	Flow, Job int // indexes in the Problem
	Slots     int
}
