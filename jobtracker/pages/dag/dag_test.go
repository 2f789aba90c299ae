package dag

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawn draws a graph without cycles: nodes have predecessors of smaller numbers, and are renumbered at random.
func drawn(t *rapid.T) [][]int {
	n := rapid.IntRange(0, 12).Draw(t, "nodes")
	number := rapid.Permutation(slices.Collect(func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	})).Draw(t, "numbers")
	after := make([][]int, n)
	for i := range n {
		for k := range i {
			if rapid.IntRange(0, 3).Draw(t, "edge") == 0 {
				after[number[i]] = append(after[number[i]], number[k])
			}
		}
	}
	return after
}

// TestInvariants checks D1 to D3, and that bends lead from layer to layer.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		after := drawn(t)
		got := Lay(after)
		if len(got.Nodes) != len(after) {
			t.Fatalf("%d nodes of %d", len(got.Nodes), len(after))
		}
		edges := 0
		for v, all := range after {
			last := -1
			for _, from := range all {
				last = max(last, got.Nodes[from].Layer)
			}
			if edges += len(all); got.Nodes[v].Layer != last+1 {
				t.Fatalf("node %d is in layer %d, its predecessors end at %d", v, got.Nodes[v].Layer, last)
			}
		}
		if len(got.Edges) != edges {
			t.Fatalf("%d edges of %d", len(got.Edges), edges)
		}
		taken := make(map[string]bool)
		layers := make([]int, got.Layers)
		take := func(p Place) {
			if key := fmt.Sprint(p.Layer, p.Place); taken[key] {
				t.Fatalf("two vertices at %v", p)
			} else {
				taken[key] = true
			}
			layers[p.Layer]++
		}
		for _, p := range got.Nodes {
			take(p)
		}
		for _, e := range got.Edges {
			for i, b := range e.Bends {
				if take(b); b.Layer != got.Nodes[e.From].Layer+1+i {
					t.Fatalf("edge %+v from layer %d", e, got.Nodes[e.From].Layer)
				}
			}
			if got.Nodes[e.To].Layer != got.Nodes[e.From].Layer+1+len(e.Bends) {
				t.Fatalf("edge %+v ends in layer %d", e, got.Nodes[e.To].Layer)
			}
		}
		for l, n := range layers {
			for p := range n {
				if !taken[fmt.Sprint(l, p)] {
					t.Fatalf("layer %d has no place %d of %d", l, p, n)
				}
			}
		}
		if again := Lay(after); !reflect.DeepEqual(again, got) {
			t.Fatalf("another layout of the same graph: %+v and %+v", got, again)
		}
	})
}

// TestCrossings compares the count with one of all pairs.
func TestCrossings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := build(drawn(t))
		place := places(g.order)
		want := 0
		for _, layer := range g.order {
			type edge struct{ a, b int }
			var all []edge
			for _, v := range layer {
				for _, w := range g.next[v] {
					all = append(all, edge{place[v], place[w]})
				}
			}
			for i, x := range all {
				for _, y := range all[:i] {
					if (x.a-y.a)*(x.b-y.b) < 0 {
						want++
					}
				}
			}
		}
		if got := g.crossings(g.order); got != want {
			t.Fatalf("%d crossings, want %d", got, want)
		}
	})
}

// TestUncrosses: two edges that cross in the given order are drawn without a crossing, and a cycle is cut.
func TestUncrosses(t *testing.T) {
	got := Lay([][]int{{}, {}, {1}, {0}})
	if a, b := got.Nodes[0].Place < got.Nodes[1].Place, got.Nodes[3].Place < got.Nodes[2].Place; a != b {
		t.Errorf("the edges cross: %+v", got)
	}
	if got := Lay([][]int{{1}, {0}, {2}, {7, -1}}); len(got.Edges) != 1 || got.Layers != 2 {
		t.Errorf("a cycle: %+v", got)
	}
}
