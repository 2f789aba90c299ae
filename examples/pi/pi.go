// Command pi estimates π: it counts the points of a Halton sequence in a circle within the unit square.
// Each map takes the next -samples points. The estimate is that of Hadoop's example pi.
package main

import (
	"flag"
	"fmt"
	"iter"
	"math"
	"math/big"

	"github.com/quernmr/quern/mapreduce"
)

func main() {
	maps := flag.Int("maps", 10, "`number` of maps")
	samples := flag.Int64("samples", 100_000, "`number` of points for each map")
	mapreduce.Main(func() (*mapreduce.Job, error) { return pi(*maps, *samples) })
}

func pi(maps int, samples int64) (*mapreduce.Job, error) {
	if samples < 1 || maps > 0 && samples > math.MaxInt64/int64(maps) {
		return nil, fmt.Errorf("-samples %d: want 1 or more for each of %d maps, and fewer than 2^63 in all", samples, maps)
	}
	points := mapreduce.Generate(maps, func(n int) iter.Seq[point] { return halton(int64(n)*samples, samples) })
	inside := mapreduce.Map(points, func(_ *mapreduce.Task, p point, emit func(bool, int64)) error {
		x, y := p[0]-0.5, p[1]-0.5
		emit(float64(x*x)+float64(y*y) <= 0.25, 1)
		return nil
	}).Combine(mapreduce.Sum)
	job := mapreduce.ReduceAll(inside, func(_ *mapreduce.Task, groups iter.Seq2[bool, iter.Seq[int64]], emit func(string, struct{})) error {
		var count [2]int64 // of the points, and of those inside
		for inside, ns := range groups {
			for n := range ns {
				if count[0] += n; inside {
					count[1] += n
				}
			}
		}
		estimate := new(big.Rat).SetFrac(new(big.Int).Mul(big.NewInt(4), big.NewInt(count[1])), big.NewInt(count[0]))
		emit("Estimated value of Pi is "+estimate.FloatString(20), struct{}{})
		return nil
	}).Job("pi")
	job.FixedReduces = 1
	return job, nil
}

// point has the coordinates with bases 2 and 3.
type point [2]float64

// halton yields the points after number start. A coordinate has the digits of the point's number, mirrored
// at the point. Like Hadoop, it adds to the coordinate digit by digit, because rounding depends on the order.
// Conversions to float64 keep the compiler from fusing operations, which would round differently.
func halton(start, n int64) iter.Seq[point] {
	var p point
	var digits [2][63]int64
	var weights [2][63]float64
	bases, lengths := [2]int64{2, 3}, [2]int{63, 40}
	for i, base := range bases {
		rest, weight := start, 1.0
		for j := range lengths[i] {
			weight /= float64(base)
			digits[i][j], weights[i][j], rest = rest%base, weight, rest/base
			p[i] += float64(float64(digits[i][j]) * weight)
		}
	}
	return func(yield func(point) bool) {
		for range n {
			for i, base := range bases {
				above := 1.0
				for j := range lengths[i] {
					digits[i][j]++
					p[i] += weights[i][j]
					if digits[i][j] < base {
						break
					}
					digits[i][j] = 0
					p[i] -= above
					above = weights[i][j]
				}
			}
			if !yield(p) {
				return
			}
		}
	}
}
