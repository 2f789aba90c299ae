package flex

import "math"

// apparentOrder returns the order of apparent tardiness costs (ATC, Vepsalainen and Morton) on
// one machine with all slots. Next is always the job with the greatest weight per time,
// discounted by its slack before the deadline in units of scale times the mean time. For sums of
// tardiness the order lies between EDD and WSPT. O(J²); above maxApparent jobs it takes several
// jobs at a time.
func apparentOrder(p *Problem, scale float64) []int {
	n := len(p.Jobs)
	time := p.keys(func(j *Job) float64 { return j.Work / float64(min(p.Slots, j.Max)) })
	total := 0.0
	for j := range p.Jobs {
		total += p.Jobs[j].Work / float64(p.Slots)
	}
	mean := max(scale*total/float64(n), math.SmallestNonzeroFloat64)
	left := sorted(make([]float64, n))
	order := make([]int, 0, n)
	keys := make([]float64, n)
	take := 1 + n/maxApparent
	for now := 0.0; len(left) > 0; {
		for _, j := range left {
			job := &p.Jobs[j]
			wait := max(0, firstDeadline(&job.Cost)-time[j]-now)
			keys[j] = wait/mean - math.Log(job.Cost.Weight/max(time[j], 1e-300))
		}
		if take == 1 {
			first := 0
			for i, j := range left {
				if keys[j] < keys[left[first]] {
					first = i
				}
			}
			j := left[first]
			order = append(order, j)
			left = append(left[:first], left[first+1:]...)
			now += p.Jobs[j].Work / float64(p.Slots)
			continue
		}
		sortBy(left, keys)
		for _, j := range left[:min(take, len(left))] {
			order = append(order, j)
			now += p.Jobs[j].Work / float64(p.Slots)
		}
		left = left[min(take, len(left)):]
	}
	return order
}

const maxApparent = 500
