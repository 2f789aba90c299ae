package pages

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/jobtracker/web"
)

// histogram counts values in bins of equal width.
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

// bin is a bar of a histogram. Places are from 0 to 1.
type bin struct {
	From, To       int64
	Count          int
	X, Width, High float64
}

// Bar is the width of a bar, with a gap to the next one.
func (b bin) Bar() float64 { return max(0.001, b.Width-0.002) }

// Y and Tall are the upper end and the height of a bar, in pixels: the line is at 112.
func (b bin) Y() int    { return 112 - b.Tall() }
func (b bin) Tall() int { return max(1, int(96*b.High)) }

// stragglers take at least this times the median of their phase (as in Dean and Ghemawat 2004,
// section 3.6, where few tasks delay the end).
const stragglerFactor = 2

// Counted is the number of values, and what they are.
func (h *histogram) Counted() string {
	if h.Count == 1 {
		return "1 " + strings.TrimSuffix(h.Of, "s")
	}
	return grouped(int64(h.Count)) + " " + h.Of
}

// Drawn reports whether there are enough values for a drawing.
func (h *histogram) Drawn() bool { return h.Count >= 3 }

// bins is the number of bars for times, and marks that of labels.
const bins, marks = 24, 5

// taskTimes makes the histograms of both phases, and returns the stragglers, slowest first: running
// and ended attempts. Complexity: n log n for n attempts.
func taskTimes(attempts []web.Attempt) (all []histogram, slow []straggler) {
	for _, phase := range []string{"map", "reduce"} {
		var times []int64
		for i := range attempts {
			if a := &attempts[i]; phaseOf(a.ID) == phase && a.State == "succeeded" {
				times = append(times, a.TookMillis)
			}
		}
		if len(times) == 0 {
			continue
		}
		h := histogram{Title: "Times of " + phase + "s", Of: phase + "s", Class: phase, Show: span}
		h.fill(times)
		all = append(all, h)
		for i := range attempts {
			a := attempts[i]
			if factor := float64(a.TookMillis) / float64(max(h.Median, 1)); phaseOf(a.ID) == phase && (running(&a) || a.State == "succeeded") &&
				a.TookMillis >= stragglerFactor*max(h.Median, 1000) {
				slow = append(slow, straggler{a, factor})
			}
		}
	}
	slices.SortStableFunc(slow, func(a, b straggler) int { return cmp.Compare(b.TookMillis, a.TookMillis) })
	return all, slow[:min(len(slow), 10)]
}

// straggler is a slow attempt; Factor is its time by the median of its phase.
type straggler struct {
	web.Attempt
	Factor float64
}

// fill sets the bins. It sorts the values.
func (h *histogram) fill(values []int64) {
	slices.Sort(values)
	h.Count, h.Median, h.Least, h.Most = len(values), values[len(values)/2], values[0], values[len(values)-1]
	width := max(1, int64(math.Ceil(float64(h.Most-h.Least+1)/bins)))
	h.Bins = make([]bin, bins)
	for _, v := range values {
		h.Bins[(v-h.Least)/width].Count++
	}
	for i := range h.Bins {
		b := &h.Bins[i]
		b.From, b.To, b.X, b.Width = h.Least+int64(i)*width, h.Least+int64(i+1)*width, float64(i)/bins, 1.0/bins
		h.Tallest = max(h.Tallest, b.Count)
	}
	for i := range h.Bins {
		h.Bins[i].High = float64(h.Bins[i].Count) / float64(h.Tallest)
	}
	h.MedianAt = (float64(h.Median-h.Least) + 0.5) / float64(bins*width)
	for i := range marks {
		h.Marks = append(h.Marks, mark{float64(i) / (marks - 1), h.Show(h.Least + bins*width*int64(i)/(marks-1)), anchorOf(i, marks-1)})
	}
}

// sizesHistogram draws the sizes of partitions, on a logarithmic axis: their buckets are parts of powers of two.
// nil: fewer than two sizes are known.
func sizesHistogram(p *web.PartitionSizes) *histogram {
	if p == nil || p.Known < 2 || len(p.Buckets) == 0 {
		return nil
	}
	log := func(n int64) float64 { return math.Log2(float64(max(n, 1))) }
	first, last := p.Buckets[0], p.Buckets[len(p.Buckets)-1]
	from, width := log(first.From), max(log(last.To)-log(first.From), 1e-9)
	h := &histogram{Title: "Sizes of partitions", Of: "partitions", Class: "reduce", Count: p.Known, Median: p.MedianBytes, Least: first.From, Most: last.To, Show: client.Size}
	for _, b := range p.Buckets {
		h.Tallest = max(h.Tallest, b.Partitions)
	}
	for _, b := range p.Buckets {
		h.Bins = append(h.Bins, bin{
			From: b.From, To: b.To, Count: b.Partitions, High: float64(b.Partitions) / float64(h.Tallest),
			X: (log(b.From) - from) / width, Width: (log(b.To) - log(b.From)) / width,
		})
	}
	h.MedianAt = min(1, max(0, (log(p.MedianBytes)-from)/width))
	for i := range marks {
		at := float64(i) / (marks - 1)
		h.Marks = append(h.Marks, mark{at, client.Size(int64(math.Exp2(from + at*width))), anchorOf(i, marks-1)})
	}
	return h
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
