package gather

import (
	"time"

	"github.com/quernmr/quern/meter"
	"github.com/quernmr/quern/tasktracker/core"
)

// Result is how a fetch from another task tracker ends.
type Result int

// The results.
const (
	Succeeded Result = iota
	Cancelled
	Corrupt // a checksum failed
	Missing // the other task tracker has no such output
	Stalled // the other one sent nothing, or too little, for a long time
	Disk    // the disk of this task tracker failed
	Failed  // any other reason, such as a closed connection
	Results
)

func (r Result) String() string {
	return [...]string{"succeeded", "cancelled", "corrupt", "missing", "stalled", "disk", "failed"}[r]
}

// Counts are what a Gather has counted. Any goroutine may read them.
type Counts struct {
	Fetches [Results]meter.Count
	Bytes   meter.Count      // of fetches that succeeded
	Times   *meter.Histogram // of fetches that succeeded, with pauses for the rate
}

func newCounts() *Counts { return &Counts{Times: meter.NewTimes(500 * time.Microsecond)} }

// Counts returns the counts, which go on growing.
func (g *Gather) Counts() *Counts { return g.counts }

func (c *Counts) add(ev *core.FetchDone, cancelled bool, took time.Duration) {
	result := resultOf(ev, cancelled)
	c.Fetches[result].Add(1)
	if result == Succeeded {
		c.Bytes.Add(ev.Segment.Length)
		c.Times.AddTime(took)
	}
}

// addBatch counts a batch as one fetch. Its result is its own, or else that of the first failure.
func (c *Counts) addBatch(ev *core.BatchDone, cancelled bool, took time.Duration) {
	one := core.FetchDone{Error: ev.Error, Stalled: ev.Stalled, DiskFailed: ev.DiskFailed}
	for _, r := range ev.Runs {
		one.Segment.Length += r.Segment.Length
	}
	if one.Error == "" && len(ev.Failed) > 0 {
		one.Error, one.Corrupt, one.Missing = ev.Failed[0].Error, ev.Failed[0].Corrupt, ev.Failed[0].Missing
	}
	c.add(&one, cancelled, took)
}

func resultOf(ev *core.FetchDone, cancelled bool) Result {
	switch {
	case ev.Error == "":
		return Succeeded
	case cancelled:
		return Cancelled
	case ev.Corrupt:
		return Corrupt
	case ev.Missing:
		return Missing
	case ev.Stalled:
		return Stalled
	case ev.DiskFailed:
		return Disk
	}
	return Failed
}
