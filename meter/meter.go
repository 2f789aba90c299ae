// Package meter counts what happens in a daemon, for its metrics. A count costs a few nanoseconds.
// All goroutines may count, and read the counts at the same time.
//
// Cores and loops count here. They know no format of metrics: the commands make metrics of the
// counts when Prometheus asks.
package meter

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Count is a number that only grows. Its zero value is ready.
type Count struct{ n atomic.Int64 }

// Add adds n, which must not be negative.
func (c *Count) Add(n int64) { c.n.Add(n) }

// Value returns the number.
func (c *Count) Value() int64 { return c.n.Load() }

// Buckets is the number of a Histogram's bounds.
const Buckets = 16

// Histogram counts values in buckets. Each bound is twice the one before it.
type Histogram struct {
	first  int64
	counts [Buckets + 1]atomic.Int64 // the last one has the values above all bounds
	sum    atomic.Int64
}

// NewHistogram makes a Histogram with the bounds first, 2 × first, 4 × first and so on. first is
// positive.
func NewHistogram(first int64) *Histogram { return &Histogram{first: first} }

// NewTimes makes a Histogram of durations, in nanoseconds.
func NewTimes(first time.Duration) *Histogram { return NewHistogram(int64(first)) }

// Add counts a value. A negative one counts as 0.
func (h *Histogram) Add(v int64) {
	v = max(v, 0)
	above := uint64(max(v-1, 0) / h.first) // 0 up to the first bound, 1 up to the second, 2 and 3 up to the third
	h.counts[min(bits.Len64(above), Buckets)].Add(1)
	h.sum.Add(v)
}

// AddTime counts a duration.
func (h *Histogram) AddTime(d time.Duration) { h.Add(int64(d)) }

// Distribution is what a Histogram has counted.
type Distribution struct {
	Bounds [Buckets]int64
	Counts [Buckets + 1]int64 // of values up to each bound and above the one before; the last: above all
	Sum    int64
}

// Distribution returns the values so far. Values that are counted at the same time may be missing in a
// part of it.
func (h *Histogram) Distribution() Distribution {
	d := Distribution{Sum: h.sum.Load()}
	for i := range d.Counts {
		d.Counts[i] = h.counts[i].Load()
	}
	for i := range d.Bounds {
		d.Bounds[i] = h.first << i
	}
	return d
}

// Total counts all values.
func (d *Distribution) Total() (n int64) {
	for _, c := range d.Counts {
		n += c
	}
	return n
}
