package flowflex

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/flowflex"
	"github.com/quernmr/quern/sim/papers"
)

// drawInstance draws a problem of few flows and jobs under a metric.
func drawInstance(t *rapid.T, m scheduler.Metric) flowflex.Problem {
	rd := rapid.SampledFrom(append(otherReadings(), chosenReading())).Draw(t, "reading")
	w := rd.workload(papers.Rand(rapid.Uint64().Draw(t, "seed"), "bounds", 0))
	n := min(len(w.flows), rapid.IntRange(0, 5).Draw(t, "flows"))
	w.flows, w.goals = w.flows[:n], w.goals[:n]
	for i := range w.flows {
		f := &w.flows[i]
		f.Jobs = f.Jobs[:min(len(f.Jobs), rapid.IntRange(0, 6).Draw(t, "jobs"))]
		for k := range f.Jobs {
			if rapid.IntRange(0, 9).Draw(t, "empty") == 0 {
				f.Jobs[k].Work = 0
			}
		}
	}
	return w.problem(m)
}

// TestBounds: no schedule costs less than a bound, and the plain bounds are at most the raised
// one.
func TestBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.SampledFrom(append(sums(), maxima()...)).Draw(t, "metric")
		p := drawInstance(t, m)
		costs, err := solve(p, m, true)
		if err != nil {
			t.Fatal(err)
		}
		bounds, err := boundsOf(p, m, true)
		if err != nil {
			t.Fatal(err)
		}
		for policy, cost := range costs {
			if bounds[raisedBound] > cost+1e-7*max(1, math.Abs(cost)) {
				t.Fatalf("%v: raised bound %v, %s costs %v", m, bounds[raisedBound], policy, cost)
			}
		}
		margin := 1e-7 * max(1, math.Abs(bounds[raisedBound]))
		if bounds[plainBound] > bounds[raisedBound]+margin || m.Aggregate == scheduler.Sum && bounds[minCostBound] > bounds[plainBound]+margin {
			t.Fatalf("%v: flow bound %v, plain %v, raised %v", m, bounds[minCostBound], bounds[plainBound], bounds[raisedBound])
		}
	})
}

// TestIntegralAgainstEveryOrder compares dynamic programming over sets and Lawler's rule with
// every order.
func TestIntegralAgainstEveryOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.SampledFrom(sums()).Draw(t, "metric")
		in, err := prepare(drawInstance(t, m))
		if err != nil {
			t.Fatal(err)
		}
		sum, largest := math.Inf(1), math.Inf(1)
		permute(positions(len(in.flows)), 0, func(order []int) {
			area, ends := 0.0, make([]float64, len(order))
			for _, i := range order {
				area += in.flows[i].Volume
				ends[i] = max(in.flows[i].Q, area/in.slots)
			}
			sum, largest = min(sum, in.cost(scheduler.Sum, ends)), min(largest, in.cost(scheduler.Max, ends))
		})
		equal := func(a, b float64) bool { return math.Abs(a-b) <= 1e-7*max(1, math.Abs(a)) }
		if bound, err := in.integral((*measured).q); err != nil || !equal(bound, sum) {
			t.Fatalf("integral bound %v (%v), the best order costs %v", bound, err, sum)
		}
		if bound := in.lawler((*measured).q); !equal(bound, largest) {
			t.Fatalf("bound %v, the best order costs %v", bound, largest)
		}
	})
}

func permute(order []int, from int, visit func([]int)) {
	if from == len(order) {
		visit(slices.Clone(order))
		return
	}
	for i := from; i < len(order); i++ {
		order[from], order[i] = order[i], order[from]
		permute(order, from+1, visit)
		order[from], order[i] = order[i], order[from]
	}
}
