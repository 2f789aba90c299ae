package flowflex

import (
	"math"
	"slices"

	"github.com/quernmr/quern/scheduler"
)

// Options are the ways to search.
type Options struct {
	Aggregate scheduler.Aggregate // of the flows' costs: minisum or minimax
	// Relax solves the relaxation, for sums: slower, and now and then better. The
	// paper's live system does without (section 5.2), and so does the default.
	Relax bool
	Grid  int // evenly spaced points in time for Relax; 0: 20, enough for orders
	// ChainsOnly leaves out the schedules that keep a flow's own graph, as the paper does.
	ChainsOnly bool
	// AsPrinted is the paper's algorithm to the letter: one rounding at 1/2, no lift,
	// the test at twice the speed. It implies ChainsOnly and no effort.
	AsPrinted bool
	// Assign fills in Schedule.Assigned, which may be as long as the square of the jobs.
	Assign bool
	// Effort is how many orders the last local search tries at most, and how often
	// either rule's deadlines are mended before it, if less than usual; below 0:
	// neither is done, 0: DefaultEffort.
	Effort int
}

// DefaultEffort is the orders that the last local search tries.
const DefaultEffort = 100

// mostSteps and mostEvaluations end the search early on very large problems: about
// 100 ms of packing and of local search on the surrogate. They are counted, not
// timed, so that the result is the same everywhere.
const (
	mostSteps       = 10e6
	mostEvaluations = 10e6
)

const defaultGrid = 20

// Schedule is what the flows' jobs have, from now to the end.
type Schedule struct {
	Order      []int     // of flows: the first takes what it can use, or has the first deadline
	Chains     bool      // made of pseudo-jobs
	Completion []float64 // by flow, seconds from now
	Cost       float64
	Now        []Share     // at the start, whole slots: what a live system gives
	Ends       [][]float64 // by flow and job, seconds from now; 0: without work
	Assigned   []Assigned  // by time, if asked for
}

// Solve finds a schedule with a small cost: many orders of the flows are packed,
// both as chains of pseudo-jobs and as they are, and for some deadlines the jobs by
// how late they may start or end. The best is kept, of equal costs the one with the lesser
// sum of completion times.
func Solve(p Problem, o Options) (*Schedule, error) {
	made, err := prepare(p)
	if err != nil {
		return nil, err
	}
	s := newSearch(made, o)
	switch {
	case o.AsPrinted:
		err = s.printed(o)
	case s.max:
		s.minimax()
	default:
		err = s.minisum(o)
	}
	if err != nil {
		return nil, err
	}
	if o.Effort == 0 {
		o.Effort = DefaultEffort
	}
	if !o.AsPrinted {
		s.mend(min(o.Effort, mends))
		s.polish(o.Effort)
	}
	return s.schedule(o.Assign), nil
}

// search is what was found so far.
type search struct {
	*problem
	max    bool
	graphs *packer // nil: chains only
	lines  *packer
	seen   map[string]bool // orders that were packed
	key    []byte
	best   found
	floor  float64 // no schedule costs less
}

type found struct {
	order     []int32
	chains    bool
	by        rule
	deadlines []float64 // unless by order
	cost      float64
	sum       float64 // of completion times
	done      []float64
}

func newSearch(p *problem, o Options) *search {
	s := &search{
		problem: p,
		max:     o.Aggregate == scheduler.Max,
		lines:   newPacker(p.slots, p.lines()),
		seen:    make(map[string]bool),
		best:    found{cost: math.Inf(1), sum: math.Inf(1)},
	}
	for i := range p.flows {
		s.floor += p.flows[i].cost.At(p.flows[i].alone)
	}
	if !o.ChainsOnly && !o.AsPrinted {
		s.graphs = newPacker(p.slots, p.dags())
	}
	return s
}

// minisum tries the cheap orders, with the relaxation its deadlines at ten
// fractions, as they are and lifted, and what local search on the surrogate makes of
// all these.
func (s *search) minisum(o Options) error {
	orders := s.cheap()
	for _, order := range orders {
		s.try(order)
	}
	if o.Relax {
		relaxed, err := s.relax(o.grid())
		if err != nil {
			return err
		}
		for tenth := 1; tenth <= 10; tenth++ {
			deadlines := relaxed.deadlines(float64(tenth) / 10)
			for _, d := range [][]float64{deadlines, s.lift(deadlines)} {
				orders = append(orders, s.byDeadline(d))
				s.try(orders[len(orders)-1])
			}
		}
	}
	budget := int(mostEvaluations)
	for _, order := range orders {
		improved := slices.Clone(order)
		s.descend(improved, &budget)
		s.try(improved)
	}
	s.urge(s.due(), byStart)
	s.urge(s.due(), byEnd)
	s.repeatLift()
	return nil
}

// repeatLift orders by the times to which the best schedule's completions can be
// put off at no cost, as long as that helps.
func (s *search) repeatLift() {
	for before := math.Inf(1); s.best.cost < before; {
		before = s.best.cost
		deadlines := s.lift(s.best.done)
		s.try(s.byDeadline(deadlines))
		s.urge(deadlines, byStart)
		s.urge(deadlines, byEnd)
	}
}

