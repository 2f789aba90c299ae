package mincost_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/quernmr/quern/sim/papers/flowflex/mincost"
)

// link is an arc in a test.
type link struct {
	from, to int
	capacity int64
	cost     float64
}

// TestScenarios runs testdata/*.txt. One directive:
//
//	solve nodes=N from=S to=T demand=D     with an arc a line: "FROM TO CAPACITY COST";
//	                                       prints the cost and the arcs used
func TestScenarios(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, path := range paths {
		datadriven.RunTest(t, path, run)
	}
}

func run(t *testing.T, d *datadriven.TestData) string {
	var nodes, from, to int
	var demand int64
	d.ScanArgs(t, "nodes", &nodes)
	d.ScanArgs(t, "from", &from)
	d.ScanArgs(t, "to", &to)
	d.ScanArgs(t, "demand", &demand)
	var links []link
	for line := range strings.Lines(d.Input) {
		var l link
		if _, err := fmt.Sscan(line, &l.from, &l.to, &l.capacity, &l.cost); err != nil {
			d.Fatalf(t, "%q: %v", line, err)
		}
		links = append(links, l)
	}
	g := build(nodes, links)
	result, err := g.Solve(from, to, demand)
	if err != nil {
		return err.Error()
	}
	var out strings.Builder
	fmt.Fprintf(&out, "cost %g bound %g\n", result.Cost, result.Bound)
	for i, l := range links {
		if flow := g.Flow(i); flow > 0 {
			fmt.Fprintf(&out, "%d -> %d: %d of %d at %g\n", l.from, l.to, flow, l.capacity, l.cost)
		}
	}
	return out.String()
}

func build(nodes int, links []link) *mincost.Graph {
	g := mincost.New(nodes)
	for _, l := range links {
		g.Arc(l.from, l.to, l.capacity, l.cost)
	}
	return g
}

// network draws a small graph without negative cycles: it adds differences of node heights to
// non-negative costs.
func network(t *rapid.T) (nodes int, links []link, demand int64) {
	nodes = rapid.IntRange(2, 6).Draw(t, "nodes")
	heights := rapid.SliceOfN(rapid.IntRange(0, 5), nodes, nodes).Draw(t, "heights")
	for range rapid.IntRange(0, 14).Draw(t, "arcs") {
		l := link{
			from:     rapid.IntRange(0, nodes-1).Draw(t, "from"),
			to:       rapid.IntRange(0, nodes-1).Draw(t, "to"),
			capacity: rapid.Int64Range(0, 4).Draw(t, "capacity"),
			cost:     float64(rapid.IntRange(0, 8).Draw(t, "cost")),
		}
		l.cost += float64(heights[l.to] - heights[l.from])
		links = append(links, l)
	}
	return nodes, links, rapid.Int64Range(0, 5).Draw(t, "demand")
}

// TestAgainstCycleCancelling compares with the simplest correct method: start with any flow,
// then cancel negative cycles of the residual graph one by one.
func TestAgainstCycleCancelling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, links, demand := network(t)
		g := build(nodes, links)
		result, err := g.Solve(0, nodes-1, demand)
		want, ok := cancelCycles(nodes, links, demand)
		if !ok {
			if !errors.Is(err, mincost.ErrInfeasible) {
				t.Fatalf("%v, but no flow carries %d", err, demand)
			}
			return
		}
		if err != nil || math.Abs(result.Cost-want) > 1e-9 || math.Abs(result.Bound-want) > 1e-9 {
			t.Fatalf("cost %v, bound %v (%v), but %v is the least", result.Cost, result.Bound, err, want)
		}
		checkFlow(t, g, nodes, links, demand)
		if again, err := g.Solve(0, nodes-1, demand); err != nil || again != result {
			t.Fatalf("solved again: %+v (%v), first %+v", again, err, result)
		}
	})
}

// checkFlow checks M1.
func checkFlow(t *rapid.T, g *mincost.Graph, nodes int, links []link, demand int64) {
	balance := make([]int64, nodes)
	for i, l := range links {
		flow := g.Flow(i)
		if flow < 0 || flow > l.capacity {
			t.Fatalf("arc %d carries %d of %d", i, flow, l.capacity)
		}
		balance[l.from] -= flow
		balance[l.to] += flow
	}
	balance[0] += demand
	balance[nodes-1] -= demand
	for n, b := range balance {
		if b != 0 {
			t.Fatalf("node %d gains %d", n, b)
		}
	}
}

// unit is an arc of capacity one, or its reverse once it is used.
type unit struct {
	from, to int
	cost     float64
}

