package pages

import (
	"math"
	"strings"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/jobtracker/web"
)

// histogram counts values in bins.
type histogram struct {
	Title       string
	Of          string // what is counted, such as "maps"
	Class       string
	Count       int
	Median      int64
	Least, Most int64
	Tallest     int // the largest count of a bin
	Bins        []bin
	Marks       []mark
	MedianAt    float64            // place of the median
	Show        func(int64) string // formats a value
}

// upright is the place of a bar, from 0 to 1.
type upright struct{ X, Width, High float64 }

// Y and Tall are the upper end and the height of a bar, in pixels: the line is at 112.
func (u upright) Y() int    { return 112 - u.Tall() }
func (u upright) Tall() int { return max(1, int(96*u.High)) }

// bin is a bar of a histogram.
type bin struct {
	From, To int64
	Count    int
	upright
}

// Bar is the width of a bar, with a gap to the next one.
func (b bin) Bar() float64 { return max(0.001, b.Width-0.002) }

// Counted is the number of values, and what they are.
func (h *histogram) Counted() string {
	if h.Count == 1 {
		return "1 " + strings.TrimSuffix(h.Of, "s")
	}
	return grouped(int64(h.Count)) + " " + h.Of
}

// Drawn reports whether there are enough values for a drawing.
func (h *histogram) Drawn() bool { return h.Count >= 3 }

// marks is the number of labels of a histogram.
const marks = 5

// timesHistogram draws the times of a phase's tasks.
func timesHistogram(p *web.PhaseBreakdown) histogram {
	h := histogram{Title: "Times of " + p.Phase + "s", Of: p.Phase + "s", Class: p.Phase, Count: p.Tasks, Median: p.MedianMillis, Least: p.LeastMillis, Most: p.MostMillis, Show: span}
	for _, b := range p.Buckets {
		h.Bins = append(h.Bins, bin{From: b.FromMillis, To: b.ToMillis, Count: b.Tasks})
	}
	linear := func(x float64) float64 { return x }
	h.place(linear, linear)
	return h
}

// sizesHistogram draws the sizes of partitions, on a logarithmic axis: their buckets are parts of powers of two.
// nil: fewer than two sizes are known.
func sizesHistogram(p *web.PartitionSizes) *histogram {
	if p == nil || p.Known < 2 || len(p.Buckets) == 0 {
		return nil
	}
	h := &histogram{Title: "Sizes of partitions", Of: "partitions", Class: "reduce", Count: p.Known, Median: p.MedianBytes, Show: client.Size}
	for _, b := range p.Buckets {
		h.Bins = append(h.Bins, bin{From: b.From, To: b.To, Count: b.Partitions})
	}
	h.Least, h.Most = h.Bins[0].From, h.Bins[len(h.Bins)-1].To
	h.place(func(x float64) float64 { return math.Log2(max(x, 1)) }, math.Exp2)
	return h
}

// place sets the places of bins and marks on an axis with a scale; back is its inverse.
func (h *histogram) place(scale, back func(float64) float64) {
	from := scale(float64(h.Bins[0].From))
	width := max(scale(float64(h.Bins[len(h.Bins)-1].To))-from, 1e-9)
	at := func(value int64) float64 { return (scale(float64(value)) - from) / width }
	for _, b := range h.Bins {
		h.Tallest = max(h.Tallest, b.Count)
	}
	for i := range h.Bins {
		b := &h.Bins[i]
		b.X, b.Width, b.High = at(b.From), at(b.To)-at(b.From), part(b.Count, h.Tallest)
	}
	h.MedianAt = min(1, max(0, at(h.Median)))
	for i := range marks {
		place := float64(i) / (marks - 1)
		h.Marks = append(h.Marks, mark{place, h.Show(int64(back(from + place*width))), anchorOf(i, marks-1)})
	}
}

// phaseOf returns the phase in an attempt's id: attempt_…_m_000001_0.
func phaseOf(id string) string {
	switch {
	case strings.Contains(id, "_m_"):
		return "map"
	case strings.Contains(id, "_r_"):
		return "reduce"
	}
	return ""
}
