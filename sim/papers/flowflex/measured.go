package flowflex

import (
	"cmp"
	"slices"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/flowflex"
)

// sameInstant and rounding are those of scheduler/flowflex: how far times may be apart,
// in proportion, to be the same, and sums of the same terms in another order.
const (
	sameInstant = 1e-9
	rounding    = 1e-12
)

// instance is a problem with what its flows take at best.
type instance struct {
	slots float64
	flows []measured
}

type measured struct {
	flowflex.Measure
	cost *scheduler.Cost
	jobs []flowflex.Job
}

func prepare(p flowflex.Problem) (*instance, error) {
	measures, err := flowflex.Measures(p)
	if err != nil {
		return nil, err
	}
	in := &instance{slots: float64(p.Slots), flows: make([]measured, len(p.Flows))}
	for i := range p.Flows {
		in.flows[i] = measured{measures[i], &p.Flows[i].Cost, p.Flows[i].Jobs}
	}
	return in, nil
}

// q and raisedQ are when a flow can complete at the earliest: the paper's Q and ours.
func (f *measured) q() float64       { return f.Q }
func (f *measured) raisedQ() float64 { return f.LowerBound }

// most is the slots that a job can use.
func (in *instance) most(j *flowflex.Job) float64 { return min(float64(j.Max), in.slots) }

// byDeadline is the flows' order by deadline; among equals the flow with the longest Q
// goes first, as in scheduler/flowflex.
func (in *instance) byDeadline(deadlines []float64) []int {
	order := positions(len(in.flows))
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(deadlines[a], deadlines[b]), cmp.Compare(in.flows[b].LowerBound, in.flows[a].LowerBound))
	})
	return order
}

// positions is 0, 1, …, n-1.
func positions(n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return order
}

// justAfter is the least cost of completing later than t: the limit from the right.
func justAfter(c *scheduler.Cost, t float64) float64 {
	if c.Steps() {
		return c.At(t + 3*sameInstant*max(1, t)) // beyond what At takes for the same instant
	}
	return c.At(t)
}
