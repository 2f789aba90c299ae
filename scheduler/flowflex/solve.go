package flowflex

import (
	"fmt"
	"math"
	"slices"

	"github.com/quernmr/quern/scheduler"
)

// Options are the ways to search. Simulations change all of them, a running system the
// aggregate only.
type Options struct {
	Aggregate scheduler.Aggregate // of the flows' costs: minisum or minimax
	// Deadlines, by flow, are tried as orders for a sum, as they are and lifted: those of
	// the relaxation, which is slower, and now and then better. The paper's live system
	// does without (section 5.2).
	Deadlines [][]float64
	// ChainsOnly leaves out the schedules that keep a flow's own graph, as the paper does.
	ChainsOnly bool
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

// Schedule is what the flows' jobs have, from now to the end.
type Schedule struct {
	Order      []int     // of flows: the first takes what it can use, or has the first deadline
	Chains     bool      // made of pseudo-jobs
	Completion []float64 // by flow, seconds from now
	Cost       float64
	Now        []Share     // at the start, whole slots: what a live system gives
	Ends       [][]float64 // by flow and job, seconds from now; 0: without work
}

// Solve finds a schedule with a small cost: many orders of the flows are packed,
// both as chains of pseudo-jobs and as they are, and for some deadlines the jobs by
// how late they may start or end. The best is kept, of equal costs the one with the lesser
// sum of completion times.
func Solve(p Problem, o Options) (*Schedule, error) {
	s, err := find(p, o)
	if err != nil {
		return nil, err
	}
	return s.schedule(), nil
}

// Pack is the schedule of the flows in one order, which names each of them once: as
// chains of pseudo-jobs (Figure 5), or as they are, a ready list.
func Pack(p Problem, a scheduler.Aggregate, order []int, chains bool) (*Schedule, error) {
	made, err := prepare(p)
	if err != nil {
		return nil, err
	}
	s := newSearch(made, Options{Aggregate: a, ChainsOnly: chains})
	s.best.chains = chains
	for _, i := range order {
		s.best.order = append(s.best.order, int32(i))
	}
	return s.schedule(), nil
}

// find searches for the best schedule.
func find(p Problem, o Options) (*search, error) {
	made, err := prepare(p)
	if err != nil {
		return nil, err
	}
	for k, deadlines := range o.Deadlines {
		if len(deadlines) != len(p.Flows) {
			return nil, fmt.Errorf("options: field Deadlines[%d] has %d entries for %d flows", k, len(deadlines), len(p.Flows))
		}
	}
	s := newSearch(made, o)
	if s.max {
		s.minimax()
	} else {
		s.minisum(o.Deadlines)
	}
	if o.Effort == 0 {
		o.Effort = DefaultEffort
	}
	s.mend(min(o.Effort, mends))
	s.polish(o.Effort)
	return s, nil
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
	if !o.ChainsOnly {
		s.graphs = newPacker(p.slots, p.dags())
	}
	return s
}

// minisum tries the cheap orders, those of the deadlines, as they are and lifted, and
// what local search on the surrogate makes of all these.
func (s *search) minisum(deadlines [][]float64) {
	orders := s.cheap()
	for _, order := range orders {
		s.try(order)
	}
	for _, given := range deadlines {
		for _, d := range [][]float64{given, s.lift(given)} {
			orders = append(orders, s.byDeadline(d))
			s.try(orders[len(orders)-1])
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

// replay packs the best order again and tells who has what. Jobs are as their flow counts
// them, or its chain. It returns the completion times.
func (s *search) replay(tell func(span, run)) []float64 {
	packer := s.graphs
	if s.best.chains {
		packer = s.lines
	}
	packer.record = func(at span) {
		for _, r := range at.runs {
			tell(at, run{r.flow, packer.local(r), r.slots})
		}
	}
	defer func() { packer.record = nil }()
	if s.best.by != byOrder {
		return packer.packUrgent(s.best.deadlines, s.best.by)
	}
	return packer.pack(s.best.order)
}

// schedule writes down the best order.
func (s *search) schedule() *Schedule {
	out := &Schedule{Chains: s.best.chains, Ends: make([][]float64, len(s.flows))}
	for i := range s.flows {
		out.Ends[i] = make([]float64, len(s.flows[i].jobs))
	}
	for _, i := range s.best.order {
		out.Order = append(out.Order, int(i))
	}
	out.Completion = slices.Clone(s.replay(func(at span, r run) { s.write(out, at, r) }))
	out.Cost = s.cost(out.Completion)
	return out
}

// write adds a run to the schedule.
func (s *search) write(out *Schedule, at span, r run) {
	if !s.best.chains {
		out.Ends[r.flow][r.job] = at.to
		if at.from == 0 {
			out.Now = append(out.Now, Share{int(r.flow), int(r.job), int(r.slots)})
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
}
