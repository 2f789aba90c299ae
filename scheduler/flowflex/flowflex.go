// Package flowflex schedules flows: a flow is a directed acyclic graph of jobs with one cost
// function on its completion time. It minimises the sum or the maximum of the flows' costs. It
// implements
//
//	V. Nagarajan, J. Wolf, A. Balmin, K. Hildrum: FlowFlex: Malleable Scheduling
//	for Flows of MapReduce Jobs, Middleware 2013
//
// with improvements that measurements support, see docs/papers/flowflex.md.
//
// The model (section 3): a job has work in slot-seconds. Its rate is the number of its slots,
// at most its Max. It starts after its predecessors have completed. Times are seconds from now;
// everything has arrived at time 0.
//
// Files:
//
//	chain.go     stage 1: a flow becomes a chain of pseudo-jobs
//	pack.go      stage 2a: packs flows, or chains, in an order, each with all slots it can use
//	jobqueue.go  packs jobs by the latest time of their start or end, whatever their flow
//	orders.go    classical orders, and local search on a surrogate cost
//	solve.go     the search for an order, for sums; minimax.go has it for maxima
//	deadlines.go adjusts deadlines by how late or early flows were
//	shares.go    from pseudo-jobs back to jobs: proportional shares instead of stage 3
//	bounds.go    lower bounds for starts of jobs and ends of flows
//	late.go      expected step costs of flows that may end later than predicted
//	policy.go    the policy of a running system: from a Snapshot to a Plan
//
// Policy omits the relaxation of stage 2b, like the paper's live system. The relaxation, the
// bounds, and the paper's exact algorithm are in sim/papers/flowflex.
//
// Invariants
//
//	F1  A Schedule obeys precedence, the jobs' Max and the number of slots at every
//	    instant. It does each job's work exactly, and its Cost is correct.
//	F2  No schedule ends a flow before its Q ([Measure]).
//	F3  Results depend on the arguments alone. Ties go to the first flow, then to the
//	    first job. So callers order both by id.
//
// Complexity, for N jobs, A of them with slots at a time: packing one order takes O(N·A). The
// search packs some tens of orders, at most 60 rounds of adjusted deadlines, and at most
// Options.Effort more orders.
package flowflex

import (
	"fmt"
	"math"

	"github.com/quernmr/quern/scheduler"
)

// sameInstant is the relative difference up to which times count as equal. They are sums of many
// terms, and a rounding error must not make a flow miss its deadline.
const sameInstant = 1e-9

// rounding bounds the relative difference of sums of the same terms in different orders.
const rounding = 1e-12

// Problem has the flows to schedule from now on.
type Problem struct {
	Slots int
	Flows []Flow
}

// Flow is a directed acyclic graph of jobs.
type Flow struct {
	ID   string // for errors
	Jobs []Job
	Cost scheduler.Cost // of the flow's completion; any non-decreasing function would work
}

// Job is a node of a flow: in a running system, the map or the reduce phase of a job.
type Job struct {
	ID    string  // for errors
	Work  float64 // slot-seconds left; 0: complete once its predecessors are
	Max   int     // useful slots; capped at the number of slots
	After []int   // indexes of its predecessors in Flow.Jobs
}

// maxSlots keeps products of slots, maxima and jobs within 64 bits.
const maxSlots = 1 << 24

// flow is a validated Flow, or a chain.
type flow struct {
	jobs       []job
	cost       *scheduler.Cost
	volume     float64 // V: slot-seconds
	path       float64 // critical path, seconds
	q          float64 // Q: a lower bound of its completion (equation 2)
	lowerBound float64 // a better lower bound, at least Q; see tightenBounds
}

type job struct {
	work         float64
	max          float64 // a whole number
	successors   []int32 // positions of its successors
	predecessors int32   // number of its predecessors
	tail         float64 // least seconds from its start to the end of the flow; see tightenBounds
}

// problem is a validated Problem: its flows as graphs and as chains.
type problem struct {
	slots  int
	flows  []flow
	chains []chain
}

// prepare validates p, makes chains and computes lower bounds. O(N log N + E) for N jobs and E
// arcs, plus tightenBounds.
func prepare(p Problem) (*problem, error) {
	if p.Slots < 1 || p.Slots > maxSlots {
		return nil, fmt.Errorf("%d slots: from 1 to %d are possible", p.Slots, maxSlots)
	}
	out := &problem{slots: p.Slots, flows: make([]flow, len(p.Flows)), chains: make([]chain, len(p.Flows))}
	for i, f := range p.Flows {
		if err := checkCost(f.Cost); err != nil {
			return nil, fmt.Errorf("flow %s: %w", f.ID, err)
		}
		made, sorted, err := checkJobs(f, p.Slots)
		if err != nil {
			return nil, fmt.Errorf("flow %s: %w", f.ID, err)
		}
		if made.measure(sorted, p.Slots); math.IsInf(made.volume, 0) {
			return nil, fmt.Errorf("flow %s: the work of all jobs is not finite", f.ID)
		}
		made.tightenBounds(sorted, p.Slots)
		out.flows[i] = made
		out.chains[i] = out.flows[i].chain(sorted)
	}
	return out, nil
}

