package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/quernmr/quern/mapreduce/mrtest"
)

var edgeCount = flag.Uint64("edges", 20_000, "edges of the graph of TestComponents")

// TestComponents compares the components of a graph with many small ones, a long path and loops with those
// of union-find.
func TestComponents(t *testing.T) {
	n := *edgeCount
	random := rand.New(rand.NewPCG(3, 4))
	graph := &unionFind{parent: make(map[uint64]uint64)}
	var input strings.Builder
	for i := range n {
		a, b := random.Uint64N(2*n), random.Uint64N(2*n)
		switch {
		case i%100 == 0:
			b = a // a loop
		case i < n/10:
			a, b = i, i+1 // a path
		}
		fmt.Fprintf(&input, "%d\t%d\n", a, b)
		graph.join(a, b)
	}
	out := mrtest.Drive(t, drive, input.String(), load, star, write)
	got := make(map[uint64]uint64)
	for line := range strings.Lines(out.Text()) {
		var node, least uint64
		if _, err := fmt.Sscanf(line, "%d\t%d\n", &node, &least); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		got[node] = least
	}
	if len(got) != len(graph.parent) {
		t.Fatalf("%d nodes, want %d", len(got), len(graph.parent))
	}
	for node := range graph.parent {
		if want := graph.find(node); got[node] != want {
			t.Fatalf("node %d is in component %d, want %d", node, got[node], want)
		}
	}
}

// unionFind has components with their least node as root.
type unionFind struct{ parent map[uint64]uint64 }

func (u *unionFind) find(node uint64) uint64 {
	parent, ok := u.parent[node]
	if !ok {
		parent = node
	}
	if parent != node {
		parent = u.find(parent)
	}
	u.parent[node] = parent
	return parent
}

func (u *unionFind) join(a, b uint64) {
	a, b = u.find(a), u.find(b)
	u.parent[max(a, b)] = min(a, b)
}
