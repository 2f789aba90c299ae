package flowflex

import (
	"cmp"
	"slices"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/flowflex"
)

// sameInstant and rounding are the constants of scheduler/flowflex: the relative distance of
// equal times, and of sums of the same terms in different orders.
const (
	sameInstant = 1e-9
	rounding    = 1e-12
)

// instance is a problem with the lower bounds of its flows.
type instance struct {
	slots float64
	flows []measured
}

// measured is a flow with its bounds.
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

// q and lowerBound are lower bounds of a flow's completion: the paper's Q, and ours.
func (f *measured) q() float64          { return f.Q }
func (f *measured) lowerBound() float64 { return f.LowerBound }

// usableSlots returns the number of slots that a job can use.
func (in *instance) usableSlots(j *flowflex.Job) float64 { return min(float64(j.Max), in.slots) }

// byDeadline orders flows by deadline, then by decreasing LowerBound, as in scheduler/flowflex.
func (in *instance) byDeadline(deadlines []float64) []int {
	order := positions(len(in.flows))
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(deadlines[a], deadlines[b]), cmp.Compare(in.flows[b].LowerBound, in.flows[a].LowerBound))
	})
	return order
}

// positions returns 0, 1, …, n-1.
func positions(n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return order
}

// justAfter returns the least cost of completing later than t: the limit from the right.
func justAfter(c *scheduler.Cost, t float64) float64 {
	if c.IsStep() {
		return c.At(t + 3*sameInstant*max(1, t)) // beyond At's tolerance for the same instant
	}
	return c.At(t)
}
