package flowflex

import (
	"cmp"
	"math"
	"slices"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/flowflex"
)

// RaisedBound is a lower bound of the sum or the largest of the flows' costs, higher than the
// paper's. Flows cannot complete before their LowerBound, and deadlines are tested with the
// work of every job, not only of the flows that are due. It takes O(2^m m) for sums, like the
// integral bound. For maxima it takes O(N log N) for each of a constant number of bisections.
func RaisedBound(p flowflex.Problem, a scheduler.Aggregate) (float64, error) {
	in, err := prepare(p)
	if err != nil {
		return 0, err
	}
	if a == scheduler.Max {
		return in.raise(in.lawler((*measured).lowerBound), make([]float64, len(in.flows))), nil
	}
	bound, err := in.integral((*measured).lowerBound)
	if err != nil {
		return 0, err
	}
	// The sum is at least the flows' least costs, plus the largest cost of one flow beyond its
	// least.
	atBest, sum := make([]float64, len(in.flows)), 0.0
	for i := range in.flows {
		f := &in.flows[i]
		atBest[i] = f.cost.At(f.LowerBound)
		sum += atBest[i]
	}
	return max(bound, sum+in.raise(0, atBest)), nil
}

// raise returns the largest cost beyond base with deadlines that no schedule can keep, found by
// bisection from below. The result is at least bound.
func (in *instance) raise(bound float64, base []float64) float64 {
	if len(in.flows) == 0 || in.possible(bound, base) {
		return bound
	}
	fail, success := bound, bound+1
	for !in.possible(success, base) {
		if fail, success = success, bound+2*(success-bound); math.IsInf(success, 1) {
			return fail
		}
	}
	for range 2 * bisections {
		if l := fail + (success-fail)/2; in.possible(l, base) {
			success = l
		} else {
			fail = l
		}
	}
	return fail
}

// possible reports whether each flow may cost at most its base plus more. Such a cost sets a
// deadline for the flow, and so a latest end for every job, with full speed before it. By any
// time t some work must then be done, by at most all slots. Only the latest ends need a test:
// there the required work stops growing.
func (in *instance) possible(more float64, base []float64) bool {
	type bend struct{ at, slots float64 } // from at on, this many more slots must work
	var bends []bend
	for i := range in.flows {
		f := &in.flows[i]
		deadline := f.cost.Latest(base[i] + more)
		if f.LowerBound > deadline*(1+sameInstant) {
			return false
		}
		if math.IsInf(deadline, 1) {
			continue
		}
		for k := range f.jobs {
			if j := &f.jobs[k]; j.Work > 0 {
				start, usable := deadline-f.Tails[k], in.usableSlots(j)
				bends = append(bends, bend{start, usable}, bend{start + j.Work/usable, -usable})
			}
		}
	}
	slices.SortFunc(bends, func(a, b bend) int { return cmp.Compare(a.at, b.at) })
	required, slots, last := 0.0, 0.0, 0.0
	for _, b := range bends {
		required += slots * (b.at - last)
		if required > in.slots*b.at*(1+sameInstant)+sameInstant {
			return false
		}
		slots, last = slots+b.slots, b.at
	}
	return true
}
