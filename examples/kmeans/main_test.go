package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/quernmr/quern/mapreduce/mrtest"
)

// TestKMeans compares the centers with those of a loop over the points.
func TestKMeans(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	var points []point
	var input strings.Builder
	for range 500 {
		x, y := random.NormFloat64()+10*float64(random.IntN(3)), random.NormFloat64()
		points = append(points, point{x, y, 1})
		fmt.Fprintf(&input, "%v\t%v\n", x, y)
	}
	out := mrtest.Drive(t, drive, input.String(), load, assign)
	want := cluster(points, points[:*k])
	lines := strings.Split(strings.TrimSpace(out.Text()), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d groups, want %d:\n%s", len(lines), len(want), out.Text())
	}
	for _, line := range lines {
		var i int
		var got point
		if _, err := fmt.Sscan(line, &i, &got.X, &got.Y, &got.N); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		if w := want[i]; got.N != w.N || math.Abs(got.X-w.X) > 1e-6 || math.Abs(got.Y-w.Y) > 1e-6 {
			t.Errorf("group %d is %v, want %v", i, got, w)
		}
	}
}

// cluster groups points around centers that begin at the given ones. N of a center is its number of points.
func cluster(points, first []point) []point {
	centers := append([]point{}, first...)
	for {
		sums := make([]point, len(centers))
		for _, p := range points {
			best := 0
			for i := range centers {
				if p.distance(centers[i]) < p.distance(centers[best]) {
					best = i
				}
			}
			sums[best] = point{sums[best].X + p.X, sums[best].Y + p.Y, sums[best].N + 1}
		}
		moved := 0.0
		for i, sum := range sums {
			center := point{sum.X / sum.N, sum.Y / sum.N, sum.N}
			moved = max(moved, center.distance(centers[i]))
			centers[i] = center
		}
		if moved == 0 {
			return centers
		}
	}
}
