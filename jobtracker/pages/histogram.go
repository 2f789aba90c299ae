package pages

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/quernmr/quern/jobtracker/web"
)

// histogram counts the times of a phase's ended tasks in bins of equal width.
type histogram struct {
	Phase       string
	Tasks       int
	Median      int64 // milliseconds
	Least, Most int64
	Bins        []bin
}

// bin is a bar of a histogram, in a box of 1000 by 100.
type bin struct {
	From, To         int64 // milliseconds
	Tasks            int
	X, Y, Wide, High int
}

// stragglers take at least this times the median of their phase (as in Dean and Ghemawat 2004,
// section 3.6, where few tasks delay the end).
const stragglerFactor = 2

const bins = 24

// taskTimes makes the histograms of both phases, and returns the stragglers, slowest first: running
// and ended attempts. Complexity: n log n for n attempts.
func taskTimes(attempts []web.Attempt) (all []histogram, slow []web.Attempt) {
	for _, phase := range []string{"map", "reduce"} {
		var times []int64
		h := histogram{Phase: phase}
		for _, a := range attempts {
			if phaseOf(a.ID) != phase || a.State != "succeeded" {
				continue
			}
			times = append(times, a.TookMillis)
		}
		if len(times) == 0 {
			continue
		}
		slices.Sort(times)
		h.fill(times)
		all = append(all, h)
		for _, a := range attempts {
			if phaseOf(a.ID) == phase && (running(&a) || a.State == "succeeded") && a.TookMillis >= stragglerFactor*max(h.Median, 1000) {
				slow = append(slow, a)
			}
		}
	}
	slices.SortStableFunc(slow, func(a, b web.Attempt) int { return cmp.Compare(b.TookMillis, a.TookMillis) })
	return all, slow[:min(len(slow), 10)]
}

// fill sets the bins from sorted times.
func (h *histogram) fill(times []int64) {
	h.Tasks, h.Median, h.Least, h.Most = len(times), times[len(times)/2], times[0], times[len(times)-1]
	width := max(1, int64(math.Ceil(float64(h.Most-h.Least+1)/bins)))
	h.Bins = make([]bin, bins)
	most := 0
	for _, t := range times {
		b := &h.Bins[(t-h.Least)/width]
		b.Tasks++
		most = max(most, b.Tasks)
	}
	for i := range h.Bins {
		b := &h.Bins[i]
		b.From, b.To = h.Least+int64(i)*width, h.Least+int64(i+1)*width
		b.X, b.Wide = i*1000/bins, 1000/bins-2
		b.High = int(math.Ceil(100 * float64(b.Tasks) / float64(most)))
		b.Y = 100 - b.High
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
