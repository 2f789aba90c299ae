package flex

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/quernmr/quern/scheduler"
)

// Problem has jobs that are all present now, with their costs. Other types name jobs by index.
type Problem struct {
	Slots     int
	Aggregate scheduler.Aggregate
	Jobs      []Job
}

// Job is a job's phase.
type Job struct {
	Work     float64 // slot-seconds left
	Min, Max int     // slots
	Cost     scheduler.Cost
}

// Check reports the first job and field that break the solvers' assumptions: work is finite and
// not negative, 0 <= Min <= Max, Max is at least 1, all minima fit the slots, weights are above
// 0, and levels of cost do not fall.
func (p *Problem) Check() error {
	if p.Slots < 1 && len(p.Jobs) > 0 {
		return fmt.Errorf("field Slots is %d", p.Slots)
	}
	left := p.Slots
	for i, j := range p.Jobs {
		switch {
		case !(j.Work >= 0 && j.Work <= math.MaxFloat64):
			return fmt.Errorf("job %d: field Work is %v", i, j.Work)
		case j.Max < 1:
			return fmt.Errorf("job %d: field Max is %d", i, j.Max)
		case j.Min < 0 || j.Min > j.Max:
			return fmt.Errorf("job %d: field Min is %d, Max %d", i, j.Min, j.Max)
		case !(j.Cost.Weight > 0 && j.Cost.Weight <= math.MaxFloat64):
			return fmt.Errorf("job %d: field Cost.Weight is %v", i, j.Cost.Weight)
		case math.IsNaN(j.Cost.Due) || math.IsInf(j.Cost.Due, 0):
			return fmt.Errorf("job %d: field Cost.Due is %v", i, j.Cost.Due)
		}
		for k, l := range j.Cost.Levels {
			if math.IsNaN(l.Due) || !(l.Cost >= 0) || k > 0 && (l.Due < j.Cost.Levels[k-1].Due || l.Cost < j.Cost.Levels[k-1].Cost) {
				return fmt.Errorf("job %d: field Cost.Levels[%d] is %v", i, k, l)
			}
		}
		left -= j.Min
	}
	if left < 0 {
		return fmt.Errorf("the minima exceed the %d slots by %d", p.Slots, -left)
	}
	return nil
}

// Value returns the metric's value if job i ends at ends[i], in seconds from now.
func (p *Problem) Value(ends []float64) float64 {
	total := 0.0
	if p.Aggregate == scheduler.Max {
		total = math.Inf(-1)
	}
	for i := range p.Jobs {
		cost := p.Jobs[i].Cost.At(ends[i])
		if p.Aggregate == scheduler.Max {
			total = max(total, cost)
		} else {
			total += cost
		}
	}
	return total
}

// hasCappedJob reports whether some job's Max is below the slots. Only then can an allocation
// beat every ordering, because Lemma 1 does not hold.
func (p *Problem) hasCappedJob() bool {
	return slices.ContainsFunc(p.Jobs, func(j Job) bool { return j.Max < p.Slots })
}

// contended reports whether the slots are fewer than the sum of maxima. Otherwise jobs have the
// same ends under all orderings.
func (p *Problem) contended() bool {
	useful := 0
	for _, j := range p.Jobs {
		useful += min(j.Max, p.Slots)
	}
	return useful > p.Slots
}

// slack returns the slots beyond all minima.
func (p *Problem) slack() int {
	slack := p.Slots
	for _, j := range p.Jobs {
		slack -= j.Min
	}
	return slack
}

// sorted returns the jobs' indexes by ascending key, ties by index. O(J log J).
func sorted(keys []float64) []int {
	order := make([]int, len(keys))
	for i := range order {
		order[i] = i
	}
	sortBy(order, keys)
	return order
}

// keys computes a key for each job.
func (p *Problem) keys(key func(j *Job) float64) []float64 {
	keys := make([]float64, len(p.Jobs))
	for i := range keys {
		keys[i] = key(&p.Jobs[i])
	}
	return keys
}

// sortBy sorts an order by ascending key, stably. O(J log J), O(J) if the order is nearly
// right.
func sortBy(order []int, keys []float64) {
	r := make([]ranked, len(order))
	for i, j := range order {
		r[i] = ranked{keys[j], i, j}
	}
	sortNearly(r)
	for i := range r {
		order[i] = r[i].job
	}
}

// ranked is a job with its key in a sort; place settles ties.
type ranked struct {
	key        float64
	place, job int
}

func (v ranked) before(w ranked) bool { return v.key < w.key || v.key == w.key && v.place < w.place }

// sortNearly uses insertion sort for nearly sorted input, else O(n log n).
func sortNearly(r []ranked) {
	moves := 8 * len(r)
	for i := 1; i < len(r); i++ {
		v := r[i]
		k := i
		for ; k > 0 && v.before(r[k-1]); k-- {
			r[k] = r[k-1]
		}
		r[k] = v
		if moves -= i - k; moves < 0 {
			slices.SortFunc(r, func(a, b ranked) int {
				return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.place, b.place))
			})
			return
		}
	}
}

// costSteps lists the due times of a step cost, each with the cost of missing it.
func costSteps(c *scheduler.Cost) []scheduler.Level {
	switch c.Penalty {
	case scheduler.Tardy:
		return []scheduler.Level{{Due: c.Due, Cost: c.Weight}}
	case scheduler.SLA:
		levels := slices.Clone(c.Levels)
		for i := range levels {
			levels[i].Cost *= c.Weight
		}
		return levels
	}
	return nil
}

// firstDeadline returns a cost's first breakpoint in seconds from now, or 0 without any.
func firstDeadline(c *scheduler.Cost) float64 {
	if times := c.Breakpoints(); len(times) > 0 {
		return times[0]
	}
	return 0
}
