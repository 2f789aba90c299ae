package flex

import (
	"math"
	"slices"

	"github.com/quernmr/quern/scheduler"
)

// leeway is the fraction of its value by which a schedule for a maximum may be worse than the
// best one, to end jobs sooner on average.
const maxLoss = 0.02

// steady is a schedule for inexact estimates and indivisible slots. The best schedule for a
// maximum may let every job end as late as the maximum allows, so that any overrun raises it.
// Of the nearly as good schedules, steady takes the one that ends jobs soonest, by Smith's
// rule: from the last place to the first, the longest of the jobs that may end that late. O(J
// log J).
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

// smith is the order of Smith's rule for the latest ends that cost at most limit.
func (p *Problem) smithOrder(limit float64) []int {
	due := p.keys(func(j *Job) float64 { return j.Cost.Latest(limit) })
	waiting := sorted(due) // by latest end; the latest are taken from the back
	var may events         // jobs that may end at this place, the longest first
	end := 0.0
	for j := range p.Jobs {
		end += p.Jobs[j].Work
	}
	order := make([]int, 0, len(p.Jobs))
	for range p.Jobs {
		for len(waiting) > 0 && (due[waiting[len(waiting)-1]]*float64(p.Slots) >= end-1e-9*end || len(may) == 0) {
			j := waiting[len(waiting)-1]
			waiting = waiting[:len(waiting)-1]
			may.push(event{-p.Jobs[j].Work, j})
		}
		j := may.pop().job
		order = append(order, j)
		end -= p.Jobs[j].Work
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
