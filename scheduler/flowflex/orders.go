package flowflex

import (
	"cmp"
	"math"
	"slices"
)

// sortedBy returns the flows by ascending key. Ties go to the largest lower bound, which leaves the
// least slack.
func (p *problem) sortedBy(key func(i int32) float64) []int32 {
	order := positions(len(p.flows))
	keys := make([]float64, len(order))
	for _, i := range order {
		keys[i] = key(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(keys[a], keys[b]), cmp.Compare(p.flows[b].lowerBound, p.flows[a].lowerBound))
	})
	return order
}

func (p *problem) byDeadline(deadlines []float64) []int32 {
	return p.sortedBy(func(i int32) float64 { return deadlines[i] })
}

// latestAtSameCost moves every deadline to the latest time of the same cost: the lift in
// docs/papers/flowflex.md. Where a cost is flat, a deadline from the relaxation or a schedule is
// arbitrary within the flat part. The paper does not do this, and loses half of its loss there.
func (p *problem) latestAtSameCost(deadlines []float64) []float64 {
	lifted := make([]float64, len(deadlines))
	for i, d := range deadlines {
		c := p.flows[i].cost
		lifted[i] = max(d, c.Latest(c.At(d)))
	}
	return lifted
}

// latestAtLeastCost returns, by flow, the latest completion that costs no more than the earliest.
func (p *problem) latestAtLeastCost() []float64 {
	least := make([]float64, len(p.flows))
	for i := range least {
		least[i] = p.flows[i].lowerBound
	}
	return p.latestAtSameCost(least)
}

// maxQuadratic is the largest number of flows m for which rules of O(m²) are used.
const maxQuadratic = 2000

// classicalOrders lists orders of m flows that are each good for one kind of cost: Smith's rule,
// due dates, lower bound, volume, weighted lower bound, as given, and Moore and Hodgson's rule.
// O(m²) for the last, else O(m log m).
func (p *problem) classicalOrders() [][]int32 {
	horizon := 0.0
	for i := range p.flows {
		horizon += p.flows[i].lowerBound
	}
	rates := make([]float64, len(p.flows))
	for i := range p.flows {
		f := &p.flows[i]
		rates[i] = max((f.cost.At(horizon)-f.cost.At(f.lowerBound))/max(horizon, math.SmallestNonzeroFloat64), math.SmallestNonzeroFloat64)
	}
	smith := func(i int32) float64 { return p.flows[i].volume / rates[i] }
	orders := [][]int32{
		p.sortedBy(smith),
		p.byDeadline(p.latestAtLeastCost()),
		p.sortedBy(func(i int32) float64 { return p.flows[i].lowerBound }),
		p.sortedBy(func(i int32) float64 { return p.flows[i].volume }),
		p.sortedBy(func(i int32) float64 { return p.flows[i].lowerBound / rates[i] }),
		positions(len(p.flows)),
	}
	if len(p.flows) <= maxQuadratic {
		orders = append(orders, p.mooreHodgson(rates))
	}
	return orders
}

// mooreHodgson adds flows by due date. If the surrogate (see descend) predicts a miss, the added
// flow with the most volume for its rate moves to the end.
func (p *problem) mooreHodgson(rates []float64) []int32 {
	due := p.latestAtLeastCost()
	var kept, late []int32
	area := 0.0
	for _, i := range p.byDeadline(due) {
		kept = append(kept, i)
		area += p.flows[i].volume
		if max(p.flows[i].lowerBound, area/float64(p.slots)) <= due[i]*(1+sameInstant) {
			continue
		}
		worst := 0
		for at, k := range kept {
			if p.flows[k].volume*rates[kept[worst]] > p.flows[kept[worst]].volume*rates[k] {
				worst = at
			}
		}
		area -= p.flows[kept[worst]].volume
		late = append(late, kept[worst])
		kept = slices.Delete(kept, worst, worst+1)
	}
	slices.SortStableFunc(late, func(a, b int32) int {
		return cmp.Compare(p.flows[a].volume/rates[a], p.flows[b].volume/rates[b])
	})
	return append(kept, late...)
}

// maxPasses limits descend's passes over all flows.
const maxPasses = 50

// descend improves order in place by local search on the surrogate. That is the sum of costs if
// each flow completed when all slots have done its work and the work of the flows before it, but
// not before its lower bound. Each flow moves to its best place, until none moves or the budget
// of evaluations is used up. O(m²) for each pass over m flows.
func (p *problem) descend(order []int32, budget *int) {
	m := len(order)
	rest, after := make([]int32, m), make([]float64, m+1)
	for range maxPasses {
		moved := false
		for i := range int32(m) {
			if *budget -= 2 * m; *budget < 0 {
				return
			}
			from := slices.Index(order, i)
			rest = append(append(rest[:0], order[:from]...), order[from+1:]...)
			to, gain := p.bestPlace(rest, i, from, after)
			if gain > 0 {
				rest = slices.Insert(rest, to, i)
				copy(order, rest)
				moved = true
			}
		}
		if !moved {
			return
		}
	}
}

// bestPlace returns flow i's best place among the other flows, rest, and how much it saves against
// the present place, from. after is a buffer with an entry more than flows.
func (p *problem) bestPlace(rest []int32, i int32, from int, after []float64) (to int, gain float64) {
	mine, slots := &p.flows[i], float64(p.slots)
	area := mine.volume
	for _, k := range rest {
		area += p.flows[k].volume
	}
	// after[k] is the cost of the flows from place k on, with flow i before them.
	after[len(rest)] = 0
	for k := len(rest) - 1; k >= 0; k-- {
		f := &p.flows[rest[k]]
		after[k] = after[k+1] + f.cost.At(max(f.lowerBound, area/slots))
		area -= f.volume
	}
	before, best, present := 0.0, math.Inf(1), 0.0
	for k := 0; ; k++ {
		// area is the volume of flow i and of the flows before place k.
		cost := before + mine.cost.At(max(mine.lowerBound, area/slots)) + after[k]
		if k == from {
			present = cost
		}
		if cost < best {
			to, best = k, cost
		}
		if k == len(rest) {
			break
		}
		f := &p.flows[rest[k]]
		before += f.cost.At(max(f.lowerBound, (area-mine.volume+f.volume)/slots))
		area += f.volume
	}
	if gain = present - best; gain <= sameInstant*math.Abs(present) {
		return from, 0
	}
	return to, gain
}
