// Package flowflex decides how flows share slots: a flow is a directed acyclic
// graph of jobs with one cost function on its completion time, and what is
// minimised is the sum of the flows' costs or the largest of them. It implements
//
//	V. Nagarajan, J. Wolf, A. Balmin, K. Hildrum: FlowFlex: Malleable Scheduling
//	for Flows of MapReduce Jobs, Middleware 2013
//
// and improves on it where measurements say so; docs/papers/flowflex.md has them.
//
// The model (section 3): a job has work in slot-seconds, which is done at a rate
// equal to the slots it has, at most its Max; jobs that it comes after must be
// complete before. Times are seconds from now; everything is there at time 0.
//
// The way through the package:
//
//	chain.go    stage 1: a flow becomes a chain of pseudo-jobs
//	pack.go     stage 2a: flows, or chains, in an order, each as fast as it can
//	urgent.go   jobs in the order in which they must start or end, whatever their flow
//	orders.go   cheap orders, and local search on a surrogate
//	solve.go    the search for an order, sums; maxima are in minimax.go
//	mend.go     deadlines moved by how late or early flows were, packed by urgency
//	shares.go   back from pseudo-jobs to jobs: proportional shares instead of stage 3
//	reach.go    how early jobs can start, and flows end, at best
//	late.go     costs with steps, of flows that end later than foreseen
//	policy.go   the policy of a running system: a Snapshot in, a Plan out
//
// A running system does without the relaxation of stage 2b, as the paper's does. That, the
// bounds, and the paper's algorithm to the letter are in sim/papers/flowflex.
//
// Invariants
//
//	F1  A Schedule obeys precedence, the jobs' Max and the number of slots at every
//	    instant, does each job's work exactly, and has the Cost that it says.
//	F2  No schedule, whoever made it, ends a flow before its Q ([Measure]).
//	F3  Results depend on the arguments alone; ties go to the flow, then the job,
//	    that is given first: order them by id.
//
// Complexity: one order is packed in O(N A), N jobs in all and A jobs that have
// slots at a time. The search packs some tens of orders and at most 60 times by mended
// deadlines, and Options.Effort orders more.
package flowflex

import (
	"fmt"
	"math"

	"github.com/quernmr/quern/scheduler"
)

// sameInstant is how far times may be apart, in proportion, to be the same: they
// are sums of many terms, and a rounding error must not miss a deadline.
const sameInstant = 1e-9

// rounding is how far sums of the same terms in another order may be apart.
const rounding = 1e-12

// Problem is what is to be scheduled from now on.
type Problem struct {
	Slots int
	Flows []Flow
}

// Flow is a directed acyclic graph of jobs.
type Flow struct {
	ID   string // for errors
	Jobs []Job
	Cost scheduler.Cost // of the flow's completion; any non-decreasing function would do
}

// Job is a node of a flow: in a running system, the map or the reduce phase of a job.
type Job struct {
	ID    string  // for errors
	Work  float64 // slot-seconds left; 0: complete once those before it are
	Max   int     // useful slots; more than there are count as many as there are
	After []int   // positions in the flow of the jobs that it comes after
}

// mostSlots keeps products of slots, maxima and jobs within 64 bits.
const mostSlots = 1 << 24

// flow is a Flow, or a chain, that has been checked.
type flow struct {
	jobs   []job
	cost   *scheduler.Cost
	volume float64 // V: slot-seconds
	path   float64 // critical path, seconds
	least  float64 // Q: it cannot complete earlier (equation 2)
	alone  float64 // raised Q: nor earlier than that; see reach
}

type job struct {
	work   float64
	max    float64 // a whole number
	before []int32 // positions of the jobs that come after this one
	waits  int32   // how many this one comes after
	tail   float64 // seconds from its start to the end of the flow at best; raised by reach
}

// problem is a Problem that has been checked, with both its forms.
type problem struct {
	slots  int
	flows  []flow
	chains []chain
}

// prepare checks p and computes what does not depend on a schedule: O(N log N + E)
// for N jobs and E arcs, and reach.
func prepare(p Problem) (*problem, error) {
	if p.Slots < 1 || p.Slots > mostSlots {
		return nil, fmt.Errorf("%d slots: from 1 to %d are possible", p.Slots, mostSlots)
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
		made.reach(sorted, p.Slots)
		out.flows[i] = made
		out.chains[i] = out.flows[i].chain(sorted)
	}
	return out, nil
}

// checkCost names the field of a cost that has no meaning.
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
		made.jobs[i].waits = int32(len(j.After))
		for _, before := range j.After {
			if before < 0 || before >= len(f.Jobs) {
				return flow{}, nil, fmt.Errorf("job %s: after is job number %d of %d", j.ID, before, len(f.Jobs))
			}
			made.jobs[before].before = append(made.jobs[before].before, int32(i))
		}
	}
	sorted, onCycle := made.topological()
	if onCycle >= 0 {
		return flow{}, nil, fmt.Errorf("job %s: after leads back to the job itself", f.Jobs[onCycle].ID)
	}
	return made, sorted, nil
}

// topological sorts the jobs so that each follows those it comes after, or returns
// the position of one that is on a cycle. O(N + E), no recursion: a flow may be a
// line of many thousand jobs.
func (f *flow) topological() (sorted []int32, onCycle int) {
	waits := make([]int32, len(f.jobs))
	sorted = make([]int32, 0, len(f.jobs))
	for i := range f.jobs {
		if waits[i] = f.jobs[i].waits; waits[i] == 0 {
			sorted = append(sorted, int32(i))
		}
	}
	for at := 0; at < len(sorted); at++ {
		for _, next := range f.jobs[sorted[at]].before {
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

// cycle walks backwards among the jobs that were never reached, each of which
// follows another one of them, until it comes by a job again.
func (f *flow) cycle(waits []int32) int {
	from := make([]int, len(f.jobs))
	for i := range f.jobs {
		for _, next := range f.jobs[i].before {
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
		for _, next := range j.before {
			j.tail = max(j.tail, f.jobs[next].tail)
		}
		j.tail += j.duration()
		f.path = max(f.path, j.tail)
		f.volume += j.work
	}
	f.least = max(f.path, f.volume/float64(slots))
}

// duration is the seconds that a job takes with all the slots it can use.
func (j *job) duration() float64 {
	if j.work == 0 {
		return 0
	}
	return j.work / j.max
}
