package flowflex

import "slices"

// interval is a time in which a job has the same slots.
type interval struct {
	Flow, Job int     // indexes in the Problem
	From, To  float64 // seconds from now
	Slots     int
}

// shift is stage 3 (section 4.3), shape shifting: McNaughton's wrap-around rule divides a
// pseudo-job with fewer slots than its maximum among its jobs. Its slots are rows, as long as the
// span. The jobs fill them one after the other, row after row. Limits between jobs are fractions
// of whole numbers, slots·(maxima so far)/maximum, so rounding never gives a job more rows than
// its maximum. O(n²) for n jobs.
func (c *chain) shift(into []interval, jobs []allocation, s span, r run) []interval {
	slots, most := int64(r.slots), int64(c.jobs[r.job].max)
	limits := make([]int64, len(jobs)+1) // in 1/most of a row
	cuts := make([]int64, 0, len(jobs)+2)
	cuts = append(cuts, 0, most)
	for i, j := range jobs {
		limits[i+1] = limits[i] + j.slots*slots
		cuts = append(cuts, limits[i+1]%most)
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	at := func(cut int64) float64 {
		if cut == most {
			return s.to
		}
		return s.from + (s.to-s.from)*float64(cut)/float64(most)
	}
	for k, cut := range cuts[:len(cuts)-1] {
		for i, j := range jobs {
			if rows := ceil(limits[i+1]-cut, most) - ceil(limits[i]-cut, most); rows > 0 {
				into = append(into, interval{int(r.flow), int(j.job), at(cut), at(cuts[k+1]), int(rows)})
			}
		}
	}
	return into
}

// ceil returns a/b rounded up, for b > 0.
func ceil(a, b int64) int64 {
	q := a / b
	if a%b > 0 {
		q++
	}
	return q
}

// solveWithIntervals returns the result of Solve and its intervals. For chains they come from
// stage 3.
func solveWithIntervals(p Problem, o Options) (*Schedule, []interval, error) {
	s, err := find(p, o)
	if err != nil {
		return nil, nil, err
	}
	var all []interval
	s.replay(func(at span, r run) {
		if s.best.chains {
			c := &s.chains[r.flow]
			all = c.shift(all, c.allocations(r.job), at, r)
			return
		}
		all = append(all, interval{int(r.flow), int(r.job), at.from, at.to, int(r.slots)})
	})
	return s.schedule(), all, nil
}
