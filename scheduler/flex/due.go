package flex

import (
	"math"
	"slices"

	"github.com/quernmr/quern/scheduler"
)

// byDue are orderings for minimax metrics: a bisection on the value L, each with
// the jobs in the order of the latest ends that cost at most L (for unweighted
// tardiness and lateness that is EDD, whatever L; Lawler's rule for the weighted
// ones). MPS judges; feed sees every ordering that is new and returns its value.
// O(J log J) for each of the bisections steps.
func (p *Problem) byDue(feed func(order []int) float64) {
	low := p.lowerBound()
	order := p.dueOrder(low)
	value := feed(order)
	high := value
	last := slices.Clone(order)
	for range bisections {
		if !(high-low > 1e-9*max(math.Abs(high), math.Abs(low))) {
			return
		}
		limit := low + (high-low)/2
		sortBy(order, p.keys(func(j *Job) float64 { return j.Cost.Latest(limit) }))
		if !slices.Equal(order, last) {
			value = feed(order)
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

// lowerBound is what no schedule's maximum can be below: that of each job with all
// the slots it can use.
func (p *Problem) lowerBound() float64 {
	bound := math.Inf(-1)
	for j := range p.Jobs {
		job := &p.Jobs[j]
		bound = max(bound, job.Cost.At(job.Work/float64(min(job.Max, p.Slots))))
	}
	return bound
}

// dueOrder is by the latest ends that cost at most limit, ties by the longest
// time alone.
func (p *Problem) dueOrder(limit float64) []int {
	order := sorted(p.keys(func(j *Job) float64 { return -j.Work / float64(min(j.Max, p.Slots)) }))
	due := p.keys(func(j *Job) float64 { return j.Cost.Latest(limit) })
	sortBy(order, due)
	return order
}

// paced is a schedule for deadlines that no ordering can keep because jobs have
// maxima below the slots (see Lemma 1 in the package comment): each job has its
// minimum, in the order of deadlines each is raised to the rate that ends it in time,
// what is left raises jobs to their maxima in the same order. Slots can be divided.
// O(J²).
func paced(p *Problem, due []float64, r *recorder) []float64 {
	order := sorted(due)
	left, rate := p.keys(func(j *Job) float64 { return j.Work }), make([]float64, len(due))
	ends := make([]float64, len(due))
	for j := range ends {
		ends[j] = -1
	}
	now := 0.0
	for range order {
		spare := float64(p.Slots)
		for _, j := range order {
			if ends[j] < 0 {
				rate[j] = float64(p.Jobs[j].Min)
				spare -= rate[j]
			}
		}
		for _, pass := range []bool{false, true} {
			for _, j := range order {
				if ends[j] >= 0 || spare <= 0 {
					continue
				}
				want := float64(p.Jobs[j].Max)
				if time := due[j] - now; !pass && time > 0 {
					want = min(want, left[j]/time)
				}
				if more := min(spare, want-rate[j]); more > 0 {
					rate[j] += more
					spare -= more
				}
			}
		}
		end, who := math.Inf(1), -1
		for _, j := range order {
			if ends[j] < 0 {
				r.set(j, rate[j], now)
				e := now
				if left[j] > 0 {
					e += left[j] / rate[j]
				}
				if who < 0 || e < end {
					end, who = e, j
				}
			}
		}
		for _, j := range order {
			left[j] = max(0, left[j]-rate[j]*(end-now))
		}
		now, ends[who], rate[who] = end, end, 0
		r.set(who, 0, now)
	}
	return ends
}

// pacedMost bounds the work on paced schedules, in jobs².
const pacedMost = 300_000

// byPace looks for a better schedule than value among the paced ones, by bisection
// on the value below that of from for minimax, else with the ends of from and of the
// best ordering as targets. So whoever starts from the same, with a better value at
// hand, finds nothing worse. It returns the deadlines of the best, nil if none is better.
func (p *Problem) byPace(from start, value float64, ends []float64) (best []float64) {
	tries := min(30, pacedMost/(len(p.Jobs)*len(p.Jobs)))
	try := func(due []float64) float64 {
		v := p.Value(paced(p, due, nil))
		if better(v, value) {
			value, best = v, due
		}
		return v
	}
	if p.Aggregate == scheduler.Sum {
		if tries > 0 {
			try(from.ends)
			try(ends)
		}
		return best
	}
	low, high := p.lowerBound(), from.value
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
