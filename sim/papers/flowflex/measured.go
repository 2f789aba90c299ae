package flowflex

import (
	"cmp"
	"slices"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/flowflex"
)

// sameInstant and rounding are those of scheduler/flowflex: the relative distance of equal
// times, and of sums of the same terms in different orders.
const (
	sameInstant = 1e-9
	rounding    = 1e-12
)

// instance is a problem with the lower bounds of its flows.
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

// q and lowerBound are the earliest completions of a flow: the paper's Q and our bound.
func (f *measured) q() float64          { return f.Q }
func (f *measured) lowerBound() float64 { return f.LowerBound }

// most is the number of slots that a job can use.
func (in *instance) most(j *flowflex.Job) float64 { return min(float64(j.Max), in.slots) }

// byDeadline orders flows by deadline; ties by the longest Q, as in scheduler/flowflex.
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
	if c.IsStep() {
		return c.At(t + 3*sameInstant*max(1, t)) // beyond At's tolerance for the same instant
	}
	return c.At(t)
}
