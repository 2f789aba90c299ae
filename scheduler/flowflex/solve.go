package flowflex

import (
	"fmt"
	"math"
	"slices"

	"github.com/quernmr/quern/scheduler"
)

// Options control the search. A running system sets only the aggregate; simulations set all.
type Options struct {
	Aggregate scheduler.Aggregate // of the flows' costs: minisum or minimax
	// Deadlines lists deadlines by flow. A search for a sum tries the orders that they give, as
	// they are and moved to the latest time of the same cost. They come from the relaxation. It
	// is slow and sometimes better; the paper's live system omits it (section 5.2).
	Deadlines [][]float64
	// ChainsOnly packs only chains, as the paper does, and not the flows' own graphs.
	ChainsOnly bool
	// Effort limits the orders of the last local search, and each series of deadline adjustments
	// before it. Below 0 omits both; 0 means DefaultEffort.
	Effort int
}

// DefaultEffort is the number of orders in the last local search if Effort is 0.
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
	Order      []int       // of flows: by precedence, or by deadline
	Chains     bool        // whether it consists of pseudo-jobs
	Completion []float64   // by flow, seconds from now
	Cost       float64     // sum or maximum of the flows' costs
	Now        []Share     // shares at the start, in whole slots: the allocation of a live system
	Ends       [][]float64 // by flow and job, seconds from now; 0: without work
}

// Solve finds a schedule with a small cost. It packs many orders of the flows, both as chains
// of pseudo-jobs and as graphs. For some deadlines it packs the jobs by the latest time of their
// start or end. Ties go to the least sum of completion times. The error names an invalid field.
func Solve(p Problem, o Options) (*Schedule, error) {
	s, err := find(p, o)
	if err != nil {
		return nil, err
	}
	return s.schedule(), nil
}

// Pack returns the schedule of the flows in one order, which names each flow once. It packs them
// as chains of pseudo-jobs (Figure 5), or as graphs, like a ready list.
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
	s.adjustDeadlines(min(o.Effort, maxAdjustments))
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

// newSearch returns a search that has packed nothing.
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

// solveMinisum tries the classical orders, the deadlines as given and moved to the latest time of
// the same cost, and improvements of all these by local search on the surrogate (see descend).
func (s *search) solveMinisum(deadlines [][]float64) {
	orders := s.classicalOrders()
	for _, order := range orders {
		s.tryOrder(order)
	}
	for _, original := range deadlines {
		for _, d := range [][]float64{original, s.latestAtSameCost(original)} {
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
	s.repeatAtSameCost()
}

// repeatAtSameCost packs by the latest completions that cost as much as the best schedule's, as
// long as that improves the best schedule.
func (s *search) repeatAtSameCost() {
	for before := math.Inf(1); s.best.cost < before; {
		before = s.best.cost
		deadlines := s.latestAtSameCost(s.best.completion)
		s.tryOrder(s.byDeadline(deadlines))
		s.packJobs(deadlines, byStart)
		s.packJobs(deadlines, byEnd)
	}
}

// packJobs packs jobs by the latest time of their start or end and returns completion times, valid
// until the next call. At the limit of packing it returns the best schedule's.
func (s *search) packJobs(deadlines []float64, by packRule) []float64 {
	if s.graphPacker == nil || !s.withinLimit() {
		return s.best.completion
	}
	completion := s.graphPacker.packJobs(deadlines, by)
	s.keepBest(candidate{order: s.byDeadline(deadlines), by: by, deadlines: deadlines, completion: completion})
	return completion
}

// tryOrder packs an order, unless it was packed before or the limit of packing is reached. It
// always packs the first order.
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

// keepBest stores a candidate if it is better than the best so far.
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

// cost returns the sum or maximum of the flows' costs, 0 without flows.
func (s *search) cost(completion []float64) float64 {
	sum, most := 0.0, math.Inf(-1)
	for i, t := range completion {
		c := s.flows[i].cost.At(t)
		sum, most = sum+c, max(most, c)
	}
	if s.minimax && len(completion) > 0 {
		return most
	}
	return sum
}

// improveSchedule is local search on schedules: flows move to other places in the best order, the
// flow with the most avoidable cost first. It packs at most effort orders.
func (s *search) improveSchedule(effort int) {
	for maxPacked := len(s.packed) + effort; len(s.packed) < maxPacked && s.canImprove(); {
		before := s.best
		for _, i := range s.sortedBy(func(i int32) float64 {
			c := s.flows[i].cost
			return c.At(s.flows[i].lowerBound) - c.At(before.completion[i])
		}) {
			s.tryPlaces(i, maxPacked)
			if s.best.cost < before.cost-sameInstant*math.Abs(before.cost) {
				break
			}
		}
		if s.best.cost >= before.cost {
			return
		}
	}
}

// canImprove reports whether a better schedule may exist and the limit allows more packing.
func (s *search) canImprove() bool {
	return s.withinLimit() && s.best.cost-s.lowerBound > sameInstant*math.Abs(s.lowerBound)
}

// withinLimit reports whether the limit allows more packing.
func (s *search) withinLimit() bool {
	steps := s.chainPacker.steps
	if s.graphPacker != nil {
		steps += s.graphPacker.steps
	}
	return steps < maxSteps
}

// tryPlaces tries flow i at every place in the best order, from the first on, until maxPacked
// orders are packed in all.
func (s *search) tryPlaces(i int32, maxPacked int) {
	order := s.best.order
	from := slices.Index(order, i)
	rest := slices.Delete(slices.Clone(order), from, from+1)
	for to := range order {
		if len(s.packed) >= maxPacked || !s.canImprove() {
			return
		}
		s.tryOrder(slices.Insert(slices.Clone(rest), to, i))
	}
}

// replay packs the best order again, reports each run with its span, and returns the completion
// times. Jobs are numbered within their flow or chain.
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

// addRun adds a run to the schedule.
func (s *search) addRun(out *Schedule, at span, r run) {
	if !s.best.chains {
		out.Ends[r.flow][r.job] = at.to
		if at.from == 0 {
			out.Now = append(out.Now, Share{int(r.flow), int(r.job), int(r.slots)})
		}
		return
	}
	c := &s.chains[r.flow]
	jobs := c.allocations(r.job)
	for _, j := range jobs {
		out.Ends[r.flow][j.job] = at.to
	}
	if at.from == 0 {
		out.Now = c.proportional(out.Now, jobs, r)
	}
}
