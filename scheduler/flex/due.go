package flex

import (
	"math"
	"slices"

	"github.com/quernmr/quern/scheduler"
)

// tryDueOrders tries orderings for minimax metrics. It bisects the value L: jobs go by the latest
// ends that cost at most L. Without weights, tardiness and lateness give EDD for any L; with
// weights, Lawler's rule. try packs a new ordering and returns its value. O(J log J) per step.
func (p *Problem) tryDueOrders(try func(order []int) float64) {
	low := p.lowerBound()
	order := p.dueOrder(low)
	value := try(order)
	high := value
	last := slices.Clone(order)
	for range bisections {
		if !(high-low > 1e-9*max(math.Abs(high), math.Abs(low))) {
			return
		}
		limit := low + (high-low)/2
		sortBy(order, p.keys(func(j *Job) float64 { return j.Cost.Latest(limit) }))
		if !slices.Equal(order, last) {
			value = try(order)
			copy(last, order)
		}
		if value <= limit {
			high = value
		} else {
			low = limit
		}
	}
}

const bisections = 40

// lowerBound returns a lower bound of the maximum: the largest cost of a job that has all the
// slots it can use.
func (p *Problem) lowerBound() float64 {
	bound := math.Inf(-1)
	for j := range p.Jobs {
		job := &p.Jobs[j]
		bound = max(bound, job.Cost.At(job.Work/float64(min(job.Max, p.Slots))))
	}
	return bound
}

// dueOrder returns the order by the latest ends that cost at most limit. Ties go to the job with
// the longest time alone.
func (p *Problem) dueOrder(limit float64) []int {
	order := sorted(p.keys(func(j *Job) float64 { return -j.Work / float64(min(j.Max, p.Slots)) }))
	due := p.keys(func(j *Job) float64 { return j.Cost.Latest(limit) })
	sortBy(order, due)
	return order
}

// paced schedules jobs for deadlines that no ordering may keep, because jobs have maxima below
// the slots (see Lemma 1 in the package comment). From one end to the next, live jobs have the
// rates of [Problem.pace]. It returns the ends, and records allocations in r, which may be nil.
// O(J²).
func paced(p *Problem, due []float64, r *recorder) []float64 {
	live := sorted(due)
	left := p.keys(func(j *Job) float64 { return j.Work })
	rates, ends := make([]float64, len(due)), make([]float64, len(due))
	for now := 0.0; len(live) > 0; {
		p.pace(rates, live, left, due, now)
		end, first := math.Inf(1), 0 // in live
		for i, j := range live {
			r.set(j, rates[j], now)
			e := now
			if left[j] > 0 {
				e += left[j] / rates[j]
			}
			if e < end {
				end, first = e, i
			}
		}
		for _, j := range live {
			left[j] = max(0, left[j]-rates[j]*(end-now))
		}
		now = end
		ends[live[first]] = now
		r.set(live[first], 0, now)
		live = slices.Delete(live, first, first+1)
	}
	return ends
}

// pace sets the rates of the live jobs, which are sorted by deadline. Each gets its minimum. Then,
// in order, each gets the rate that ends it in time. Slots left raise jobs to their maxima, in
// the same order. Slots are divisible.
func (p *Problem) pace(rates []float64, live []int, left, due []float64, now float64) {
	spare := float64(p.Slots)
	for _, j := range live {
		rates[j] = float64(p.Jobs[j].Min)
		spare -= rates[j]
	}
	raise := func(j int, rate float64) {
		more := max(0, min(spare, rate-rates[j]))
		rates[j] += more
		spare -= more
	}
	for _, j := range live {
		rate := float64(p.Jobs[j].Max)
		if time := due[j] - now; time > 0 {
			rate = min(rate, left[j]/time)
		}
		raise(j, rate)
	}
	for _, j := range live {
		raise(j, float64(p.Jobs[j].Max))
	}
}

// maxPacedWork limits the work on paced schedules; each takes J² for J jobs.
const maxPacedWork = 300_000

// findPaced looks for a paced schedule that is better than value. For minimax it bisects costs
// below the value of start, with the latest ends of each cost as deadlines. For sums, deadlines
// are the ends of start, or ends. A smaller value with the same start never leads to a worse
// schedule. It returns the best deadlines, or nil if none is better.
func (p *Problem) findPaced(start pacedStart, value float64, ends []float64) (best []float64) {
	tries := min(30, maxPacedWork/(len(p.Jobs)*len(p.Jobs)))
	try := func(due []float64) float64 {
		v := p.Value(paced(p, due, nil))
		if better(v, value) {
			value, best = v, due
		}
		return v
	}
	if p.Aggregate == scheduler.Sum {
		if tries > 0 {
			try(start.ends)
			try(ends)
		}
		return best
	}
	low, high := p.lowerBound(), start.value
	for range tries {
		limit := low + (high-low)/2
		if v := try(p.keys(func(j *Job) float64 { return j.Cost.Latest(limit) })); v <= limit {
			high = v
		} else {
			low = limit
		}
	}
	return best
}
