// Package curve keeps growing totals over the whole life of a job, in a bounded form: for a job of a minute each
// second, for a job of a day each quarter of an hour.
//
// A [Curve] has at most [MaxPoints] points. When it is full, it drops every second one, and takes points half as
// often from then on. So it always has points over the whole time, and the last one is what was added last.
//
// A Curve is not safe for concurrent use. The result of Points may be read by any goroutine.
package curve

import "github.com/quernmr/quern/wire"

// MaxPoints is the maximum number of points.
const MaxPoints = 128

// first is the least time between two points at first, in milliseconds.
const first = 1000

// Curve is the totals of a job over time. Its zero value is empty.
type Curve struct {
	points []wire.CurvePoint
	every  int64           // milliseconds
	last   wire.CurvePoint // the latest totals, which may be no point yet
}

// Due reports whether a new point would be kept: whether totals need to be added at a time.
func (c *Curve) Due(at int64) bool {
	return len(c.points) == 0 || at >= c.points[len(c.points)-1].At+c.every
}

// Add adds totals at a time. Times never decrease.
func (c *Curve) Add(p wire.CurvePoint) {
	c.last = p
	if !c.Due(p.At) {
		return
	}
	if c.every = max(c.every, first); len(c.points) == MaxPoints-1 { // one place is for the last totals
		kept := c.points[:0]
		for i := 0; i < len(c.points); i += 2 {
			kept = append(kept, c.points[i])
		}
		c.points = kept
		c.every *= 2
		if !c.Due(p.At) {
			return
		}
	}
	c.points = append(c.points, p)
}

// Points returns a copy of the points, oldest first. The last one has the latest totals.
func (c *Curve) Points() []wire.CurvePoint {
	if len(c.points) == 0 {
		return nil
	}
	list := append(make([]wire.CurvePoint, 0, len(c.points)+1), c.points...)
	if c.last != list[len(list)-1] {
		list = append(list, c.last)
	}
	return list
}
