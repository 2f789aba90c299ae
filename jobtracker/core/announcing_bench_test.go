package core

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/wire"
)

// announced is what a new leader has sent after the inventories of a large job.
type announced struct {
	messages    int            // to all trackers
	outputs     int            // in them
	blocks      map[*byte]int  // lengths of the blocks in them, which many messages share
	wakes       int            // Steps until nothing was left
	longest     time.Duration  // of them
	allocated   uint64         // bytes, garbage too
	perTracker  map[Stream]int // messages
	lastMessage time.Duration  // since the last inventory
}

// failOver elects a leader of trackers that are homes of one partition each, of a job with perTracker
// maps for each tracker. All maps have ended. With knows, each tracker knows all outputs.
func failOver(trackers, perTracker int, knows bool) announced {
	c := newBigCluster(trackers, 0)
	maps := trackers * perTracker
	c.commit(
		&facts.Submitted{Submission: wire.Submission{Key: "k", Staging: "s", Plan: wire.Plan{Jobs: []wire.JobPlan{{Name: "n", Reduces: trackers}}}}},
		&facts.SplitsWritten{Job: 1, Maps: maps},
	)
	c.elect()
	job := wire.JobID{Start: 1, N: 1}
	output := func(m int) *wire.MapOutput {
		name := c.core.leader.fleet.byIndex[m/perTracker].Name
		return &wire.MapOutput{Map: m, Attempt: 1000, Tracker: name, Addr: name, Bytes: 1 << 20, Digest: 1}
	}
	sums := make([]uint64, (maps+wire.OutputsPage-1)/wire.OutputsPage)
	for m := range maps {
		sums[m/wire.OutputsPage] += output(m).Sum()
	}
	for i := range trackers {
		page := &wire.Inventory{Homes: []wire.HomeReport{{Job: job, Partition: i, Generation: wire.Generation{Epoch: 1, N: i + 1}, Maps: maps - 1}}}
		for m := i * perTracker; m < (i+1)*perTracker; m++ {
			id := wire.AttemptID{Task: wire.TaskID{Job: job, Kind: wire.Map, N: m}, N: 1000}
			page.Attempts = append(page.Attempts, wire.Report{Attempt: id, State: wire.AttemptSucceeded, Result: &wire.Result{Output: output(m)}})
		}
		if knows {
			page.Known = []wire.KnownOutputs{{Job: job, Sums: sums}}
		}
		if i < trackers-1 {
			c.step(FromTracker{Stream: c.stream(i), Message: page})
			continue
		}
		return c.announced(FromTracker{Stream: c.stream(i), Message: page})
	}
	return announced{}
}

// announced feeds an event, and Ticks until no announcement is left.
func (c *bigCluster) announced(ev Event) announced {
	a := announced{blocks: make(map[*byte]int), perTracker: make(map[Stream]int)}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	x := &c.core.leader.announcing
	for now := time.Duration(0); ; {
		begin := time.Now()
		commands := c.core.Step(now, ev)
		a.longest = max(a.longest, time.Since(begin))
		a.wakes++
		for _, cmd := range commands {
			send, ok := cmd.(Send)
			if !ok {
				continue
			}
			if m, ok := send.Message.(*wire.Outputs); ok {
				a.messages++
				a.outputs += m.Count()
				a.perTracker[send.Stream]++
				a.lastMessage = now
				for _, list := range m.Lists {
					a.blocks[&list.Block[0]] = len(list.Block)
				}
			}
		}
		switch {
		case x.ready.Len() > 0:
		case x.refill != never:
			now = x.refill
		default:
			runtime.ReadMemStats(&after)
			a.allocated = after.TotalAlloc - before.TotalAlloc
			return a
		}
		ev = Tick{}
	}
}

// TestFailoverOutputs tests what a new leader sends to the homes of a large job: each output once to
// each home that does not know it, in blocks that all homes share.
func TestFailoverOutputs(t *testing.T) {
	const trackers, perTracker = 100, 200
	const maps, pages = trackers * perTracker, (trackers*perTracker + wire.OutputsPage - 1) / wire.OutputsPage
	a := failOver(trackers, perTracker, false)
	if a.outputs != trackers*maps || a.messages != trackers*pages || len(a.blocks) != pages {
		t.Errorf("%d outputs in %d messages of %d blocks, want %d in %d of %d", a.outputs, a.messages, len(a.blocks), trackers*maps, trackers*pages, pages)
	}
	if a.allocated > 10<<20 {
		t.Errorf("%d bytes allocated", a.allocated)
	}
	if a = failOver(trackers, perTracker, true); a.messages != 0 {
		t.Errorf("%d messages to trackers that know all outputs", a.messages)
	}
}

// BenchmarkFailoverOutputs measures the announcements after an election with a job of 100,000 maps on
// 1,000 homes, which know all outputs or none.
func BenchmarkFailoverOutputs(b *testing.B) {
	for _, knows := range []bool{false, true} {
		b.Run(fmt.Sprintf("know=%v", knows), func(b *testing.B) {
			for b.Loop() {
				begin := time.Now()
				a := failOver(1000, 100, knows)
				b.ReportMetric(time.Since(begin).Seconds(), "s-in-all")
				b.ReportMetric(float64(a.allocated)/1e6, "MB")
				b.ReportMetric(float64(a.messages), "messages")
				b.ReportMetric(float64(a.wakes), "Steps")
				b.ReportMetric(float64(a.longest.Microseconds())/1000, "ms-longest")
				b.ReportMetric(a.lastMessage.Seconds(), "s-to-last")
			}
		})
	}
}
