// Package optimum finds the best of all orderings for the Malleable Packing Scheme (MPS), by
// which the paper divides its figures (section 4.1). It takes exponential time and is for
// experiments and tests.
//
// The search chooses the next job of the ordering only when there is slack to assign. Before
// that the ordering does not matter.
//
//	O1  Value is exact: the smallest value of MPS over all orderings.
//	O2  If every job can use all slots, one job at a time has the slack and all others have
//	    their minima. Then the set of ended jobs determines the time and the work left
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

// maxSets is the largest number of jobs for bySets, which bounds its memory.
const maxSets = 20

// endAtMin returns the end of a job that always has its minimum.
func endAtMin(j *flex.Job) float64 {
	if j.Min == 0 && j.Work > 0 {
		return math.Inf(1)
	}
	return j.Work / max(1, float64(j.Min))
}

// combine adds the costs of two sets of jobs, or takes their maximum.
func combine(a scheduler.Aggregate, x, y float64) float64 {
	if a == scheduler.Max {
		return max(x, y)
	}
	return x + y
}

// emptyCost returns the cost of no jobs.
func emptyCost(a scheduler.Aggregate) float64 {
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
	slices.SortFunc(low, func(a, b int) int { return cmp.Compare(endAtMin(&p.Jobs[a]), endAtMin(&p.Jobs[b])) })
	best, time := make([]float64, 1<<n), make([]float64, 1<<n)
	for set := range best {
		best[set] = math.Inf(1)
	}
	best[0] = emptyCost(p.Aggregate)
	for set := range len(best) - 1 {
		if math.IsInf(best[set], 1) && set > 0 {
			continue
		}
		for top := range n {
			if set>>top&1 == 0 {
				next, now, cost := serve(p, low, set, top, time[set])
				if cost = combine(p.Aggregate, best[set], cost); cost < best[next] {
					best[next] = cost
				}
				time[next] = now
			}
		}
	}
	return best[len(best)-1]
}

// serve gives all slack to job top until it ends. It returns the set of ended jobs, the time,
// and the cost of all jobs that have ended meanwhile.
func serve(p *flex.Problem, low []int, set, top int, now float64) (next int, end, cost float64) {
	slots := p.Slots
	for j := range p.Jobs {
		if set>>j&1 == 0 && j != top {
			slots -= p.Jobs[j].Min
		}
	}
	left := max(0, p.Jobs[top].Work-float64(p.Jobs[top].Min)*now)
	cost = emptyCost(p.Aggregate)
	for _, j := range low {
		if set>>j&1 == 1 || j == top {
			continue
		}
		e := max(now, endAtMin(&p.Jobs[j]))
		if e >= now+left/float64(slots) {
			break
		}
		left = max(0, left-float64(slots)*(e-now))
		now = e
		slots += p.Jobs[j].Min
		set |= 1 << j
		cost = combine(p.Aggregate, cost, p.Jobs[j].Cost.At(now))
	}
	now += left / float64(slots)
	return set | 1<<top, now, combine(p.Aggregate, cost, p.Jobs[top].Cost.At(now))
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
	b.explore(0, left, nil, emptyCost(p.Aggregate))
	return b.best
}

type branches struct {
	p      *flex.Problem
	best   float64
	linear bool  // the metric is a sum of linear costs
	order  []int // buffer
}

// bound returns a lower bound of the final cost: each live job has all slots it can use. For
// sums of linear costs, another bound runs the jobs one after the other on all slots, by
// Smith's rule, which is optimal on one machine. The larger bound counts.
func (b *branches) bound(now float64, left []float64, cost float64) float64 {
	alone, sequential, work := cost, cost, 0.0
	b.order = b.order[:0]
	for j, l := range left {
		if l >= 0 {
			job := &b.p.Jobs[j]
			alone = combine(b.p.Aggregate, alone, job.Cost.At(now+l/float64(min(job.Max, b.p.Slots))))
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
		sequential += b.p.Jobs[j].Cost.At(now + work/float64(b.p.Slots))
	}
	return max(alone, sequential)
}

// explore continues from a time with work left[j] of job j, -1 if it has ended. prefix has the
// live jobs of the ordering so far; cost is the cost of the ended jobs.
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
	b.explore(end, after, rest, combine(b.p.Aggregate, cost, b.p.Jobs[job].Cost.At(end)))
}
