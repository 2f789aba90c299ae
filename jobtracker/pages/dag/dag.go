// Package dag lays out a directed acyclic graph in layers, from left to right, for a drawing.
//
// # Algorithm
//
// A node is in the layer after the last of its predecessors (the longest path), as in Sugiyama, Tagawa and Toda,
// "Methods for visual understanding of hierarchical system structures" (1981). An edge over several layers has a bend
// in each layer between. Within layers, nodes and bends move towards the mean place of their neighbours, in passes
// to the right and to the left; the order with the fewest crossings is kept.
//
// # Invariants
//
//	D1  The layer of a node is greater than those of its predecessors, and some predecessor is in the layer before;
//	    a node without predecessors is in layer 0.
//	D2  No two nodes or bends of a layer have the same place; the places of a layer are 0, 1, 2 and so on.
//	D3  The result depends on the input alone. Of an edge that would close a cycle nothing is drawn.
//
// Functions are functions of values; any goroutine may call them. Complexity: passes times edges with their bends,
// times the logarithm of a layer's size.
package dag

import (
	"cmp"
	"slices"
)

// Layout is a graph with places.
type Layout struct {
	Layers int
	Height int // the most places in a layer
	Nodes  []Place
	Edges  []Edge
}

// Place is a layer and a place in it. Row is Place, moved so that the layers are centred: a multiple of one half.
type Place struct {
	Layer, Place int
	Row          float64
}

// Edge leads from a node to another, through the bends in the layers between.
type Edge struct {
	From, To int // nodes
	Bends    []Place
}

// passes is the number of passes over the layers. More hardly change the order.
const passes = 8

// Lay lays out nodes 0 to len(after)-1; after has the predecessors of each node. Unknown predecessors, and repeated
// ones, are left out.
func Lay(after [][]int) Layout {
	g := build(after)
	best := g.order
	fewest := g.crossings(best)
	order := clone(best)
	for pass := range passes {
		g.sweep(order, pass%2 == 0)
		if n := g.crossings(order); n < fewest {
			best, fewest = clone(order), n
		}
	}
	return g.layout(best)
}

// graph has nodes and bends as vertices: nodes first. All edges lead to the next layer.
type graph struct {
	nodes      int
	layer      []int
	before     [][]int // vertices of the layer before
	next       [][]int // and of the layer after
	order      [][]int // vertices by layer
	edges      []Edge
	edgeBends  [][]int // vertices of each edge's bends
	layerCount int
}

func build(after [][]int) *graph {
	g := &graph{nodes: len(after)}
	g.layer = layersOf(after)
	for _, l := range g.layer {
		g.layerCount = max(g.layerCount, l+1)
	}
	g.before, g.next = make([][]int, g.nodes), make([][]int, g.nodes)
	for to, all := range after {
		for _, from := range slices.Compact(slices.Sorted(slices.Values(all))) {
			if from < 0 || from >= g.nodes || g.layer[from] >= g.layer[to] {
				continue // unknown, or part of a cycle
			}
			var bends []int
			last := from
			for l := g.layer[from] + 1; l < g.layer[to]; l++ {
				v := len(g.layer)
				g.layer, g.before, g.next = append(g.layer, l), append(g.before, nil), append(g.next, nil)
				g.join(last, v)
				bends, last = append(bends, v), v
			}
			g.join(last, to)
			g.edges, g.edgeBends = append(g.edges, Edge{From: from, To: to}), append(g.edgeBends, bends)
		}
	}
	g.order = make([][]int, g.layerCount)
	for v, l := range g.layer {
		g.order[l] = append(g.order[l], v)
	}
	return g
}

func (g *graph) join(from, to int) {
	g.next[from], g.before[to] = append(g.next[from], to), append(g.before[to], from)
}

// layersOf computes the longest path to each node. Edges to a node that is being visited close a cycle.
func layersOf(after [][]int) []int {
	layer, state := make([]int, len(after)), make([]int, len(after)) // 0: new, 1: being visited, 2: done
	var visit func(v int)
	visit = func(v int) {
		state[v] = 1
		for _, from := range after[v] {
			if from < 0 || from >= len(after) {
				continue
			}
			if state[from] == 0 {
				visit(from)
			}
			if state[from] == 2 {
				layer[v] = max(layer[v], layer[from]+1)
			}
		}
		state[v] = 2
	}
	for v := range after {
		if state[v] == 0 {
			visit(v)
		}
	}
	return layer
}

// sweep orders each layer by the mean places of the neighbours in the layer that it comes from.
func (g *graph) sweep(order [][]int, right bool) {
	place := places(order)
	for i := range order {
		l, neighbours := i, g.before
		if !right {
			l, neighbours = len(order)-1-i, g.next
		}
		mean := func(v int) float64 {
			if len(neighbours[v]) == 0 {
				return float64(place[v])
			}
			sum := 0
			for _, n := range neighbours[v] {
				sum += place[n]
			}
			return float64(sum) / float64(len(neighbours[v]))
		}
		slices.SortStableFunc(order[l], func(a, b int) int { return cmp.Compare(mean(a), mean(b)) })
		for p, v := range order[l] {
			place[v] = p
		}
	}
}

func places(order [][]int) map[int]int {
	place := make(map[int]int)
	for _, layer := range order {
		for p, v := range layer {
			place[v] = p
		}
	}
	return place
}

// crossings counts the pairs of edges between two layers that cross.
func (g *graph) crossings(order [][]int) (n int) {
	place := places(order)
	for _, layer := range order {
		var ends []int // places of the ends, by the places of the beginnings
		for _, v := range layer {
			to := make([]int, 0, len(g.next[v]))
			for _, w := range g.next[v] {
				to = append(to, place[w])
			}
			slices.Sort(to)
			for _, p := range to {
				at, _ := slices.BinarySearch(ends, p+1) // ends is sorted: those after at cross
				n += len(ends) - at
				ends = slices.Insert(ends, at, p)
			}
		}
	}
	return n
}

func (g *graph) layout(order [][]int) Layout {
	out := Layout{Layers: g.layerCount, Edges: g.edges}
	for _, layer := range order {
		out.Height = max(out.Height, len(layer))
	}
	all := make([]Place, len(g.layer))
	for l, layer := range order {
		for p, v := range layer {
			all[v] = Place{l, p, float64(p) + float64(out.Height-len(layer))/2}
		}
	}
	for i, bends := range g.edgeBends {
		for _, v := range bends {
			out.Edges[i].Bends = append(out.Edges[i].Bends, all[v])
		}
	}
	out.Nodes = all[:g.nodes]
	return out
}

func clone(order [][]int) [][]int {
	c := make([][]int, len(order))
	for i := range order {
		c[i] = slices.Clone(order[i])
	}
	return c
}
