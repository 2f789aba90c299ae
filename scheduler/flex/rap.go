package flex

import (
	"math"
	"slices"

	"github.com/quernmr/quern/scheduler"
)

// The generic scheme (section 3.2): choose each job's constant number of slots
// s_j, Σ s_j <= S, m_j <= s_j <= M_j, so that the sum or the maximum of
// F_j(s_j) = cost of ending at W_j/s_j is least. This separable resource allocation
// problem (RAP) has two solvers, solveConvex and solveByDP.
//
// The paper calls tardiness not convex. As a function of the slots it is: W/s - d is convex in
// s, and so is its maximum with 0. Only tardy count and SLA, which the paper leaves out, need
// dynamic programming.

// costWith returns F_j(slots). Zero slots count as half a slot, because the job gets more later.
func (j *Job) costWith(slots int) float64 {
	return j.Cost.At(j.Work / max(0.5, float64(slots)))
}

// Moldable solves the RAP and returns the slots by job and the metric's value. For a sum, units
// above 0 divides the slack into at most that many units, for dynamic programming. As many units
// as slots are exact; 0 leaves the choice to Solve. The problem must pass Check.
func Moldable(p *Problem, units int) (slots []int, value float64) {
	if p.Aggregate == scheduler.Sum && units > 0 {
		slots = p.solveInUnits(units)
	} else {
		slots = p.moldable()
	}
	ends := make([]float64, len(slots))
	for j, s := range slots {
		ends[j] = p.Jobs[j].Work / max(0.5, float64(s))
	}
	return slots, p.Value(ends)
}

// moldable solves the RAP and returns the slots by job.
func (p *Problem) moldable() []int {
	switch {
	case p.Aggregate == scheduler.Max:
		// Minimax becomes a convex minisum through G_j(s) = -Σ_{i<s} F_j(i): the gain of one
		// more slot is the cost without it. The paper's sum lacks the sign.
		return p.solveConvex(func(j, s int) float64 { return p.Jobs[j].costWith(s) })
	case slices.ContainsFunc(p.Jobs, func(j Job) bool { return j.Cost.IsStep() }):
		return p.solveByDP()
	default:
		return p.solveConvex(func(j, s int) float64 { return p.Jobs[j].costWith(s) - p.Jobs[j].costWith(s+1) })
	}
}

// moldableOrder returns the generic ordering: by the ends in a solution of the RAP.
func (p *Problem) moldableOrder(slots []int) []int {
	keys := make([]float64, len(slots))
	for j, s := range slots {
		keys[j] = p.Jobs[j].Work / max(0.5, float64(s))
	}
	return sorted(keys)
}

// solveConvex gives each slot of the slack to the job that gains most. gain(j, s) is job j's
// gain from slot s+1 and does not grow with s; ties go to the lower index. It selects as Galil
// and Megiddo do, in O(log S) rounds of O(J log J + J log S): the weighted median of the gains in
// the middle of all open ranges is a threshold that settles at least a quarter of the open slots.
func (p *Problem) solveConvex(gain func(j, s int) float64) []int {
	c := selection{gain: gain, given: make([]int, len(p.Jobs)), most: make([]int, len(p.Jobs)), left: p.slack()}
	for j, job := range p.Jobs {
		c.given[j] = job.Min
		c.most[j] = min(job.Max, job.Min+c.left)
	}
	for c.left > 0 && c.halve() {
	}
	return c.given
}

// selection has, for each job, the slots that it gets for certain (given) and the most that it
// may get. The slots between are its open range.
type selection struct {
	gain        func(j, s int) float64
	given, most []int
	left        int // slots not yet given

	middles []middle // of open ranges
	scratch []middle // buffer of median
	above   []int    // by job: slots of the open range that gain more than the threshold
	atLeast []int    // by job: slots that gain at least the threshold
}

// middle is the gain in the middle of job j's open range, with the size of that range.
type middle struct {
	gain float64
	j    int
	size int
}

// halve settles a part of the open ranges and reports whether any are left.
func (c *selection) halve() bool {
	c.middles, c.above, c.atLeast = c.middles[:0], c.above[:0], c.atLeast[:0]
	total := 0
	for j := range c.given {
		if size := c.most[j] - c.given[j]; size > 0 {
			c.middles = append(c.middles, middle{c.gain(j, c.given[j]+size/2), j, size})
			total += size
		}
	}
	if total <= c.left {
		copy(c.given, c.most)
		return false
	}
	threshold := c.median(total)
	above, atLeast := 0, 0
	for _, m := range c.middles {
		a := c.count(m.j, func(g float64) bool { return g > threshold })
		b := c.count(m.j, func(g float64) bool { return g >= threshold })
		c.above, c.atLeast = append(c.above, a), append(c.atLeast, b)
		above, atLeast = above+a, atLeast+b
	}
	for i, m := range c.middles {
		switch {
		case above > c.left:
			c.most[m.j] = c.given[m.j] + c.above[i]
		case atLeast < c.left:
			c.given[m.j] += c.atLeast[i]
		default:
			c.given[m.j] += c.above[i]
			c.most[m.j] = c.given[m.j] + c.atLeast[i] - c.above[i]
		}
	}
	switch {
	case above > c.left:
	case atLeast < c.left:
		c.left -= atLeast
	default: // the rest are ties
		c.left -= above
		for _, m := range c.middles {
			more := min(c.left, c.most[m.j]-c.given[m.j])
			c.given[m.j] += more
			c.left -= more
		}
		return false
	}
	return true
}

