package runtime

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
)

// gcTuner tunes the garbage collector of a worker process. Map output is outside the Go
// heap, so the heap is small: input blocks, buffers, and the job's own data. By default, Go
// collects such a heap every 4 MiB, which is slow when input arrives at GB/s. So the heap
// may grow to baseLimit before a collection, or to 1.5 times the live data if that is more.
// Under a fixed limit, a job with much data would collect all the time. Between two
// adjustments, collectPercent limits the heap.
//
// gcTuner does nothing if the user has set GOGC or GOMEMLIMIT.
type gcTuner struct {
	live     []metrics.Sample
	limit    int64
	disabled bool
}

const (
	baseLimit      = 32 << 20
	collectPercent = 400
)

func newGCTuner() *gcTuner {
	g := &gcTuner{live: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}, limit: baseLimit,
		disabled: os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != ""}
	if !g.disabled {
		debug.SetGCPercent(collectPercent)
		debug.SetMemoryLimit(g.limit)
	}
	return g
}

// adjust sets the limit by the size of the live heap.
func (g *gcTuner) adjust() {
	if g.disabled {
		return
	}
	metrics.Read(g.live)
	live := int64(g.live[0].Value.Uint64())
	want := max(baseLimit, live+live/2)
	if want > g.limit || want < g.limit-g.limit/4 {
		g.limit = want
		debug.SetMemoryLimit(want)
	}
}
