package pages

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/jobtracker/web"
)

// curve has the bytes that a phase had done at each time, in a box of 1000 by curveHeight.
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
	curvePoints = 200
	shownValues = 6
)

// bytesOverTime computes the curves of maps and reduces from the ends of attempts; nil: nothing has ended.
func bytesOverTime(attempts []web.Attempt) *curves {
	ends := make(map[string][]sample)
	var begin time.Time
	for i := range attempts {
		a := &attempts[i]
		phase := phaseOf(a.ID)
		if phase == "" || a.State != "succeeded" || a.Began.IsZero() || a.Bytes.Done == 0 {
			continue
		}
		if begin.IsZero() || a.Began.Before(begin) {
			begin = a.Began
		}
		ends[phase] = append(ends[phase], sample{a.Began.Add(millis(a.TookMillis)), a.Bytes.Done})
	}
	sums := make(map[string][]sample)
	for phase, of := range ends {
		slices.SortFunc(of, func(a, b sample) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Bytes, b.Bytes)) })
		sums[phase] = append(sums[phase], sample{begin, 0})
		total := int64(0)
		for _, s := range of {
			total += s.Bytes
			sums[phase] = append(sums[phase], sample{s.At, total})
		}
	}
	return curvesOf([]curve{{Name: "read by maps", Class: "map"}, {Name: "read by reduces", Class: "reduce"}}, [][]sample{sums["map"], sums["reduce"]})
}

// curvesOf draws sums over time; nil: there is nothing to draw.
func curvesOf(all []curve, sums [][]sample) *curves {
	var begin, end time.Time
	top := int64(0)
	for _, of := range sums {
		if len(of) == 0 {
			continue
		}
		if begin.IsZero() || of[0].At.Before(begin) {
			begin = of[0].At
		}
		end, top = later(end, of[len(of)-1].At), max(top, of[len(of)-1].Bytes)
	}
	if !end.After(begin) || top == 0 {
		return nil
	}
	c := &curves{Axis: axisOf(begin, end), Top: client.Size(top)}
	for i, one := range all {
		of := sums[i]
		if len(of) == 0 || of[len(of)-1].Bytes == 0 {
			continue
		}
		one.Bytes = of[len(of)-1].Bytes
		var points strings.Builder
		every := max(1, len(of)/curvePoints)
		for k, s := range of {
			if k%every == 0 || k == len(of)-1 {
				fmt.Fprintf(&points, "%d,%d ", int64(1000*c.Axis.at(s.At)), curveHeight-int64((curveHeight-4)*float64(s.Bytes)/float64(top)))
			}
		}
		one.Points = points.String()
		for k := range shownValues {
			one.Values = append(one.Values, of[k*(len(of)-1)/(shownValues-1)])
		}
		one.Values = slices.Compact(one.Values)
		c.Curves = append(c.Curves, one)
	}
	return c
}