// urge packs jobs by how late they may start or end, unless too much was packed.
// The result is valid until the next call.
func (s *search) urge(deadlines []float64, by rule) []float64 {
	if s.graphs == nil || !s.affordable() {
		return s.best.done
	}
	done := s.graphs.packUrgent(deadlines, by)
	s.keep(found{order: s.byDeadline(deadlines), by: by, deadlines: deadlines, done: done})
	return done
}

// try packs an order, unless it was, or too much was and this is not the first.
func (s *search) try(order []int32) {
	if s.best.done != nil && !s.affordable() {
		return
	}
	s.key = s.key[:0]
	for _, i := range order {
		s.key = append(s.key, byte(i), byte(i>>8), byte(i>>16), byte(i>>24))
	}
	if s.seen[string(s.key)] {
		return
	}
	s.seen[string(s.key)] = true
	s.keep(found{order: order, chains: true, done: s.lines.pack(order)})
	if s.graphs != nil {
		s.keep(found{order: order, done: s.graphs.pack(order)})
	}
}

// keep takes a schedule if it is better than the best.
func (s *search) keep(f found) {
	f.cost = s.cost(f.done)
	for _, t := range f.done {
		f.sum += t
	}
	margin := rounding * math.Abs(s.best.cost)
	if f.cost < s.best.cost-margin || f.cost <= s.best.cost+margin && f.sum < s.best.sum*(1-rounding) || s.best.done == nil {
		f.order, f.deadlines, f.done = slices.Clone(f.order), slices.Clone(f.deadlines), slices.Clone(f.done)
		s.best = f
	}
}

// cost is the objective; that of no flows is 0.
func (s *search) cost(done []float64) float64 {
	sum, most := 0.0, math.Inf(-1)
	for i, t := range done {
		c := s.flows[i].cost.At(t)
		sum, most = sum+c, max(most, c)
	}
	if s.max && len(done) > 0 {
		return most
	}
	return sum
}

// polish is local search on schedules: flows move to other places in the best
// order, first those that cost most beyond what they cost at Q, as long as effort lasts.
func (s *search) polish(effort int) {
	for until := len(s.seen) + effort; len(s.seen) < until && s.improvable(); {
		before := s.best
		for _, i := range s.sorted(func(i int32) float64 {
			c := s.flows[i].cost
			return c.At(s.flows[i].alone) - c.At(before.done[i])
		}) {
			s.moveAbout(i, until)
			if s.best.cost < before.cost-sameInstant*math.Abs(before.cost) {
				break
			}
		}
		if s.best.cost >= before.cost {
			return
		}
	}
}

// improvable says whether a better schedule may exist, and may be looked for.
func (s *search) improvable() bool {
	return s.affordable() && s.best.cost-s.floor > sameInstant*math.Abs(s.floor)
}

// affordable says whether more may be packed.
func (s *search) affordable() bool {
	steps := s.lines.steps
	if s.graphs != nil {
		steps += s.graphs.steps
	}
	return steps < mostSteps
}

// moveAbout tries a flow at every other place, the earlier ones first.
func (s *search) moveAbout(i int32, until int) {
	order := s.best.order
	from := slices.Index(order, i)
	rest := slices.Delete(slices.Clone(order), from, from+1)
	for to := range order {
		if len(s.seen) >= until || !s.improvable() {
			return
		}
		s.try(slices.Insert(slices.Clone(rest), to, i))
	}
}

// schedule packs the best order again and writes down who has what.
func (s *search) schedule(assign bool) *Schedule {
	out := &Schedule{
		Chains:     s.best.chains,
		Completion: make([]float64, len(s.flows)),
		Cost:       s.best.cost,
		Ends:       make([][]float64, len(s.flows)),
	}
	for i := range s.flows {
		out.Ends[i] = make([]float64, len(s.flows[i].jobs))
	}
	for _, i := range s.best.order {
		out.Order = append(out.Order, int(i))
	}
	packer := s.graphs
	if s.best.chains {
		packer = s.lines
	}
	packer.record = func(at span) {
		for _, r := range at.runs {
			s.write(out, at, run{r.flow, packer.local(r), r.slots}, assign)
		}
	}
	if s.best.by != byOrder {
		copy(out.Completion, packer.packUrgent(s.best.deadlines, s.best.by))
	} else {
		copy(out.Completion, packer.pack(s.best.order))
	}
	packer.record = nil
	return out
}

// write adds a run, with its job as its flow counts it, to the schedule.
func (s *search) write(out *Schedule, at span, r run, assign bool) {
	if !s.best.chains {
		out.Ends[r.flow][r.job] = at.to
		if at.from == 0 {
			out.Now = append(out.Now, Share{int(r.flow), int(r.job), int(r.slots)})
		}
		if assign {
			out.Assigned = append(out.Assigned, Assigned{int(r.flow), int(r.job), at.from, at.to, int(r.slots)})
		}
		return
	}
	c := &s.chains[r.flow]
	parts := c.parts(r.job)
	for _, p := range parts {
		out.Ends[r.flow][p.job] = at.to
	}
	if at.from == 0 {
		out.Now = c.proportional(out.Now, parts, r)
	}
	if assign {
		out.Assigned = c.shift(out.Assigned, parts, at, r)
	}
}

// grid is the number of evenly spaced points in time.
func (o Options) grid() int {
	if o.Grid == 0 {
		return defaultGrid
	}
	return o.Grid
}