func cancelCycles(nodes int, links []link, demand int64) (cost float64, ok bool) {
	var residual []unit
	for _, l := range links {
		for range l.capacity {
			residual = append(residual, unit{l.from, l.to, l.cost})
		}
	}
	reverse := func(units []int) {
		for _, i := range units {
			u := &residual[i]
			cost += u.cost
			u.from, u.to, u.cost = u.to, u.from, -u.cost
		}
	}
	for range demand {
		path := anyPath(nodes, residual)
		if path == nil {
			return 0, false
		}
		reverse(path)
	}
	for cycle := negativeCycle(nodes, residual); cycle != nil; cycle = negativeCycle(nodes, residual) {
		reverse(cycle)
	}
	return cost, true
}

// negativeCycle is Bellman and Ford's algorithm with one pass for each node. A node that still
// changes in the last pass is reachable from a negative cycle.
func negativeCycle(nodes int, residual []unit) (cycle []int) {
	distance, via, changed := make([]float64, nodes), make([]int, nodes), -1
	for range nodes {
		changed = -1
		for i, u := range residual {
			if d := distance[u.from] + u.cost; d < distance[u.to]-1e-9 {
				distance[u.to], via[u.to], changed = d, i, u.to
			}
		}
	}
	if changed < 0 {
		return nil
	}
	at := changed
	for range nodes {
		at = residual[via[at]].from
	}
	for end := at; len(cycle) == 0 || at != end; at = residual[via[at]].from {
		cycle = append(cycle, via[at])
	}
	return cycle
}

// anyPath returns a path of any cost from node 0 to the last node; nil if there is none.
func anyPath(nodes int, residual []unit) (path []int) {
	via, reached := make([]int, nodes), make([]bool, nodes)
	reached[0] = true
	for range nodes {
		for i, u := range residual {
			if reached[u.from] && !reached[u.to] {
				reached[u.to], via[u.to] = true, i
			}
		}
	}
	if !reached[nodes-1] {
		return nil
	}
	for n := nodes - 1; n != 0; n = residual[via[n]].from {
		path = append(path, via[n])
	}
	return path
}

// TestBoundHolds checks M2 on random transportation problems with real costs: the primal and
// the dual are equal.
func TestBoundHolds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		g, demand := transport(random, 12, 40)
		result, err := g.Solve(0, 1, demand)
		if err != nil {
			t.Fatal(err)
		}
		if result.Bound > result.Cost*(1+1e-12) || result.Bound < result.Cost*(1-1e-9) {
			t.Fatalf("cost %v, bound %v", result.Cost, result.Bound)
		}
	}
}

// transport draws a problem like FlowFlex's, with arcs from supplies to buckets at
// non-decreasing costs, and from a bucket to the previous one at cost 0.
func transport(random *rand.Rand, supplies, buckets int) (g *mincost.Graph, demand int64) {
	g = mincost.New(2 + supplies + buckets)
	for j := range supplies {
		supply := 1 + random.Int64N(1<<40)
		demand += supply
		g.Arc(0, 2+j, supply, 0)
		cost := 0.0
		for b := range buckets {
			cost += random.Float64() / float64(supply)
			g.Arc(2+j, 2+supplies+b, supply, cost)
		}
	}
	for b := range buckets {
		g.Arc(2+supplies+b, 1, demand/int64(buckets)+1, 0)
		if b > 0 {
			g.Arc(2+supplies+b, 2+supplies+b-1, demand, 0)
		}
	}
	return g, demand
}

func TestSolveRefuses(t *testing.T) {
	g := mincost.New(3)
	g.Arc(0, 1, 1, 1)
	g.Arc(1, 2, 1, -3)
	g.Arc(2, 1, 1, 2)
	if _, err := g.Solve(0, 2, 1); !errors.Is(err, mincost.ErrNegativeCycle) {
		t.Errorf("a negative cycle: %v", err)
	}
	for _, c := range []struct {
		source, sink int
		demand       int64
	}{{0, 0, 1}, {0, 3, 1}, {-1, 2, 1}, {0, 2, -1}} {
		if _, err := g.Solve(c.source, c.sink, c.demand); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

func TestArcRefuses(t *testing.T) {
	for _, l := range []link{{0, 2, 1, 0}, {-1, 1, 1, 0}, {0, 1, -1, 0}, {0, 1, 1, math.NaN()}, {0, 1, 1, math.Inf(1)}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v is accepted", l)
				}
			}()
			build(2, []link{l})
		}()
	}
}

func BenchmarkSolve(b *testing.B) {
	for _, size := range []int{25, 50, 100} {
		b.Run(fmt.Sprintf("supplies=%d", size), func(b *testing.B) {
			g, demand := transport(rand.New(rand.NewPCG(1, 2)), size, 2*size)
			rounds := 0
			for b.Loop() {
				result, err := g.Solve(0, 1, demand)
				if err != nil {
					b.Fatal(err)
				}
				rounds = result.Rounds
			}
			b.ReportMetric(float64(rounds), "rounds")
		})
	}
}
