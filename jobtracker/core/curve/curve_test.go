package curve

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/wire"
)

// TestCurve: the points are among the totals that were added, in their order, from the first to the last one, and are few. If
// totals come often, there is always one near.
func TestCurve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c Curve
		added := make(map[wire.CurvePoint]bool)
		var first, last wire.CurvePoint
		gap := rapid.Int64Range(1, 3000).Draw(t, "gap")
		at, total := int64(1_000_000), int64(0)
		for i := range rapid.IntRange(1, 3000).Draw(t, "points") {
			at, total = at+rapid.Int64Range(0, gap).Draw(t, "after"), total+int64(i)
			p := wire.CurvePoint{At: at, Read: total, Shuffled: total / 2}
			if added[p] = true; i == 0 {
				first = p
			}
			last = p
			c.Add(p)
		}
		points := c.Points()
		if len(points) == 0 || len(points) > MaxPoints || points[0] != first || points[len(points)-1] != last {
			t.Fatalf("%d points from %+v to %+v, want from %+v to %+v", len(points), points[0], points[len(points)-1], first, last)
		}
		life := last.At - first.At
		for i, p := range points {
			if !added[p] {
				t.Fatalf("point %+v was not added", p)
			}
			if i == 0 {
				continue
			}
			between := p.At - points[i-1].At
			if most := max(4*life/MaxPoints, 2000) + 2*gap; between > most || between < 0 {
				t.Fatalf("%d ms between two points of a life of %d ms with totals every %d ms", between, life, gap)
			}
		}
	})
}
