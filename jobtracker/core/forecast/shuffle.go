package forecast

import (
	"time"

	"github.com/quernmr/quern/history"
)

// Output is the state of the map output of a job that has reduces.
type Output struct {
	Maps     int   // of the job; negative: unknown
	MapsDone int   // maps with output that can be fetched
	Bytes    int64 // of the output of these maps
	Fetched  int64 // bytes of it at homes
	Read     int64 // bytes of input that these maps have read
	Input    int64 // bytes of the whole input; 0: unknown

	Past *history.Profile // of the last job of the same name; nil: unknown
}

// Shuffle is a job's map output in bytes.
type Shuffle struct {
	Gathered int64 // at homes
	Produced int64 // by maps so far
	Total    int64 // by all maps, estimated
}

// BytesLeft is what homes have yet to gather.
func (s Shuffle) BytesLeft() int64 { return s.Total - s.Gathered }

// Shuffle estimates the output of all maps from the ratio of output to input so far. Before any map
// has ended, it uses the ratio of the last job of the same name.
func (o *Output) Shuffle() Shuffle {
	s := Shuffle{Gathered: min(o.Fetched, o.Bytes), Produced: o.Bytes}
	switch {
	case o.MapsDone == o.Maps:
	case o.MapsDone > 0 && o.Read > 0 && o.Input > 0:
		s.Total = int64(float64(o.Bytes) / float64(o.Read) * float64(o.Input))
	case o.MapsDone > 0:
		s.Total = o.TotalByMaps()
	case o.Past != nil && o.Past.Read > 0 && o.Input > 0:
		s.Total = int64(float64(o.Past.Shuffled) / float64(o.Past.Read) * float64(o.Input))
	case o.Past != nil:
		s.Total = o.Past.Shuffled
	}
	s.Total = max(s.Total, s.Produced)
	return s
}

// TotalByMaps estimates the output of all maps in bytes from the mean per map so far.
func (o *Output) TotalByMaps() int64 {
	if o.MapsDone == 0 {
		return 0
	}
	return int64(float64(o.Bytes) / float64(o.MapsDone) * float64(o.Maps))
}

// Bandwidth is the fetch rate of the trackers that can be homes. The zero Bandwidth has no
// trackers.
type Bandwidth struct {
	Homes    int // number of trackers
	measured int // trackers with a known rate
	sum      float64
}

// Add adds a tracker with its fetch rate in bytes a second; 0: unknown.
func (b *Bandwidth) Add(rate float64) {
	b.Homes++
	if rate > 0 {
		b.sum += rate
		b.measured++
	}
}

// Rate is the sum in bytes a second; 0: unknown. Trackers without a known rate count with the
// mean of the others.
func (b *Bandwidth) Rate() float64 { return b.Mean() * float64(b.Homes) }

// Mean is the mean of the known rates; 0: none is known.
func (b *Bandwidth) Mean() float64 {
	if b.measured == 0 {
		return 0
	}
	return b.sum / float64(b.measured)
}

// DefaultRate is the assumed fetch rate of a tracker in bytes a second, before it is measured.
const DefaultRate = 50e6

// GatherTime estimates how long a tracker gathers a partition. rate is its fetch rate in bytes a
// second; 0: unknown.
func GatherTime(bytes int64, rate float64) time.Duration {
	if rate <= 0 {
		rate = DefaultRate
	}
	return Duration(float64(bytes) / rate)
}