// checkCost reports the invalid field of a cost.
func checkCost(c scheduler.Cost) error {
	switch {
	case !(c.Weight > 0) || math.IsInf(c.Weight, 0):
		return fmt.Errorf("Cost.Weight is %v", c.Weight)
	case math.IsNaN(c.Due) || math.IsInf(c.Due, 0):
		return fmt.Errorf("Cost.Due is %v", c.Due)
	case c.Penalty > scheduler.SLA:
		return fmt.Errorf("Cost.Penalty is %v", c.Penalty)
	}
	before := scheduler.Level{Due: math.Inf(-1)}
	for i, l := range c.Levels {
		if !(l.Due >= before.Due) || math.IsInf(l.Due, 0) {
			return fmt.Errorf("Cost.Levels[%d].Due is %v, after %v", i, l.Due, before.Due)
		}
		if !(l.Cost >= before.Cost) || math.IsInf(l.Cost, 0) {
			return fmt.Errorf("Cost.Levels[%d].Cost is %v, after %v", i, l.Cost, before.Cost)
		}
		before = l
	}
	return nil
}

// checkJobs returns the flow and its jobs' positions in a topological order.
func checkJobs(f Flow, slots int) (made flow, sorted []int32, err error) {
	made = flow{jobs: make([]job, len(f.Jobs)), cost: &f.Cost}
	for i, j := range f.Jobs {
		switch {
		case math.IsNaN(j.Work) || math.IsInf(j.Work, 0) || j.Work < 0:
			return flow{}, nil, fmt.Errorf("job %s: work is %v slot-seconds", j.ID, j.Work)
		case j.Max < 0 || j.Max == 0 && j.Work > 0:
			return flow{}, nil, fmt.Errorf("job %s: max is %d slots, with work left", j.ID, j.Max)
		}
		made.jobs[i].work, made.jobs[i].max = j.Work, float64(min(j.Max, slots))
		made.jobs[i].predecessors = int32(len(j.After))
		for _, before := range j.After {
			if before < 0 || before >= len(f.Jobs) {
				return flow{}, nil, fmt.Errorf("job %s: after is job number %d of %d", j.ID, before, len(f.Jobs))
			}
			made.jobs[before].successors = append(made.jobs[before].successors, int32(i))
		}
	}
	sorted, onCycle := made.topological()
	if onCycle >= 0 {
		return flow{}, nil, fmt.Errorf("job %s: after leads back to the job itself", f.Jobs[onCycle].ID)
	}
	return made, sorted, nil
}

// topological sorts the jobs after their predecessors. If that is impossible, it returns a job on a
// cycle, else -1. O(N + E), without recursion: a flow may be a line of many thousand jobs.
func (f *flow) topological() (sorted []int32, onCycle int) {
	waits := make([]int32, len(f.jobs))
	sorted = make([]int32, 0, len(f.jobs))
	for i := range f.jobs {
		if waits[i] = f.jobs[i].predecessors; waits[i] == 0 {
			sorted = append(sorted, int32(i))
		}
	}
	for at := 0; at < len(sorted); at++ {
		for _, next := range f.jobs[sorted[at]].successors {
			if waits[next]--; waits[next] == 0 {
				sorted = append(sorted, next)
			}
		}
	}
	if len(sorted) == len(f.jobs) {
		return sorted, -1
	}
	return nil, f.cycle(waits)
}

// cycle returns a job on a cycle. It walks backwards among the unsorted jobs: each has an unsorted
// predecessor, so after as many steps as there are jobs the walk is on a cycle.
func (f *flow) cycle(waits []int32) int {
	from := make([]int, len(f.jobs))
	for i := range f.jobs {
		for _, next := range f.jobs[i].successors {
			if waits[i] > 0 {
				from[next] = i
			}
		}
	}
	at := 0
	for waits[at] == 0 {
		at++
	}
	for range f.jobs {
		at = from[at]
	}
	return at
}

// measure computes volume, critical path, Q and the tails.
func (f *flow) measure(sorted []int32, slots int) {
	for at := len(sorted) - 1; at >= 0; at-- {
		j := &f.jobs[sorted[at]]
		for _, next := range j.successors {
			j.tail = max(j.tail, f.jobs[next].tail)
		}
		j.tail += j.duration()
		f.path = max(f.path, j.tail)
		f.volume += j.work
	}
	f.q = max(f.path, f.volume/float64(slots))
}

// duration returns the job's seconds with all the slots it can use.
func (j *job) duration() float64 {
	if j.work == 0 {
		return 0
	}
	return j.work / j.max
}
