package flex

import (
	"math"
	"slices"

	"github.com/quernmr/quern/scheduler"
)

// maxLoss limits how much worse than the best schedule for a maximum a steadier one may be, as a
// fraction of the value.
const maxLoss = 0.02

// steady returns a schedule that tolerates inexact estimates and indivisible slots. The best
// schedule for a maximum may let every job end as late as the maximum allows, so that any delay
// raises it. Of the schedules within maxLoss, steady takes the one with the least sum of ends,
// from shortestOrder or Smith's rule. O(J log J), and shortestOrder.
func (p *Problem) steady(best *Solution) *Solution {
	if p.Aggregate != scheduler.Max || len(p.Jobs) < 2 {
		return best
	}
	k := newPacker(p)
	limit := best.Value + maxLoss*math.Abs(best.Value) + 1e-9
	total := sum(best.Ends)
	for _, order := range [][]int{shortestOrder(p), p.smithOrder(limit)} {
		if v := k.value(order); v <= limit && k.total() < total {
			total = k.total()
			best = &Solution{k.schedule(order), v, "steady"}
		}
	}
	return best
}

// smithOrder returns the order of Smith's rule, with the latest ends that cost at most limit as
// deadlines: from the last place to the first, it takes the longest job that may end that late.
func (p *Problem) smithOrder(limit float64) []int {
	due := p.keys(func(j *Job) float64 { return j.Cost.Latest(limit) })
	waiting := sorted(due) // by latest end; the latest are taken from the back
	var eligible events    // jobs that may end at this place, the longest first
	work := 0.0            // of all jobs up to this place
	for j := range p.Jobs {
		work += p.Jobs[j].Work
	}
	order := make([]int, 0, len(p.Jobs))
	for range p.Jobs {
		for len(waiting) > 0 && (due[waiting[len(waiting)-1]]*float64(p.Slots) >= work-1e-9*work || len(eligible) == 0) {
			j := waiting[len(waiting)-1]
			waiting = waiting[:len(waiting)-1]
			eligible.push(event{-p.Jobs[j].Work, j})
		}
		j := eligible.pop().job
		order = append(order, j)
		work -= p.Jobs[j].Work
	}
	slices.Reverse(order)
	return order
}

func sum(list []float64) float64 {
	total := 0.0
	for _, x := range list {
		total += x
	}
	return total
}
