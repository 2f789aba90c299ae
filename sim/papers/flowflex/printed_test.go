package flowflex

import (
	"math"
	"testing"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/flowflex"
	"github.com/quernmr/quern/sim/papers/flowflex/mincost"
)

// figure6 returns the value of the paper's network on whole times. An amount from a flow to
// time t is charged w(t) in proportion. The first t is the first whole one from Q on.
func figure6(t *testing.T, p flowflex.Problem) float64 {
	in, err := prepare(p)
	fatal(t, err)
	longest := 0.0
	for i := range in.flows {
		longest = max(longest, in.flows[i].Q)
	}
	m, horizon := len(in.flows), 2*len(in.flows)*int(math.Ceil(longest))
	g := mincost.New(2 + m + horizon)
	demand := int64(0)
	for i := range in.flows {
		f := &in.flows[i]
		g.Arc(0, 2+i, int64(f.Volume), 0)
		demand += int64(f.Volume)
		for at := int(math.Ceil(f.Q)); at <= horizon; at++ {
			g.Arc(2+i, 2+m+at-1, int64(f.Volume), f.cost.At(float64(at))/f.Volume)
		}
	}
	for at := range horizon {
		g.Arc(2+m+at, 1, int64(p.Slots), 0)
		if at > 0 {
			g.Arc(2+m+at, 2+m+at-1, demand, 0)
		}
	}
	result, err := g.Solve(0, 1, demand)
	fatal(t, err)
	return result.Cost
}

// TestFigure6IsNoBound: if a flow can end between whole times, the network of Figure 6 costs
// more than the best schedule. If costs change at whole times only, it does not. Our bound
// holds in both cases.
func TestFigure6IsNoBound(t *testing.T) {
	half := flowflex.Problem{Slots: 2, Flows: []flowflex.Flow{{ID: "f", Jobs: []flowflex.Job{{Work: 1, Max: 2}}}}}
	for _, c := range []struct {
		cost       scheduler.Cost
		best, flow float64
	}{
		{scheduler.Cost{Penalty: scheduler.Response, Weight: 1}, 0.5, 1},
		{scheduler.Cost{Penalty: scheduler.Tardy, Weight: 1, Due: 0.5}, 0, 1},
		{scheduler.Cost{Penalty: scheduler.Tardy, Weight: 1, Due: 1}, 0, 0},
	} {
		half.Flows[0].Cost = c.cost
		s, err := flowflex.Solve(half, flowflex.Options{})
		fatal(t, err)
		bound, err := flowBound(half, boundGrid)
		fatal(t, err)
		if flow := figure6(t, half); s.Cost != c.best || flow != c.flow || bound > s.Cost {
			t.Errorf("%+v: cost %v, bound of Figure 6 %v, our bound %v", c.cost, s.Cost, flow, bound)
		}
	}
}
