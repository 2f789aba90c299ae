package flowflex

import (
	"fmt"
	"math"
	"slices"

	"github.com/quernmr/quern/scheduler"
)

// Options control the search. A running system sets the aggregate only, simulations all.
type Options struct {
	Aggregate scheduler.Aggregate // of the flows' costs: minisum or minimax
	// Deadlines, by flow, are tried as orders for a sum, as given and lifted. They come from
	// the relaxation, which is slower and sometimes better; the paper's live system omits it
	// (section 5.2).
	Deadlines [][]float64
	// ChainsOnly omits the schedules that keep a flow's own graph, as the paper does.
	ChainsOnly bool
	// Effort bounds the orders of the last local search, and the deadline adjustments before it
	// if they would be more. Below 0 omits both; 0 means DefaultEffort.
	Effort int
}

// DefaultEffort is the usual number of orders in the last local search.
const DefaultEffort = 100

// maxSteps and maxEvaluations end the search on very large problems after about 100 ms of
// packing and of local search on the surrogate. They count steps, not time, so that the result
// is the same everywhere.
const (
	maxSteps       = 10e6
	maxEvaluations = 10e6
)

// Schedule is the allocations of the flows' jobs, from now to the end.
type Schedule struct {
	Order      []int     // of flows: the first takes all it can use, or has the first deadline
	Chains     bool      // whether it consists of pseudo-jobs
	Completion []float64 // by flow, seconds from now
	Cost       float64
	Now        []Share     // shares at the start, in whole slots: the allocation of a live system
	Ends       [][]float64 // by flow and job, seconds from now; 0: without work
}

// Solve finds a schedule with a small cost. It packs many orders of the flows, both as chains
// of pseudo-jobs and as they are. For some deadlines it packs the jobs by the latest time of
// their start or end. Ties of cost go to the least sum of completion times.
func Solve(p Problem, o Options) (*Schedule, error) {
	s, err := find(p, o)
	if err != nil {
		return nil, err
	}
	return s.schedule(), nil
}

// Pack is the schedule of the flows in one order, which names each of them once. It packs them
// as chains of pseudo-jobs (Figure 5), or as they are, like a ready list.
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
	if s.minimax {
		s.solveMinimax()
	} else {
		s.solveMinisum(o.Deadlines)
	}
	if o.Effort == 0 {
		o.Effort = DefaultEffort
	}
	s.adjustDeadlines(min(o.Effort, adjustRounds))
	s.improveSchedule(o.Effort)
	return s, nil
}

// search is the state of a search.
type search struct {
	*problem
	minimax     bool
	graphPacker *packer // nil: chains only
	chainPacker *packer
	packed      map[string]bool // packed orders
	key         []byte
	best        candidate
	lowerBound  float64 // a lower bound of every schedule's cost
}

type candidate struct {
	order      []int32
	chains     bool
	by         packRule
	deadlines  []float64 // only if packed by deadline
	cost       float64
	sum        float64 // of completion times
	completion []float64
}

func newSearch(p *problem, o Options) *search {
	s := &search{
		problem:     p,
		minimax:     o.Aggregate == scheduler.Max,
		chainPacker: newPacker(p.slots, p.chainFlows()),
		packed:      make(map[string]bool),
		best:        candidate{cost: math.Inf(1), sum: math.Inf(1)},
	}
	for i := range p.flows {
		s.lowerBound += p.flows[i].cost.At(p.flows[i].lowerBound)
	}
	if !o.ChainsOnly {
		s.graphPacker = newPacker(p.slots, p.graphFlows())
	}
	return s
}

// minisum tries the cheap orders, the deadlines as given and lifted, and improvements of all
// these by local search on the surrogate.
func (s *search) solveMinisum(deadlines [][]float64) {
	orders := s.classicalOrders()
	for _, order := range orders {
		s.tryOrder(order)
	}
	for _, given := range deadlines {
		for _, d := range [][]float64{given, s.latestAtSameCost(given)} {
			orders = append(orders, s.byDeadline(d))
			s.tryOrder(orders[len(orders)-1])
		}
	}
	budget := int(maxEvaluations)
	for _, order := range orders {
		improved := slices.Clone(order)
		s.descend(improved, &budget)
		s.tryOrder(improved)
	}
	s.packJobs(s.latestAtLeastCost(), byStart)
	s.packJobs(s.latestAtLeastCost(), byEnd)
	s.repeatLift()
}

// repeatLift orders by the latest completions that cost the same as the best schedule's, as
// long as that helps.
func (s *search) repeatLift() {
	for before := math.Inf(1); s.best.cost < before; {
		before = s.best.cost
		deadlines := s.latestAtSameCost(s.best.completion)
		s.tryOrder(s.byDeadline(deadlines))
		s.packJobs(deadlines, byStart)
		s.packJobs(deadlines, byEnd)
	}
}

// packJobs packs jobs by the latest time of their start or end, unless the limit of packing is
// reached. The result is valid until the next call.
func (s *search) packJobs(deadlines []float64, by packRule) []float64 {
	if s.graphPacker == nil || !s.withinLimit() {
		return s.best.completion
	}
	done := s.graphPacker.packJobs(deadlines, by)
	s.keepBest(candidate{order: s.byDeadline(deadlines), by: by, deadlines: deadlines, completion: done})
	return done
}

