package pages

import (
	"fmt"
	"time"
)

// mark is a labelled place on an axis.
type mark struct {
	At     float64 // of the axis, from 0 to 1
	Label  string
	Anchor string // of the label, as in SVG: labels at the ends stay within the drawing
}

// axis is a span of time that begins and ends with a mark, and has marks at round times between them.
type axis struct {
	Begin, End time.Time
	Marks      []mark
}

// steps are the distances of marks: the first that needs few enough marks is taken.
var steps = []time.Duration{
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
}

// maxIntervals is the largest number of intervals between marks, so that labels fit on a narrow screen.
const maxIntervals = 5

// axisOf makes an axis of UTC times around a span.
func axisOf(begin, end time.Time) axis { return axisWithin(begin, end, maxIntervals) }

// narrowIntervals is maxIntervals of an axis in a column of a table. Labels at the ends stay within the column, which
// brings them near the next ones.
const narrowIntervals = 3

// axisWithin makes an axis with at most this many intervals.
func axisWithin(begin, end time.Time, most int) axis {
	begin, end = begin.UTC(), end.UTC()
	step := steps[len(steps)-1]
	for _, s := range steps {
		if intervals(begin, end, s) <= most {
			step = s
			break
		}
	}
	for intervals(begin, end, step) > most {
		step *= 2
	}
	a := axis{Begin: begin.Truncate(step)}
	n := max(1, intervals(begin, end, step))
	a.End = a.Begin.Add(time.Duration(n) * step)
	for i := range n + 1 {
		a.Marks = append(a.Marks, mark{float64(i) / float64(n), clockLabel(a.Begin.Add(time.Duration(i)*step), step), anchorOf(i, n)})
	}
	return a
}

// intervals is how many steps a span touches.
func intervals(begin, end time.Time, step time.Duration) int {
	return int((end.Sub(begin.Truncate(step)) + step - 1) / step)
}

func clockLabel(t time.Time, step time.Duration) string {
	switch {
	case step < time.Second:
		return t.Format("15:04:05.000")
	case step < time.Minute:
		return t.Format("15:04:05")
	case step < 24*time.Hour:
		return t.Format("15:04")
	}
	return t.Format("Jan 2")
}

func anchorOf(i, last int) string {
	switch i {
	case 0:
		return "start"
	case last:
		return "end"
	}
	return "middle"
}

// Intervals is the number of intervals between the marks.
func (a *axis) Intervals() int { return len(a.Marks) - 1 }

// at is the place of a time on the axis, from 0 to 1.
func (a *axis) at(t time.Time) float64 {
	return min(1, max(0, float64(t.Sub(a.Begin))/float64(a.End.Sub(a.Begin))))
}

// elapsedAxis makes marks of an axis of durations from 0 to at least most milliseconds, and returns its length.
func elapsedAxis(most int64) (length int64, marks []mark) {
	a := axisOf(time.Time{}, time.Time{}.Add(millis(max(1, most))))
	length = a.End.Sub(a.Begin).Milliseconds()
	for _, m := range a.Marks {
		m.Label = round(time.Duration(m.At * float64(length) * float64(time.Millisecond)))
		marks = append(marks, m)
	}
	return length, marks
}

// round formats a duration without zeros: 90s is "1m30s", and 2h is "2h".
func round(d time.Duration) string {
	text := ""
	for _, unit := range []struct {
		d    time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}, {time.Millisecond, "ms"}} {
		if n := d / unit.d; n > 0 {
			text += fmt.Sprintf("%d%s", n, unit.name)
			d %= unit.d
		}
	}
	if text == "" {
		return "0"
	}
	return text
}
