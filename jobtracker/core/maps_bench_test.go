package core

import (
	"fmt"
	"testing"
	"time"

	"github.com/quernmr/quern/wire"
)

// BenchmarkMaps shows that the cost of a map does not grow with the number of tasks and trackers.
func BenchmarkMaps(b *testing.B) {
	for _, size := range []int{1000, 10_000} {
		b.Run(fmt.Sprintf("maps=%d", size), func(b *testing.B) {
			for range b.N {
				runMaps(size)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size), "ns/map")
		})
	}
}

// runMaps runs a job with as many maps as size, on a tenth as many slots.
func runMaps(size int) {
	c := New(Config{})
	var now time.Duration
	var streams []Stream
	var launched []Send
	feed := feeder(c, &now, collectLaunches(&launched))
	feed(Elected{Term: 1, Wall: 1})
	for i := range size / 20 {
		streams = append(streams, Stream(i+1))
		feed(FromTracker{Stream: streams[i], Message: &wire.Hello{Version: wire.Version, Tracker: fmt.Sprint(i), Process: 1, MapSlots: 2, ReduceSlots: 1}})
		feed(FromTracker{Stream: streams[i], Message: &wire.Inventory{}})
	}
	feed(Submit{Submission: &wire.Submission{Key: "k", Staging: "mem://s", Plan: wire.Plan{Jobs: []wire.JobPlan{{Reduces: 1}}}}})
	for len(launched) > 0 {
		s := launched[0]
		launched = launched[1:]
		id := s.Message.(*wire.Launch).Attempt
		now += time.Millisecond
		result := &wire.Result{Splits: &wire.SplitsDone{Maps: size}, Output: &wire.MapOutput{Digest: 1}}
		feed(FromTracker{Stream: s.Stream, Message: &wire.Report{Attempt: id, State: wire.AttemptSucceeded, Result: result}})
	}
}
