package flowflex

import (
	"cmp"
	"math"
	"slices"

	"github.com/quernmr/quern/scheduler"
)

// RaisedBound is a bound on the sum or the largest of the flows' costs that is
// higher than the paper's and no schedule's cost is below: flows cannot complete
// before their raised Q, and deadlines are tested with the work of every job, not
// only of the flows that are due. For sums O(2^m m), like [IntegralBound]; for
// maxima O(N log N) for each of a constant number of bisections.
func RaisedBound(p Problem, a scheduler.Aggregate) (float64, error) {
	made, err := prepare(p)
	if err != nil {
		return 0, err
	}
	if a == scheduler.Max {
		_, bound := made.lawler((*flow).atBest)
		return made.raise(bound, make([]float64, len(made.flows))), nil
	}
	bound, err := made.integral((*flow).atBest)
	if err != nil {
		return 0, err
	}
	// The sum is what flows cost at best and, in all, at least as much more as the
	// one that costs most more.
	atBest, sum := make([]float64, len(made.flows)), 0.0
	for i := range made.flows {
		f := &made.flows[i]
		atBest[i] = f.cost.At(f.alone)
		sum += atBest[i]
	}
	return max(bound, sum+made.raise(0, atBest)), nil
}

// atLeast and atBest are the paper's Q and the raised one.
func (f *flow) atLeast() float64 { return f.least }
func (f *flow) atBest() float64  { return f.alone }

// raise is the largest cost beyond base, not below a bound, at which the deadlines
// that follow from it cannot be kept by any schedule; bisected from below.
func (p *problem) raise(bound float64, base []float64) float64 {
	if len(p.flows) == 0 || p.possible(bound, base) {
		return bound
	}
	fail, success := bound, bound+1
	for !p.possible(success, base) {
		if fail, success = success, bound+2*(success-bound); math.IsInf(success, 1) {
			return fail
		}
	}
	for range 2 * bisections {
		if l := fail + (success-fail)/2; p.possible(l, base) {
			success = l
		} else {
			fail = l
		}
	}
	return fail
}

// possible says whether a test finds nothing against a schedule in which each flow
// costs at most its base and so much more. A flow's deadline gives every job a time
// by which it must have ended, and at its fastest before that: so much work must
// be done by any time t, by no more than all slots. It is enough to look at the
// times when jobs must have ended, where the work that must be done stops growing.
func (p *problem) possible(more float64, base []float64) bool {
	type bend struct{ at, slots float64 }
	var bends []bend
	for i := range p.flows {
		f := &p.flows[i]
		deadline := f.cost.Latest(base[i] + more)
		if f.alone > deadline*(1+sameInstant) {
			return false
		}
		if math.IsInf(deadline, 1) {
			continue
		}
		for k := range f.jobs {
			if j := &f.jobs[k]; j.work > 0 {
				start := deadline - j.tail
				bends = append(bends, bend{start, j.max}, bend{start + j.duration(), -j.max})
			}
		}
	}
	slices.SortFunc(bends, func(a, b bend) int { return cmp.Compare(a.at, b.at) })
	must, slots, last := 0.0, 0.0, 0.0
	for _, b := range bends {
		must += slots * (b.at - last)
		if must > float64(p.slots)*b.at*(1+sameInstant)+sameInstant {
			return false
		}
		slots, last = slots+b.slots, b.at
	}
	return true
}
