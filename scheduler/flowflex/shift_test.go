package flowflex

import "slices"

// assigned is an interval in which a job has the same slots.
type assigned struct {
	Flow, Job int     // positions in the Problem
	From, To  float64 // seconds from now
	Slots     int
}

// shift is stage 3 (section 4.3), shape shifting: McNaughton's wrap-around rule divides a
// pseudo-job with fewer slots than its maximum among its jobs. Its slots are rows; in rows
// times duration each part fills its share, row after row. So every limit is a fraction
// slots·(parts so far)/maximum of whole numbers, and no part ever has more rows than its
// maximum. O(parts²) for each of at most as many intervals as parts.
func (c *chain) shift(into []assigned, parts []allocation, s span, r run) []assigned {
	slots, most := int64(r.slots), int64(c.jobs[r.job].max)
	limits := make([]int64, len(parts)+1) // in 1/most of a row
	cuts := make([]int64, 0, len(parts)+2)
	cuts = append(cuts, 0, most)
	for i, p := range parts {
		limits[i+1] = limits[i] + p.slots*slots
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
		for i, p := range parts {
			if rows := ceil(limits[i+1]-cut, most) - ceil(limits[i]-cut, most); rows > 0 {
				into = append(into, assigned{int(r.flow), int(p.job), at(cut), at(cuts[k+1]), int(rows)})
			}
		}
	}
	return into
}

// ceil is a/b rounded up, for b > 0.
func ceil(a, b int64) int64 {
	q := a / b
	if a%b > 0 {
		q++
	}
	return q
}

// solved is the result of Solve with its intervals: stage 3 if the schedule is one of chains.
func solveWithIntervals(p Problem, o Options) (*Schedule, []assigned, error) {
	s, err := find(p, o)
	if err != nil {
		return nil, nil, err
	}
	var all []assigned
	s.replay(func(at span, r run) {
		if s.best.chains {
			c := &s.chains[r.flow]
			all = c.shift(all, c.allocations(r.job), at, r)
			return
		}
		all = append(all, assigned{int(r.flow), int(r.job), at.from, at.to, int(r.slots)})
	})
	return s.schedule(), all, nil
}
