// Command components finds the connected components of a graph. A line of -input has the numbers of two
// nodes with an edge, with a tab between. A line of -output is a node and the least node of its component.
//
// It alternates two jobs over the edges, which Kiveris and others call large-star and small-star
// ("Connected Components in MapReduce and Beyond", 2014). Both connect neighbors of a node with the least
// of them. In the end each component is a star around its least node, after about log n rounds.
package main

import (
	"fmt"
	"iter"
	"os"
	"strconv"

	"github.com/quernmr/quern/mapreduce"
)

func main() { mapreduce.Drive(drive, load, star, write) }

// edges are pairs of a node and a lower one.
type edges = mapreduce.Dataset[uint64, uint64]

type edge = mapreduce.Pair[uint64, uint64]

type params struct {
	Edges  edges
	Large  bool   // of star
	Output string // of write
}

func drive(d *mapreduce.Driver) error {
	output, err := d.Output()
	if err != nil {
		return err
	}
	now, err := load.Run(d, struct{}{})
	if err != nil {
		return err
	}
	for round, changed := 1, int64(1); changed > 0; round++ {
		changed = 0
		for _, large := range []bool{true, false} {
			next, err := star.Run(d, params{Edges: now, Large: large})
			if err != nil {
				return err
			}
			changed += next.Counter("components", "changed")
			if err := now.Drop(d); err != nil {
				return err
			}
			now = next
		}
		fmt.Fprintf(os.Stderr, "round %d changed %d edges\n", round, changed)
	}
	_, err = write.Run(d, params{Edges: now, Output: output})
	return err
}

var load = mapreduce.Define("load", func(*mapreduce.Job, struct{}) (*mapreduce.Result[uint64, uint64], error) {
	return mapreduce.MapOnly(mapreduce.Map(mapreduce.KeyValues(), func(_ *mapreduce.Task, line mapreduce.Pair[string, string], emit func(a, b uint64)) error {
		a, err := strconv.ParseUint(line.A, 10, 64)
		if err != nil {
			return err
		}
		b, err := strconv.ParseUint(line.B, 10, 64)
		emit(max(a, b), min(a, b))
		return err
	})), nil
})

// star connects neighbors of each node with the least of them: large-star the higher ones, small-star the
// lower ones and the node itself.
var star = mapreduce.Define("star", func(_ *mapreduce.Job, p params) (*mapreduce.Result[uint64, uint64], error) {
	neighbors := mapreduce.Map(p.Edges.Input(), func(_ *mapreduce.Task, e edge, emit func(edge, struct{})) error {
		emit(e, struct{}{})
		if p.Large && e.A != e.B {
			emit(edge{A: e.B, B: e.A}, struct{}{})
		}
		return nil
	})
	return mapreduce.ReduceSorted(neighbors, func(t *mapreduce.Task, node uint64, sorted iter.Seq2[uint64, struct{}], emit func(a, b uint64)) error {
		changed := t.Counter("components", "changed")
		least, last, first := node, node, true
		for n := range sorted {
			if !first && n == last {
				continue // the edge came twice
			}
			if first {
				least = min(node, n)
			}
			switch {
			case p.Large && n > node:
				emit(n, least)
				if least != node {
					changed.Add(1)
				}
			case p.Large && n == node, !p.Large && first:
				emit(node, least)
			case !p.Large && n != node:
				emit(n, least)
				changed.Add(1)
			}
			last, first = n, false
		}
		return nil
	}), nil
})

// write writes each node with the center of its star.
var write = mapreduce.Define("write", func(job *mapreduce.Job, p params) (*mapreduce.Result[uint64, uint64], error) {
	job.Output = p.Output
	return mapreduce.Fold(mapreduce.Map(p.Edges.Input(), func(_ *mapreduce.Task, e edge, emit func(a, b uint64)) error {
		emit(e.A, e.B)
		emit(e.B, e.B)
		return nil
	}), mapreduce.Min), nil
})
