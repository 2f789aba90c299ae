package pages

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/jobtracker/web"
)

// curve has the bytes that a job had read or shuffled at each time, in a box of 1000 by curveHeight.
type curve struct {
	Name, Class string
	Bytes       int64 // at the end
	Points      string
	Values      []sample // some of them, for readers
}

// sample is a value at a time.
type sample struct {
	At    time.Time
	Bytes int64
}

// curves has the curves of a job on one axis of time, and one of bytes.
type curves struct {
	Axis   axis
	Top    string // bytes at the upper end
	Curves []curve
}

const (
	curveHeight = 120
	shownValues = 6
)

// bytesOverTime draws what a job has done over time; nil: there is nothing to draw.
func bytesOverTime(points []web.CurvePoint) *curves {
	top := int64(0)
	for _, p := range points {
		top = max(top, p.Read, p.Shuffled, p.Reduced)
	}
	if top == 0 || !points[len(points)-1].At.After(points[0].At) {
		return nil
	}
	c := &curves{Axis: axisOf(points[0].At, points[len(points)-1].At), Top: client.Size(top)}
	for _, of := range []struct {
		name, class string
		bytes       func(web.CurvePoint) int64
	}{
		{"read by maps", "map", func(p web.CurvePoint) int64 { return p.Read }},
		{"shuffled", "shuffle", func(p web.CurvePoint) int64 { return p.Shuffled }},
		{"read by reduces", "reduce", func(p web.CurvePoint) int64 { return p.Reduced }},
	} {
		one := curve{Name: of.name, Class: of.class, Bytes: of.bytes(points[len(points)-1])}
		if one.Bytes == 0 {
			continue
		}
		var line strings.Builder
		for _, p := range points {
			fmt.Fprintf(&line, "%d,%d ", int64(1000*c.Axis.at(p.At)), curveHeight-int64((curveHeight-4)*float64(of.bytes(p))/float64(top)))
		}
		one.Points = line.String()
		for k := range shownValues {
			p := points[k*(len(points)-1)/(shownValues-1)]
			one.Values = append(one.Values, sample{p.At, of.bytes(p)})
		}
		one.Values = slices.Compact(one.Values)
		c.Curves = append(c.Curves, one)
	}
	return c
}
