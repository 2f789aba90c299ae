// Command kmeans groups points of the plane around centers, until the centers rest. A line of -input has
// the coordinates of a point. A line of -output has the number of a group, the
// coordinates of its center, and how many points it has.
package main

import (
	"flag"
	"fmt"
	"math"

	"github.com/quernmr/quern/mapreduce"
)

var k = flag.Int("k", 3, "number of `groups`")

func main() { mapreduce.Drive(drive, load, assign) }

// point is a point, or the middle of N points.
type point struct{ X, Y, N float64 }

func (p point) distance(q point) float64 { return math.Hypot(p.X-q.X, p.Y-q.Y) }

type groups struct {
	Points  mapreduce.Dataset[struct{}, point]
	Centers []point
	Output  string
}

func drive(d *mapreduce.Driver) error {
	output, err := d.Output()
	if err != nil {
		return err
	}
	points, err := load.Run(d, struct{}{})
	if err != nil {
		return err
	}
	var centers []point // at first, the first points
	for _, p := range points.All(d) {
		if centers = append(centers, p); len(centers) == *k {
			break
		}
	}
	for moved := math.Inf(1); moved > 1e-9; {
		next, err := assign.Run(d, groups{points, centers, ""})
		if err != nil {
			return err
		}
		moved = 0
		for i, center := range next.All(d) {
			moved = max(moved, center.distance(centers[i]))
			centers[i] = center
		}
	}
	_, err = assign.Run(d, groups{points, centers, output})
	return err
}

var load = mapreduce.Define("load", func(*mapreduce.Job, struct{}) (*mapreduce.Result[struct{}, point], error) {
	return mapreduce.MapOnly(mapreduce.Map(mapreduce.Lines(), func(_ *mapreduce.Task, line string, emit func(struct{}, point)) error {
		p := point{N: 1}
		_, err := fmt.Sscan(line, &p.X, &p.Y)
		emit(struct{}{}, p)
		return err
	})), nil
})

// assign finds the centers of the points that are nearest to each of the present centers. With an output it
// writes them as text.
var assign = mapreduce.Define("assign", func(job *mapreduce.Job, p groups) (*mapreduce.Result[int, point], error) {
	nearest := mapreduce.Map(p.Points.Input(), func(_ *mapreduce.Task, rec mapreduce.Pair[struct{}, point], emit func(int, point)) error {
		best := 0
		for i, center := range p.Centers {
			if rec.B.distance(center) < rec.B.distance(p.Centers[best]) {
				best = i
			}
		}
		emit(best, rec.B)
		return nil
	})
	job.Output = p.Output
	return mapreduce.Fold(nearest, func(a, b point) point {
		n := a.N + b.N
		return point{(a.X*a.N + b.X*b.N) / n, (a.Y*a.N + b.Y*b.N) / n, n}
	}), nil
})
