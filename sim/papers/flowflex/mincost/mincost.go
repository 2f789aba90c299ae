// Package mincost solves the minimum-cost flow problem. It sends a given amount from a source
// to a sink of a directed graph, within the capacities of the arcs, at the least total cost.
//
// sim/papers/flowflex uses it, because its relaxation of a schedule is such a problem
// (FlowFlex, section 4.2, Definition 3 and Figure 6).
//
// The method is successive shortest paths with potentials: each round finds a
// shortest path by Dijkstra's algorithm on reduced costs, which stay non-negative,
// and fills it. Amounts are integers, so every round fills an arc exactly and the
// method terminates. Costs are float64. Arcs may have negative costs, cycles may not.
//
// Invariants
//
//	M1  The flow of every arc is within [0, capacity] and is conserved at every
//	    node but source and sink, exactly.
//	M2  Result.Bound never exceeds the cost of any flow of the same amount, up to
//	    the rounding of one sum. It is the value of the dual at the final
//	    potentials, and does not depend on how the flow was found. It equals
//	    Result.Cost up to rounding if the flow is a cheapest one.
//	M3  Equal graphs, built by the same calls, have equal results: ties are broken
//	    by the number of the node, then of the arc.
//
// Complexity: O(R (E + N log N)) for N nodes, E arcs and R rounds. In the worst case R is the
// amount sent. On transportation problems like FlowFlex's it is about the number of nodes.
// Memory O(N + E).
package mincost

import (
	"errors"
	"fmt"
	"math"
)

// ErrInfeasible is returned if the arcs cannot carry the requested amount.
var ErrInfeasible = errors.New("the arcs cannot carry the demand")

// ErrNegativeCycle is returned if a cycle of arcs has a negative cost.
var ErrNegativeCycle = errors.New("a cycle of arcs has a negative cost")

// Graph is a network under construction. The zero Graph has no nodes.
type Graph struct {
	nodes int
	arcs  []arc // arc 2i is the i-th added, 2i+1 its reverse
}

// arc is one direction of an arc: its remaining capacity, and its cost per unit.
type arc struct {
	from, to int32
	left     int64
	cost     float64
}

// Result describes a cheapest flow.
type Result struct {
	Cost   float64 // sum over arcs of flow times cost
	Bound  float64 // no flow of this amount costs less; see M2
	Rounds int     // shortest paths filled
}

// New returns a graph of nodes 0, 1, …, nodes-1 without arcs.
func New(nodes int) *Graph { return &Graph{nodes: nodes} }

// Arc adds an arc and returns its number, counted from 0. Arcs may be parallel. It panics if an
// end is not a node, the capacity negative or the cost not finite.
func (g *Graph) Arc(from, to int, capacity int64, cost float64) int {
	if from < 0 || from >= g.nodes || to < 0 || to >= g.nodes {
		panic(fmt.Sprintf("mincost: arc from %d to %d in a graph of %d nodes", from, to, g.nodes))
	}
	if capacity < 0 || math.IsNaN(cost) || math.IsInf(cost, 0) {
		panic(fmt.Sprintf("mincost: arc from %d to %d has capacity %d, cost %v", from, to, capacity, cost))
	}
	g.arcs = append(g.arcs,
		arc{from: int32(from), to: int32(to), left: capacity, cost: cost},
		arc{from: int32(to), to: int32(from), cost: -cost})
	return len(g.arcs)/2 - 1
}

// Flow returns the amount that the last Solve sent over an arc.
func (g *Graph) Flow(arc int) int64 { return g.arcs[2*arc+1].left }

// Solve finds a cheapest flow of demand units from source to sink. It first removes the flow
// that an earlier Solve has sent.
func (g *Graph) Solve(source, sink int, demand int64) (Result, error) {
	switch {
	case source < 0 || source >= g.nodes || sink < 0 || sink >= g.nodes || source == sink:
		return Result{}, fmt.Errorf("from node %d to node %d of %d: no such pair", source, sink, g.nodes)
	case demand < 0:
		return Result{}, fmt.Errorf("demand %d is negative", demand)
	}
	for i := 0; i < len(g.arcs); i += 2 {
		g.arcs[i].left += g.arcs[i+1].left
		g.arcs[i+1].left = 0
	}
	s := newSearch(g)
	if err := s.initialPotentials(); err != nil {
		return Result{}, err
	}
	result := Result{}
	for sent := int64(0); sent < demand; result.Rounds++ {
		if !s.shortestPath(source, sink) {
			return Result{}, fmt.Errorf("%w: %d of %d", ErrInfeasible, sent, demand)
		}
		sent += s.fill(source, sink, demand-sent)
	}
	for i := 0; i < len(g.arcs); i += 2 {
		result.Cost += float64(g.arcs[i+1].left) * g.arcs[i].cost
	}
	result.Bound = s.dual(source, sink, demand)
	return result, nil
}

// dual returns the value of the dual problem at the potentials. It is the demand times the
// potential difference of sink and source, minus the largest saving by arcs with negative
// reduced costs. No arc of a cheapest flow without idle cycles carries more than the demand.
func (s *search) dual(source, sink int, demand int64) float64 {
	value := float64(demand) * (s.potential[sink] - s.potential[source])
	for i := 0; i < len(s.arcs); i += 2 {
		a := &s.arcs[i]
		if reduced := a.cost + s.potential[a.from] - s.potential[a.to]; reduced < 0 {
			value += reduced * float64(min(a.left+s.arcs[i+1].left, demand))
		}
	}
	return value
}