// median returns the median of the middles' gains, weighted by size, by quickselect.
func (c *selection) median(total int) float64 {
	open := append(c.scratch[:0], c.middles...)
	c.scratch = open
	for want := total / 2; ; {
		pivot := open[len(open)/2].gain
		high, equal := 0, 0 // open[:high] gain more than the pivot, open[high:equal] as much
		highSize, equalSize := 0, 0
		for i, m := range open {
			switch {
			case m.gain > pivot:
				open[i], open[equal] = open[equal], open[high]
				open[high] = m
				high, equal = high+1, equal+1
				highSize += m.size
			case m.gain == pivot:
				open[i], open[equal] = open[equal], m
				equal++
				equalSize += m.size
			}
		}
		switch {
		case want < highSize:
			open = open[:high]
		case want < highSize+equalSize || equal == len(open):
			return pivot
		default:
			want -= highSize + equalSize
			open = open[equal:]
		}
	}
}

// count returns how many first slots of job j's open range gain enough.
func (c *selection) count(j int, enough func(g float64) bool) int {
	low, high := c.given[j], c.most[j] // enough holds below low, and fails from high on
	for low < high {
		if middle := (low + high) / 2; enough(c.gain(j, middle)) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low - c.given[j]
}

// maxUnits and maxCells limit the units of slots, and the table, of the dynamic programme.
const (
	maxUnits = 10_000
	maxCells = 10_000_000
)

// solveByDP solves the RAP for costs that are not convex, by dynamic programming over U units of
// slots. For a job with a step cost it tries only the fewest units for each step: O(J·L·U) for J
// jobs with L steps. For other costs it tries all numbers: O(J·U²), the paper's O(J·S²). U is at
// most maxUnits; maxCells may reduce it to 100, so a unit may be several slots.
func (p *Problem) solveByDP() []int {
	withoutSteps := 0
	for j := range p.Jobs {
		if !p.Jobs[j].Cost.IsStep() {
			withoutSteps++
		}
	}
	units := min(maxUnits, maxCells/max(1, len(p.Jobs)))
	for units > 100 && withoutSteps*units*units/2 > maxCells {
		units--
	}
	return p.solveInUnits(max(100, units))
}

// solveInUnits solves the RAP by dynamic programming with at most limit units of slots.
func (p *Problem) solveInUnits(limit int) []int {
	slack := p.slack()
	unit := max(1, (slack+limit-1)/limit) // slots of a unit
	n := slack / unit
	best := make([]float64, n+1) // the least cost of the jobs so far with u units
	next := make([]float64, n+1)
	chosen := make([]uint16, len(p.Jobs)*(n+1)) // the index of the chosen option
	options := make([][]option, len(p.Jobs))
	for j := range p.Jobs {
		options[j] = p.Jobs[j].options(n, unit)
		row := chosen[j*(n+1) : (j+1)*(n+1)]
		for u := range next {
			next[u] = math.Inf(1)
		}
		for k, o := range options[j] {
			for u, without := range best[:n+1-min(o.units, n+1)] {
				if cost := without + o.cost; cost < next[u+o.units] {
					next[u+o.units], row[u+o.units] = cost, uint16(k)
				}
			}
		}
		best, next = next, best
	}
	slots := make([]int, len(p.Jobs))
	for j, left := len(p.Jobs)-1, n; j >= 0; j-- {
		u := options[j][chosen[j*(n+1)+left]].units
		left -= u
		slots[j] = min(p.Jobs[j].Max, p.Jobs[j].Min+u*unit)
	}
	return slots
}

// option is a number of units for a job and its cost with them.
type option struct {
	units int
	cost  float64
}

// options lists the fewest units for each possible cost of the job, for units of unit slots.
func (j *Job) options(units, unit int) []option {
	units = min(units, (j.Max-j.Min+unit-1)/unit)
	cost := func(u int) float64 { return j.costWith(min(j.Max, j.Min+u*unit)) }
	options := []option{{0, cost(0)}}
	if !j.Cost.IsStep() {
		for u := 1; u <= units; u++ {
			options = append(options, option{u, cost(u)})
		}
		return options
	}
	for options[len(options)-1].cost > 0 {
		// The cost falls with the units: search for the first number at which it does.
		last := options[len(options)-1]
		low, high := last.units, units+1
		for high-low > 1 {
			if middle := (low + high) / 2; cost(middle) < last.cost {
				high = middle
			} else {
				low = middle
			}
		}
		if high > units {
			break
		}
		options = append(options, option{high, cost(high)})
	}
	return options
}
