package flowflex

import "math"

// printed is the paper's algorithm to the letter, as far as its figures can be
// followed: what solve.go and minimax.go do better is measured against it.
func (s *search) printed(o Options) error {
	if s.max {
		s.figure8()
		return nil
	}
	relaxed, err := s.relax(o.grid())
	if err != nil {
		return err
	}
	s.try(s.byDeadline(relaxed.deadlines(0.5))) // Figure 6, step 5
	return nil
}

// figure8 bisects between 0, or the least cost where that is less, and the largest
// cost at H = 2m·max Q. A cost succeeds when its deadlines are met at twice the
// speed; the schedule of the last success is the result, or that of the first
// lastsuccess, whose deadlines are all H or later. The figure stops when the
// bracket is 1 wide, because it takes costs to be whole numbers; here it goes on
// as long as minimax does.
func (s *search) figure8() {
	horizon := 0.0
	for i := range s.flows {
		horizon = max(horizon, math.Ceil(s.flows[i].least)*2*float64(len(s.flows)))
	}
	success, fail := math.Inf(-1), 0.0
	for i := range s.flows {
		success = max(success, s.flows[i].cost.At(horizon))
		fail = min(fail, s.flows[i].cost.At(0))
	}
	deadlines := make([]float64, len(s.flows))
	attempt := func(l float64) (order []int32, ok bool) {
		for i := range s.flows {
			deadlines[i] = s.flows[i].cost.Latest(l)
		}
		order, ok = s.byDeadline(deadlines), true
		for i, done := range s.lines.pack(order) {
			ok = ok && done <= 2*deadlines[i]*(1+sameInstant)
		}
		return order, ok
	}
	best, _ := attempt(success)
	for range bisections {
		l := fail + (success-fail)/2
		if order, ok := attempt(l); ok {
			best, success = order, l
		} else {
			fail = l
		}
	}
	s.try(best)
}
