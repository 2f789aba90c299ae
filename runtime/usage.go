package runtime

import (
	"runtime/metrics"
	"time"

	"github.com/quernmr/quern/wire"
)

// usage is the resource usage of this process since its start. If the process runs only one
// attempt at a time, the difference of two values is the attempt's usage.
type usage struct {
	cpu, gc time.Duration // processor time, in total and of the garbage collector
	objects uint64        // allocated on the heap
}

func measure() usage {
	samples := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/gc/heap/allocs:objects"}}
	metrics.Read(samples)
	u := usage{gc: time.Duration(samples[0].Value.Float64() * float64(time.Second)), objects: samples[1].Value.Uint64()}
	u.cpu = processorTime()
	return u
}

// count adds the usage from u to now.
func (u usage) count(c wire.Counters, now usage) {
	c.Add(wire.TaskCounters, wire.CPUMilliseconds, (now.cpu - u.cpu).Milliseconds())
	c.Add(wire.TaskCounters, wire.GCMilliseconds, (now.gc - u.gc).Milliseconds())
	c.Add(wire.QuernCounters, wire.HeapObjects, int64(now.objects-u.objects))
}
