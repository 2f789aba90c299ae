package flex

import (
	"math"
	"slices"

	"github.com/quernmr/quern/scheduler"
)

// Solution is the best schedule found.
type Solution struct {
	*Schedule
	Value  float64 // of the metric
	Method string  // how its ordering was found
}

// These limit the local search: the number of orderings that it tries, times the jobs in each.
// effortEasy is for metrics with good orderings of their own, effortHard for the others.
const (
	effortEasy = 40_000
	effortHard = 1_500_000
	// maxPackings limits the orderings, so that small problems take little time.
	maxPackings = 10_000
)

// Solve finds a schedule for the metric. It packs the generic ordering and those specific to
// the metric, and improves the best by local search. If a job's maximum is below the slots, it
// also evaluates FAIR and paced allocations. Ties go to the least sum of ends, then to the first
// ordering. The error is from [Problem.Check]. The package comment has its complexity.
func Solve(p *Problem) (*Solution, error) { return solve(p, true) }

// Orderings is Solve without the local search.
func Orderings(p *Problem) (*Solution, error) { return solve(p, false) }

func solve(p *Problem, improve bool) (*Solution, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	s := &solver{p: p, packer: newPacker(p), value: math.Inf(1)}
	s.tryOrder("arrival", sorted(make([]float64, len(p.Jobs)))) // sets s.best
	if len(p.Jobs) > 1 {
		s.tryOrderings()
	}
	// The local search must not change paced schedules, so they start from the orderings alone.
	beforeSearch := pacedStart{s.value, slices.Clone(s.packer.pack(s.best, nil))}
	if len(p.Jobs) > 1 && improve {
		s.improve()
	}
	solution := &Solution{Schedule: s.packer.schedule(s.best), Value: s.value, Method: s.method}
	if p.hasCappedJob() && len(p.Jobs) > 1 {
		s.tryUnordered(beforeSearch, solution)
	}
	return solution, nil
}

// solver collects orderings and keeps the best.
type solver struct {
	p      *Problem
	packer *packer
	starts [][]int // orderings from which the local search restarts
	best   []int
	value  float64
	total  float64 // sum of the best ordering's ends
	method string
}

// tryOrder packs an ordering, keeps it if it is the best so far, and returns its value.
func (s *solver) tryOrder(by string, order []int) float64 {
	v := s.packer.value(order)
	if s.best == nil || v < s.value || v == s.value && s.packer.total() < s.total {
		s.best, s.value, s.total, s.method = slices.Clone(order), v, s.packer.total(), by
	}
	return v
}

// addStart tries an ordering and adds it to the starts.
func (s *solver) addStart(by string, order []int) {
	s.tryOrder(by, order)
	s.starts = append(s.starts, order)
}

// tryOrderings tries the generic ordering and the orderings specific to the metric.
func (s *solver) tryOrderings() {
	p := s.p
	s.addStart("shortest", shortestOrder(p))
	s.addStart("generic", p.moldableOrder(p.moldable()))
	if p.Aggregate == scheduler.Max {
		s.addStart("longest", p.dueOrder(math.Inf(1)))
		p.tryDueOrders(func(order []int) float64 { return s.tryOrder("due", order) })
		return
	}
	steps, dues := p.penalties()
	if dues {
		s.addStart("due", sorted(p.keys(func(j *Job) float64 { return firstDeadline(&j.Cost) })))
		for _, scale := range []float64{0.5, 2} {
			s.addStart("apparent", apparentOrder(p, scale))
		}
	}
	if steps {
		t := newTargets(p, s.packer)
		for _, r := range dropRules {
			budget := effortHard / (2 * len(dropRules))
			t.dropTargets(r, &budget)
			s.addStart("targets", slices.Clone(t.order))
		}
	}
}

// penalties reports whether some costs have steps, and whether some have steps or deadlines.
func (p *Problem) penalties() (steps, dues bool) {
	for j := range p.Jobs {
		switch p.Jobs[j].Cost.Penalty {
		case scheduler.Tardy, scheduler.SLA:
			steps = true
		case scheduler.Tardiness:
			dues = true
		}
	}
	return steps, steps || dues
}

// improve improves the best ordering by local search, unless that cannot help.
func (s *solver) improve() {
	n := len(s.p.Jobs)
	effort := effortEasy
	if _, hard := s.p.penalties(); hard && s.p.Aggregate == scheduler.Sum {
		effort = effortHard
	}
	effort = min(effort, maxPackings*n)
	if floor, ok := s.p.easyBound(); ok && s.value <= floor || !s.p.contended() {
		return
	}
	l := &search{packer: s.packer, best: slices.Clone(s.best), value: s.value, total: s.total}
	l.run(s.starts, effort)
	if l.value < s.value || l.total < s.total {
		s.best, s.value, s.method = l.best, l.value, s.method+", improved"
	}
}

// easyBound returns a lower bound of the value. ok is false if none is easy to compute.
func (p *Problem) easyBound() (bound float64, ok bool) {
	for j := range p.Jobs {
		if c := p.Jobs[j].Cost.Penalty; c != scheduler.Tardy && c != scheduler.Tardiness && c != scheduler.SLA {
			return 0, false
		}
	}
	return 0, true
}

// pacedStart is the value and the ends from which the search for paced schedules starts.
type pacedStart struct {
	value float64
	ends  []float64
}

// tryUnordered replaces the best solution by FAIR's or a paced schedule if that is better.
func (s *solver) tryUnordered(start pacedStart, best *Solution) {
	n := len(s.p.Jobs)
	ends := packFair(s.p, nil)
	v := s.p.Value(ends)
	if better(v, best.Value) {
		r := newFluidRecorder(n)
		*best = Solution{r.schedule(sorted(ends), packFair(s.p, r)), v, "fair"}
	}
	if better(v, start.value) {
		start = pacedStart{v, ends}
	}
	if due := s.p.findPaced(start, best.Value, best.Ends); due != nil {
		r := newFluidRecorder(n)
		ends := paced(s.p, due, r)
		*best = Solution{r.schedule(sorted(due), ends), s.p.Value(ends), "paced"}
	}
}

// better reports whether a is less than b by more than rounding.
func better(a, b float64) bool { return a < b-1e-9*math.Abs(b) }

// Pack returns the MPS schedule of one ordering (Fig. 3). The problem must pass Check; the order
// names every job once. O(J log J).
func Pack(p *Problem, order []int) *Solution {
	k := newPacker(p)
	s := k.schedule(order)
	return &Solution{Schedule: s, Value: p.Value(s.Ends), Method: "order"}
}
