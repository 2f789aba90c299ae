// Package flex allocates slots to independent jobs so that a chosen metric is least: FLEX (Wolf
// et al., Middleware 2010). Section and figure numbers in this package are that paper's.
//
// [Solve] packs orderings of the jobs with the Malleable Packing Scheme (MPS, section 3.1) and
// keeps the best: the generic ordering from the moldable allocation problem (section 3.2),
// orderings specific to the metric, which the paper omits, and improvements by local search.
// [Policy] is Solve as a scheduler.Policy: its Plan is the first interval of the schedule. In the
// paper's add-on mode FAIR takes FLEX's allocations as minima (section 1.1). FAIR then has no
// slack to share, so the results would be the same.
//
// Invariants
//
//	F1  At every time of a Schedule each live job has between its minimum and its
//	    maximum, and no more slots are used than there are.
//	F2  Solve is a function of its Problem: its random numbers are fixed, ties go to the
//	    lower index and to the ordering tried first.
//	F3  No ordering that Solve packed has a smaller value than its result. If a job's
//	    maximum is below the slots, FAIR has no smaller value either.
//
// Lemma 1 says that some ordering is optimal. It is false if maxima are below the slots. Example:
// 10 slots and three jobs of work 10, minimum 1 and maximum 6. Every ordering ends at 3.33, but
// equal shares end at 3.0. So Solve then also evaluates FAIR and, for up to about 500 jobs,
// deadline-paced allocations.
//
// Complexity, for J jobs and S slots: packing an ordering takes O(J log J). For response,
// stretch and all maxima the orderings take O(J² log J + J log² S) for up to 500 jobs. For more
// jobs they take at most 500 J log J, because jobs are ranked less often (see shortestOrder).
// The local search packs a fixed number of jobs. For tardy count, tardiness and SLA see
// solveByDP and targets; the same bounds hold.
//
// There is no I/O and no clock. Callers are the job tracker's policy goroutine and simulations.
package flex

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quernmr/quern/scheduler"
)

// Policy is FLEX for the Snapshot's Metric, as a replacement of FAIR.
type Policy struct{}

// Plan implements [scheduler.Policy]. It returns the first interval of the best schedule. For a
// maximum it may use a schedule that is nearly as good and steadier (see steady).
func (Policy) Plan(s scheduler.Snapshot) (scheduler.Plan, error) {
	s, err := s.Normal()
	if err != nil {
		return scheduler.Plan{}, err
	}
	plan := scheduler.Plan{Targets: make([]scheduler.Target, 0, len(s.Jobs))}
	if s.Slots == 0 {
		for _, j := range s.Jobs {
			plan.Targets = append(plan.Targets, scheduler.Target{Job: j.ID})
		}
		return plan, nil
	}
	p := FromSnapshot(s)
	best, err := Solve(p)
	if err != nil {
		return scheduler.Plan{}, fmt.Errorf("flex: %w", err)
	}
	best = p.steady(best)
	slots := roundSlots(best.firstSlots(), p)
	for _, j := range best.Order {
		plan.Targets = append(plan.Targets, scheduler.Target{Job: s.Jobs[j].ID, Slots: slots[j], End: best.Ends[j]})
	}
	return plan, nil
}

// FromSnapshot returns the problem of a snapshot in normal form. Job i of the problem is
// s.Jobs[i].
func FromSnapshot(s scheduler.Snapshot) *Problem {
	p := &Problem{Slots: s.Slots, Aggregate: s.Metric.Aggregate, Jobs: make([]Job, len(s.Jobs))}
	for i, j := range s.Jobs {
		p.Jobs[i] = Job{Work: j.Work, Min: j.Min, Max: j.Max, Cost: s.Metric.Cost(j.Goal, j.Alone, s.Now)}
	}
	return p
}

// roundSlots rounds allocations down to whole slots. Then it rounds up the largest remainders as
// far as slots and maxima allow.
func roundSlots(slots []float64, p *Problem) []int {
	rounded, left := make([]int, len(slots)), p.Slots
	remainder := make([]float64, len(slots))
	for j, s := range slots {
		rounded[j] = min(p.Jobs[j].Max, int(s+1e-9))
		remainder[j] = s - float64(rounded[j])
		left -= rounded[j]
	}
	order := sorted(make([]float64, len(slots)))
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(remainder[b], remainder[a]) })
	for _, j := range order {
		if left <= 0 || remainder[j] < 1e-6 {
			break
		}
		if rounded[j] < p.Jobs[j].Max {
			rounded[j]++
			left--
		}
	}
	return rounded
}
