// Package optimum finds the best of all orderings for the Malleable Packing Scheme: the
// reference of package flex and the denominator of the paper's figures (section 4.1). It takes
// exponential time and is for experiments and tests.
//
// An ordering matters only when slack is assigned by it, so the search chooses the next job of
// the ordering only then.
//
//	O1  Value is exact: no ordering gives MPS a smaller value, some ordering this one.
//	O2  If every job can use all slots, one job at a time has the slack and all others are
//	    at their minima. Then the set of ended jobs determines the time and the work left
//	    of each other job: the time is the work of the ended jobs divided by the slots
//	    beyond the others' minima. So there are 2^J states with at most J successors each:
//	    O(2^J·J²).
//	O3  Otherwise it is branch and bound over the orderings, O(J!·J²) at worst.
package optimum

import (
	"cmp"
	"math"
	"slices"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/flex"
)

// Value is the least value of the problem's metric over all orderings.
func Value(p *flex.Problem) (float64, error) {
	if err := p.Check(); err != nil {
		return 0, err
	}
	if len(p.Jobs) <= maxSets && !slices.ContainsFunc(p.Jobs, func(j flex.Job) bool { return j.Max < p.Slots }) {
		return bySets(p), nil
	}
	return byBranches(p), nil
}

// maxSets bounds the memory of bySets.
const maxSets = 20

func lowEnd(j *flex.Job) float64 {
	if j.Min == 0 && j.Work > 0 {
		return math.Inf(1)
	}
	return j.Work / max(1, float64(j.Min))
}

func join(a scheduler.Aggregate, x, y float64) float64 {
	if a == scheduler.Max {
		return max(x, y)
	}
	return x + y
}

func none(a scheduler.Aggregate) float64 {
	if a == scheduler.Max {
		return math.Inf(-1)
	}
	return 0
}

// bySets is dynamic programming over the sets of ended jobs (O2).
func bySets(p *flex.Problem) float64 {
	n := len(p.Jobs)
	low := make([]int, n)
	for j := range low {
		low[j] = j
	}
	slices.SortFunc(low, func(a, b int) int { return cmp.Compare(lowEnd(&p.Jobs[a]), lowEnd(&p.Jobs[b])) })
	best, time := make([]float64, 1<<n), make([]float64, 1<<n)
	for set := range best {
		best[set] = math.Inf(1)
	}
	best[0] = none(p.Aggregate)
	for set := range len(best) - 1 {
		if math.IsInf(best[set], 1) && set > 0 {
			continue
		}
		for top := range n {
			if set>>top&1 == 0 {
				next, now, cost := serve(p, low, set, top, time[set])
				if cost = join(p.Aggregate, best[set], cost); cost < best[next] {
					best[next] = cost
				}
				time[next] = now
			}
		}
	}
	return best[len(best)-1]
}

// serve gives all slack to job top until it ends. It returns the set of ended jobs, the time,
// and the cost of the jobs that ended on the way.
func serve(p *flex.Problem, low []int, set, top int, now float64) (next int, end, cost float64) {
	slots := p.Slots
	for j := range p.Jobs {
		if set>>j&1 == 0 && j != top {
			slots -= p.Jobs[j].Min
		}
	}
	left := max(0, p.Jobs[top].Work-float64(p.Jobs[top].Min)*now)
	cost = none(p.Aggregate)
	for _, j := range low {
		if set>>j&1 == 1 || j == top {
			continue
		}
		e := max(now, lowEnd(&p.Jobs[j]))
		if e >= now+left/float64(slots) {
			break
		}
		left = max(0, left-float64(slots)*(e-now))
		now = e
		slots += p.Jobs[j].Min
		set |= 1 << j
		cost = join(p.Aggregate, cost, p.Jobs[j].Cost.At(now))
	}
	now += left / float64(slots)
	return set | 1<<top, now, join(p.Aggregate, cost, p.Jobs[top].Cost.At(now))
}

// byBranches is branch and bound (O3).
func byBranches(p *flex.Problem) float64 {
	b := &branches{p: p, best: math.Inf(1), linear: p.Aggregate == scheduler.Sum}
	left := make([]float64, len(p.Jobs))
	for j := range left {
		left[j] = p.Jobs[j].Work
		penalty := p.Jobs[j].Cost.Penalty
		b.linear = b.linear && (penalty == scheduler.Response || penalty == scheduler.Lateness)
	}
	b.explore(0, left, nil, none(p.Aggregate))
	return b.best
}

type branches struct {
	p      *flex.Problem
	best   float64
	linear bool  // the metric is a sum of linear costs
	order  []int // buffer
}

// bound is the least cost of the live jobs, each with all slots it can use. For sums of linear
// costs it is also the cost of all of them one after the other on all slots by Smith's rule,
// which is optimal on one machine.
func (b *branches) bound(now float64, left []float64, cost float64) float64 {
	alone, inTurn, work := cost, cost, 0.0
	b.order = b.order[:0]
	for j, l := range left {
		if l >= 0 {
			job := &b.p.Jobs[j]
			alone = join(b.p.Aggregate, alone, job.Cost.At(now+l/float64(min(job.Max, b.p.Slots))))
			b.order = append(b.order, j)
		}
	}
	if !b.linear {
		return alone
	}
	slices.SortFunc(b.order, func(x, y int) int {
		return cmp.Compare(left[x]*b.p.Jobs[y].Cost.Weight, left[y]*b.p.Jobs[x].Cost.Weight)
	})
	for _, j := range b.order {
		work += left[j]
		inTurn += b.p.Jobs[j].Cost.At(now + work/float64(b.p.Slots))
	}
	return max(alone, inTurn)
}

// explore continues from a time with work left[j] of job j, -1 if it has ended. prefix is the
// live jobs of the ordering so far, cost that of the ended ones.
func (b *branches) explore(now float64, left []float64, prefix []int, cost float64) {
	live, slack := 0, b.p.Slots
	for j, l := range left {
		if l >= 0 {
			live++
			slack -= b.p.Jobs[j].Min
		}
	}
	if live == 0 {
		b.best = min(b.best, cost)
		return
	}
	if b.bound(now, left, cost) >= b.best {
		return
	}
	slots := make([]int, len(left))
	for j := range left {
		slots[j] = b.p.Jobs[j].Min
	}
	for _, j := range prefix {
		more := min(slack, b.p.Jobs[j].Max-slots[j])
		slots[j] += more
		slack -= more
	}
	if slack > 0 && len(prefix) < live {
		for j, l := range left {
			if l >= 0 && !slices.Contains(prefix, j) {
				b.explore(now, left, append(slices.Clone(prefix), j), cost)
			}
		}
		return
	}
	end, job := math.Inf(1), -1
	for j, l := range left {
		if l >= 0 && (job < 0 || now+l/float64(slots[j]) < end) {
			end, job = now+l/float64(slots[j]), j
		}
	}
	after := slices.Clone(left)
	for j, l := range left {
		if l >= 0 {
			after[j] = max(0, l-float64(slots[j])*(end-now))
		}
	}
	after[job] = -1
	rest := slices.DeleteFunc(slices.Clone(prefix), func(j int) bool { return j == job })
	b.explore(end, after, rest, join(b.p.Aggregate, cost, b.p.Jobs[job].Cost.At(end)))
}
