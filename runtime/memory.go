package runtime

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
)

// governor bounds the garbage of a worker process. Map output is outside the
// collected heap, so what is collected is small: blocks of input, buffers, and
// what the job's own code keeps. Go's default would let the heap double whatever
// its size, yet collect every 4 MiB while it is small, which costs time when
// blocks of input go by at GB/s. So the heap may grow to baseLimit before it is
// collected, and in a job that keeps much itself, half as much again as it keeps:
// a fixed limit would make the collector run all the time there. The relative
// bound, collectPercent, holds between two adjustments.
//
// A limit that the user has set by GOGC or GOMEMLIMIT is left as it is.
type governor struct {
	live  []metrics.Sample
	limit int64
	off   bool
}

const (
	baseLimit      = 32 << 20
	collectPercent = 400
)

func newGovernor() *governor {
	g := &governor{live: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}, limit: baseLimit,
		off: os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != ""}
	if !g.off {
		debug.SetGCPercent(collectPercent)
		debug.SetMemoryLimit(g.limit)
	}
	return g
}

// adjust follows what the job's code keeps.
func (g *governor) adjust() {
	if g.off {
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
