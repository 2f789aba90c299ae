package forecast

import (
	"time"

	"github.com/quernmr/quern/history"
)

// Output is what is known of the map output of a job that has reduces.
type Output struct {
	Maps    int   // of the job; below 0: not known
	Made    int   // those whose output is at hand
	Bytes   int64 // of these outputs
	Fetched int64 // bytes of them at homes
	Read    int64 // bytes that these maps have read
	Input   int64 // bytes of the whole input; 0: not known

	Past *history.Profile // of the last job of the same name; nil: nothing is known of it
}

// Shuffle is a job's map output in bytes.
type Shuffle struct {
	Gathered int64 // what homes have of it
	Made     int64 // what maps have made
	Whole    int64 // what all maps will have made
}

// Left is what homes have yet to gather.
func (s Shuffle) Left() int64 { return s.Whole - s.Gathered }

// Shuffle is what all maps make by the bytes that they make of a byte of input so far, or
// that the last job of the same name did.
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

// ByMaps is the bytes that all maps make if each makes as many as those so far.
func (o *Output) ByMaps() int64 {
	if o.Made == 0 {
		return 0
	}
	return int64(float64(o.Bytes) / float64(o.Made) * float64(o.Maps))
}

// Bandwidth is the bytes a second that all trackers fetch which can be homes. The zero
// Bandwidth is that of none.
type Bandwidth struct {
	Homes int // such trackers
	seen  int // those that have been seen to fetch
	sum   float64
}

// Add adds a tracker that fetches so many bytes a second; 0: that is not known.
func (b *Bandwidth) Add(rate float64) {
	b.Homes++
	if rate > 0 {
		b.sum += rate
		b.seen++
	}
}

// Rate is the bytes a second; 0: not known. Trackers that have not been seen to fetch are
// taken to be like the others.
func (b *Bandwidth) Rate() float64 {
	if b.seen == 0 {
		return 0
	}
	return b.sum / float64(b.seen) * float64(b.Homes)
}

// usualRate is the bytes a second that a tracker's homes fetch, before any was measured.
const usualRate = 50e6

// Gathering is how long a partition of so many bytes is gathered again on a tracker that
// fetches so many a second; 0: that is not known.
func Gathering(bytes int64, rate float64) time.Duration {
	if rate <= 0 {
		rate = usualRate
	}
	return After(float64(bytes) / rate)
}
