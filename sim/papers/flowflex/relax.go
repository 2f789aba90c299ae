package flowflex

import (
	"fmt"
	"math"
	"slices"

	"github.com/quernmr/quern/scheduler/flowflex"
	"github.com/quernmr/quern/sim/papers/flowflex/mincost"
)

// relaxed is the solution of the relaxation.
type relaxed struct {
	bound float64
	ends  []float64 // of the time slices, seconds
	parts [][]int64 // by flow and slice: amounts charged there
	units []int64   // by flow: the sum of its parts
}

// resolution is the work of all flows in units of the minimum-cost flow.
const resolution = 1 << 40

// relax solves the relaxation of section 4.2 (Figures 6 and 7): each flow is only a volume. Its
// pieces are charged in time slices not before the flow's Q. A piece costs as much as completing
// in its slice, in proportion to its size. Its work may be done before that slice, within the
// capacity of all slots.
func (in *instance) relax(grid int) (*relaxed, error) {
	out := &relaxed{
		ends:  in.grid(grid),
		parts: make([][]int64, len(in.flows)),
		units: make([]int64, len(in.flows)),
	}
	m, volume := len(in.flows), 0.0
	for i := range in.flows {
		out.parts[i] = make([]int64, len(out.ends))
		volume += in.flows[i].Volume
	}
	if volume == 0 {
		for i := range in.flows {
			out.bound += in.flows[i].cost.At(0)
		}
		return out, nil
	}
	const source, sink = 0, 1
	g := mincost.New(2 + m + len(out.ends))
	slice := func(k int) int { return 2 + m + k }
	demand, base := int64(0), 0.0
	arcs := make([][]int, m) // by flow: its arcs to slices
	at := make([][]int, m)   // by flow: the slices of these arcs
	for i := range in.flows {
		f := &in.flows[i]
		base += f.cost.At(f.Q)
		// Amounts are rounded down and capacities up, so that the bound stays one.
		if out.units[i] = int64(f.Volume / volume * resolution); out.units[i] == 0 {
			continue
		}
		demand += out.units[i]
		g.Arc(source, 2+i, out.units[i], 0)
		for k, charge := range in.charges(f, out.ends) {
			arcs[i] = append(arcs[i], g.Arc(2+i, slice(k), out.units[i], charge/float64(out.units[i])))
			at[i] = append(at[i], k)
		}
	}
	start := 0.0
	for k, end := range out.ends {
		capacity := math.Ceil(in.slots * (end - start) / volume * resolution)
		g.Arc(slice(k), sink, int64(capacity)+1, 0)
		if k > 0 {
			g.Arc(slice(k), slice(k-1), demand, 0)
		}
		start = end
	}
	result, err := g.Solve(source, sink, demand)
	if err != nil {
		return nil, fmt.Errorf("relaxation on %d slices: %w", len(out.ends), err)
	}
	for i := range arcs {
		for n, arc := range arcs[i] {
			out.parts[i][at[i][n]] = g.Flow(arc)
		}
	}
	out.bound = base + result.Bound
	return out, nil
}

// grid lists the relevant times (each Q, steps and bends of costs) and n evenly spaced
// times. It ends when everything could be done. O((m + n) log(m + n)).
func (in *instance) grid(n int) []float64 {
	var points []float64
	volume, horizon := 0.0, 0.0
	for i := range in.flows {
		f := &in.flows[i]
		points = append(points, f.Q)
		points = append(points, f.cost.Breakpoints()...)
		volume += f.Volume
		horizon = max(horizon, f.Q)
	}
	horizon = max(horizon, volume/in.slots)
	for k := range n {
		points = append(points, horizon*float64(k+1)/float64(n))
	}
	points = append(points, horizon)
	slices.Sort(points)
	points = slices.DeleteFunc(points, func(t float64) bool { return t <= 0 || t > horizon })
	return slices.CompactFunc(points, func(a, b float64) bool { return math.Abs(b-a) <= rounding*b })
}

// charges yields the slices in which a flow may complete, with their costs beyond its cost at
// Q. Of slices with equal cost it yields only the last, because its work may be done before.
func (in *instance) charges(f *measured, ends []float64) func(yield func(k int, charge float64) bool) {
	return func(yield func(k int, charge float64) bool) {
		lowest := f.cost.At(f.Q)
		charge := func(k int) float64 {
			if k == 0 || ends[k-1] < f.Q*(1-rounding) {
				return 0
			}
			return max(0, justAfter(f.cost, ends[k-1])-lowest)
		}
		for k, end := range ends {
			if end < f.Q*(1-rounding) {
				continue
			}
			c := charge(k)
			if k+1 < len(ends) && charge(k+1) == c {
				continue
			}
			if !yield(k, c) {
				return
			}
		}
	}
}

// deadlines rounds the relaxation (Figure 6, step 5). A flow's deadline is the end of the slice
// by which the fraction of the flow is charged. The paper uses 1/2 and recommends several.
func (r *relaxed) deadlines(fraction float64) []float64 {
	out := make([]float64, len(r.parts))
	for i, parts := range r.parts {
		want, sum := fraction*float64(r.units[i]), int64(0)
		for k, part := range parts {
			if sum += part; part > 0 && float64(sum) >= want*(1-sameInstant) {
				out[i] = r.ends[k]
				break
			}
		}
	}
	return out
}

// orderGrid is the number of evenly spaced points in time that suffice for orders.
const orderGrid = 20

// relaxedDeadlines rounds the relaxation at ten fractions.
func relaxedDeadlines(p flowflex.Problem) ([][]float64, error) {
	in, err := prepare(p)
	if err != nil {
		return nil, err
	}
	relaxed, err := in.relax(orderGrid)
	if err != nil {
		return nil, err
	}
	var all [][]float64
	for tenth := 1; tenth <= 10; tenth++ {
		all = append(all, relaxed.deadlines(float64(tenth)/10))
	}
	return all, nil
}