// try packs an order, unless it was packed before or the limit is reached. It always packs the
// first order.
func (s *search) tryOrder(order []int32) {
	if s.best.completion != nil && !s.withinLimit() {
		return
	}
	s.key = s.key[:0]
	for _, i := range order {
		s.key = append(s.key, byte(i), byte(i>>8), byte(i>>16), byte(i>>24))
	}
	if s.packed[string(s.key)] {
		return
	}
	s.packed[string(s.key)] = true
	s.keepBest(candidate{order: order, chains: true, completion: s.chainPacker.pack(order)})
	if s.graphPacker != nil {
		s.keepBest(candidate{order: order, completion: s.graphPacker.pack(order)})
	}
}

// keep stores a schedule if it is better than the best.
func (s *search) keepBest(f candidate) {
	f.cost = s.cost(f.completion)
	for _, t := range f.completion {
		f.sum += t
	}
	margin := rounding * math.Abs(s.best.cost)
	if f.cost < s.best.cost-margin || f.cost <= s.best.cost+margin && f.sum < s.best.sum*(1-rounding) || s.best.completion == nil {
		f.order, f.deadlines, f.completion = slices.Clone(f.order), slices.Clone(f.deadlines), slices.Clone(f.completion)
		s.best = f
	}
}

// cost is the objective; 0 without flows.
func (s *search) cost(done []float64) float64 {
	sum, most := 0.0, math.Inf(-1)
	for i, t := range done {
		c := s.flows[i].cost.At(t)
		sum, most = sum+c, max(most, c)
	}
	if s.minimax && len(done) > 0 {
		return most
	}
	return sum
}

// polish is local search on schedules: while effort lasts, flows move to other places in the
// best order, starting with the flow that costs most beyond its cost at Q.
func (s *search) improveSchedule(effort int) {
	for until := len(s.packed) + effort; len(s.packed) < until && s.canImprove(); {
		before := s.best
		for _, i := range s.sorted(func(i int32) float64 {
			c := s.flows[i].cost
			return c.At(s.flows[i].lowerBound) - c.At(before.completion[i])
		}) {
			s.tryPlaces(i, until)
			if s.best.cost < before.cost-sameInstant*math.Abs(before.cost) {
				break
			}
		}
		if s.best.cost >= before.cost {
			return
		}
	}
}

// improvable reports whether a better schedule may exist and the limit allows a search.
func (s *search) canImprove() bool {
	return s.withinLimit() && s.best.cost-s.lowerBound > sameInstant*math.Abs(s.lowerBound)
}

// affordable reports whether the limit allows more packing.
func (s *search) withinLimit() bool {
	steps := s.chainPacker.steps
	if s.graphPacker != nil {
		steps += s.graphPacker.steps
	}
	return steps < maxSteps
}

// moveAbout tries a flow at every other place, the earlier ones first.
func (s *search) tryPlaces(i int32, until int) {
	order := s.best.order
	from := slices.Index(order, i)
	rest := slices.Delete(slices.Clone(order), from, from+1)
	for to := range order {
		if len(s.packed) >= until || !s.canImprove() {
			return
		}
		s.tryOrder(slices.Insert(slices.Clone(rest), to, i))
	}
}

// replay packs the best order again and reports its runs. Jobs are numbered within their flow,
// or its chain. It returns the completion times.
func (s *search) replay(report func(span, run)) []float64 {
	packer := s.graphPacker
	if s.best.chains {
		packer = s.chainPacker
	}
	packer.record = func(at span) {
		for _, r := range at.runs {
			report(at, run{r.flow, packer.local(r), r.slots})
		}
	}
	defer func() { packer.record = nil }()
	if s.best.by != byOrder {
		return packer.packJobs(s.best.deadlines, s.best.by)
	}
	return packer.pack(s.best.order)
}

// schedule returns the best order as a Schedule.
func (s *search) schedule() *Schedule {
	out := &Schedule{Chains: s.best.chains, Ends: make([][]float64, len(s.flows))}
	for i := range s.flows {
		out.Ends[i] = make([]float64, len(s.flows[i].jobs))
	}
	for _, i := range s.best.order {
		out.Order = append(out.Order, int(i))
	}
	out.Completion = slices.Clone(s.replay(func(at span, r run) { s.addRun(out, at, r) }))
	out.Cost = s.cost(out.Completion)
	return out
}

// write adds a run to the schedule.
func (s *search) addRun(out *Schedule, at span, r run) {
	if !s.best.chains {
		out.Ends[r.flow][r.job] = at.to
		if at.from == 0 {
			out.Now = append(out.Now, Share{int(r.flow), int(r.job), int(r.slots)})
		}
		return
	}
	c := &s.chains[r.flow]
	parts := c.allocations(r.job)
	for _, p := range parts {
		out.Ends[r.flow][p.job] = at.to
	}
	if at.from == 0 {
		out.Now = c.proportional(out.Now, parts, r)
	}
}
