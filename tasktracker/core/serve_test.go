package core

import (
	"fmt"
	"testing"
	"time"

	"github.com/quernmr/quern/wire"
)

// BenchmarkFetches ends one fetch and starts another, with long queues at all hosts.
func BenchmarkFetches(b *testing.B) {
	for _, size := range []struct{ hosts, jobs int }{{10, 1}, {100, 20}, {1000, 20}, {1000, 200}} {
		b.Run(fmt.Sprintf("hosts=%d/jobs=%d", size.hosts, size.jobs), func(b *testing.B) {
			c := New(Config{Tracker: "t1", Process: 1, MapSlots: 1, ReduceSlots: 1, Dir: "D", RetryBase: 1, RetryMax: 1, Embedded: true})
			c.Step(0, StreamUp{})
			c.Step(0, FromLeader{&wire.Welcome{Epoch: 1, Incarnation: 1, Lease: 1e6 * time.Hour}})
			var running []int
			take := func(commands []Command) {
				for _, cmd := range commands {
					if f, ok := cmd.(Fetch); ok {
						running = append(running, f.Fetch)
					}
				}
			}
			for n := range size.jobs {
				id := wire.JobID{Start: 1, N: n + 1}
				outputs := make([]wire.MapOutput, 2*size.hosts)
				for m := range outputs {
					addr := fmt.Sprintf("t%d:1", m%size.hosts)
					outputs[m] = wire.MapOutput{Map: m, Attempt: 1000, Tracker: addr, Addr: addr, Digest: 1}
				}
				take(c.Step(0, FromLeader{&wire.SetHome{Epoch: 1, Job: id, Generation: wire.Generation{Epoch: 1, N: 1}, Maps: len(outputs)}}))
				take(c.Step(0, FromLeader{wire.OutputsOf(1, id, outputs...)}))
			}
			// They end with an error, so the queues never get empty.
			now := time.Duration(0)
			for b.Loop() {
				now += time.Millisecond
				f := running[0]
				running = running[1:]
				take(c.Step(now, FetchDone{Fetch: f, Error: "broken", Corrupt: true}))
			}
		})
	}
}
