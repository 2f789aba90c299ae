package core

import (
	"fmt"
	"testing"
	"time"

	"github.com/quernmr/quern/wire"
)

// BenchmarkSlowHomes shows what the checks for slow homes cost: a thousand trackers gather the
// partitions of a hundred jobs, and wait for a few servers. An operation is a second of virtual time.
func BenchmarkSlowHomes(b *testing.B) {
	const trackers, jobs, maps = 1000, 100, 1000
	var now time.Duration
	c := New(Config{Lease: 24 * time.Hour})
	var launched []Send
	feed := feeder(c, &now, collectLaunches(&launched))
	feed(Elected{Term: 1, Wall: 1})
	for i := range trackers {
		feed(FromTracker{Stream: Stream(i + 1), Message: &wire.Hello{Version: wire.Version, Tracker: fmt.Sprint(i), Process: 1, MapSlots: 100, ReduceSlots: 1}})
		feed(FromTracker{Stream: Stream(i + 1), Message: &wire.Inventory{}})
	}
	for k := range jobs {
		feed(Submit{Submission: &wire.Submission{Key: fmt.Sprint(k), Staging: "mem://s", Plan: wire.Plan{Jobs: []wire.JobPlan{{Reduces: trackers}}}}})
	}
	for ; len(launched) > 0; launched = launched[1:] {
		id := launched[0].Message.(*wire.Launch).Attempt
		result := &wire.Result{Splits: &wire.SplitsDone{Maps: maps}, Output: &wire.MapOutput{Digest: 1, Bytes: 1e9}}
		feed(FromTracker{Stream: launched[0].Stream, Message: &wire.Report{Attempt: id, State: wire.AttemptSucceeded, Result: result}})
	}
	for i := range trackers {
		m := &wire.Heartbeat{Rate: float64(i + 1)}
		for k := range wire.MaxAwaitedJobs {
			m.Awaited = append(m.Awaited, wire.Awaited{Job: wire.JobID{Start: 1, N: k + 1}, Trackers: []string{"1", "2", "3", "4"}})
		}
		feed(FromTracker{Stream: Stream(i + 1), Message: m})
	}
	now += slowHome
	for b.Loop() {
		for end := now + time.Second; now < end; {
			at, ok := c.Wake()
			if now = end; ok {
				now = min(at, end)
			}
			feed(Tick{})
		}
	}
}
