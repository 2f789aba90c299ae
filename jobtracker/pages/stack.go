package pages

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// chartColumns is the number of columns of a stack, and chartHeight the height of its drawing. It is 1000 wide.
const (
	chartColumns = 200
	chartHeight  = 160
)

// columns has a number over time. A column has the average over its time.
type columns [chartColumns]float64

// add adds a number between two times.
func (c *columns) add(a *axis, from, to time.Time, n float64) {
	begin, end := a.at(from)*chartColumns, a.at(to)*chartColumns
	for i := int(begin); i < chartColumns && float64(i) < end; i++ {
		c[i] += n * (min(end, float64(i+1)) - max(begin, float64(i)))
	}
}

// sumUp adds other columns.
func (c *columns) sumUp(other *columns) {
	for i, n := range other {
		c[i] += n
	}
}

func (c *columns) sum() (sum float64) {
	for _, n := range c {
		sum += n
	}
	return sum
}

// layer is a part of a stack.
type layer struct {
	Name, Link, Class, Hatch string
	Now, Planned             int    // numbers at the moment, for the legend
	Past                     bool   // the legend only counts it
	Up, Down                 string // paths of SVG

	up, down columns
}

// stack draws numbers over time on top of each other. If it is mirrored, other numbers hang down from the line
// in the middle.
type stack struct {
	Title    string
	Axis     axis
	Now      float64 // place of now on the axis; 1: the chart ends there
	Limit    int     // a number that is marked, such as all slots; 0: none
	Top      float64 // number at the upper end
	Mirrored bool
	Layers   []layer
}

// PastJobs counts the layers that the legend leaves out.
func (s *stack) PastJobs() (n int) {
	for i := range s.Layers {
		if s.Layers[i].Past {
			n++
		}
	}
	return n
}

// Paths are the drawings of a layer that are not empty.
func (l *layer) Paths() (all []string) {
	for _, d := range []string{l.Up, l.Down} {
		if d != "" {
			all = append(all, d)
		}
	}
	return all
}

// draw sets the paths, the first layer next to the line.
func (s *stack) draw() {
	top := float64(s.Limit)
	var up, down columns
	for i := range s.Layers {
		for c := range up {
			up[c] += s.Layers[i].up[c]
			down[c] += s.Layers[i].down[c]
			top = max(top, up[c], down[c])
		}
	}
	s.Top = max(1, math.Ceil(top))
	up, down = columns{}, columns{}
	for i := range s.Layers {
		l := &s.Layers[i]
		l.Up = outline(&l.up, &up, func(n float64) int { return s.y(n) })
		l.Down = outline(&l.down, &down, func(n float64) int { return s.y(-n) })
	}
}

// y is the place of a number; numbers that hang down are negative.
func (s *stack) y(n float64) int {
	if !s.Mirrored {
		return chartHeight - int(n*(chartHeight-4)/s.Top+0.5)
	}
	return chartHeight/2 - int(math.Round(n*(chartHeight/2-4)/s.Top))
}

// Lines are the places of the marked number.
func (s *stack) Lines() []int {
	switch {
	case s.Limit == 0:
		return nil
	case s.Mirrored:
		return []int{s.y(float64(s.Limit)), s.y(-float64(s.Limit))}
	}
	return []int{s.y(float64(s.Limit))}
}

// Zero is the place of the line from which numbers go up and down.
func (s *stack) Zero() int { return s.y(0) }

// outline is the path around columns next to others, and adds them to the others: each run of equal columns is a box.
func outline(of, below *columns, y func(float64) int) string {
	var path strings.Builder
	x := func(c int) int { return c * 1000 / chartColumns }
	for c := 0; c < chartColumns; {
		from, low, high := c, y(below[c]), y(below[c]+of[c])
		for c++; c < chartColumns && y(below[c]) == low && y(below[c]+of[c]) == high; c++ {
		}
		if high != low {
			fmt.Fprintf(&path, "M%d %dH%dV%dH%dZ", x(from), low, x(c), high, x(from))
		}
	}
	for c := range below {
		below[c] += of[c]
	}
	return path.String()
}
