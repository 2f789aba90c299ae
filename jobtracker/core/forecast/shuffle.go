package forecast

import (
	"time"

	"github.com/quernmr/quern/history"
)

// Output is the state of the map output of a job that has reduces.
type Output struct {
	Maps    int   // of the job; below 0: not known
	Made    int   // those with output that can be fetched
	Bytes   int64 // of these outputs
	Fetched int64 // bytes of them at homes
	Read    int64 // bytes that these maps have read
	Input   int64 // bytes of the whole input; 0: not known

	Past *history.Profile // of the last job of the same name; nil: unknown
}

// Shuffle is a job's map output in bytes.
type Shuffle struct {
	Gathered int64 // at homes
	Made     int64 // by maps so far
	Whole    int64 // by all maps, estimated
}

// Left is the number of bytes that homes have yet to gather.
func (s Shuffle) Left() int64 { return s.Whole - s.Gathered }

// Shuffle estimates the output of all maps from the ratio of output to input so far, else from
// that of the last job of the same name.
func (o *Output) Shuffle() Shuffle {
	s := Shuffle{Gathered: min(o.Fetched, o.Bytes), Made: o.Bytes}
	switch {
	case o.Made == o.Maps:
	case o.Made > 0 && o.Read > 0 && o.Input > 0:
		s.Whole = int64(float64(o.Bytes) / float64(o.Read) * float64(o.Input))
	case o.Made > 0:
		s.Whole = o.ByMaps()
	case o.Past != nil && o.Past.Read > 0 && o.Input > 0:
		s.Whole = int64(float64(o.Past.Shuffled) / float64(o.Past.Read) * float64(o.Input))
	case o.Past != nil:
		s.Whole = o.Past.Shuffled
	}
	s.Whole = max(s.Whole, s.Made)
	return s
}

// ByMaps estimates the output of all maps in bytes from the mean per map so far.
func (o *Output) ByMaps() int64 {
	if o.Made == 0 {
		return 0
	}
	return int64(float64(o.Bytes) / float64(o.Made) * float64(o.Maps))
}

// Bandwidth is the rate at which trackers that can be homes fetch. The zero Bandwidth is of no
// tracker.
type Bandwidth struct {
	Homes int // trackers
	seen  int // those with a known rate
	sum   float64
}

// Add adds a tracker that fetches so many bytes a second; 0: unknown.
func (b *Bandwidth) Add(rate float64) {
	b.Homes++
	if rate > 0 {
		b.sum += rate
		b.seen++
	}
}

// Rate is the sum in bytes a second; 0: unknown. Trackers with unknown rate count with the mean
// of the others.
func (b *Bandwidth) Rate() float64 {
	if b.seen == 0 {
		return 0
	}
	return b.sum / float64(b.seen) * float64(b.Homes)
}

// defaultRate is the bytes a second that a tracker fetches, before any rate was measured.
const defaultRate = 50e6

// GatherTime estimates how long a tracker that fetches rate bytes a second (0: unknown) gathers
// a partition.
func GatherTime(bytes int64, rate float64) time.Duration {
	if rate <= 0 {
		rate = defaultRate
	}
	return After(float64(bytes) / rate)
}
