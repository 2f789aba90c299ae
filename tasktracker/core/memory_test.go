package core

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/quernmr/quern/wire"
)

// largeJob gives a tracker homes of a job. All outputs are named, and none is fetched. Half of the homes
// come before the outputs, as at the start of a job, the others later, as after the loss of a tracker.
func largeJob(maps, homes, hosts int, bytes int64) *Core {
	c := New(Config{Tracker: "t", Process: 1, MapSlots: 1, ReduceSlots: 1, Dir: "D", Embedded: true})
	c.Step(0, StreamUp{})
	c.Step(0, FromLeader{&wire.Welcome{Epoch: 1, Incarnation: 1, Lease: 1e6 * time.Hour}})
	job := wire.JobID{Start: 1, N: 1}
	setHomes := func(from, to int) {
		for p := from; p < to; p++ {
			c.Step(0, FromLeader{&wire.SetHome{Epoch: 1, Job: job, Partition: p, Generation: wire.Generation{Epoch: 1, N: 1}, Maps: maps}})
		}
	}
	setHomes(0, homes/2)
	for from := 0; from < maps; from += wire.OutputsPage {
		var outputs []wire.MapOutput
		for m := from; m < min(maps, from+wire.OutputsPage); m++ {
			addr := fmt.Sprintf("t%d:1", m%hosts)
			outputs = append(outputs, wire.MapOutput{Map: m, Attempt: 1000, Tracker: addr, Addr: addr, Digest: 1, Bytes: bytes})
		}
		c.Step(0, FromLeader{wire.OutputsOf(1, job, outputs...)})
	}
	setHomes(homes/2, homes)
	return c
}

// heldBy returns the bytes that stay allocated after f, while its result is in use.
func heldBy(f func() *Core) int64 {
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	c := f()
	after := heap()
	runtime.KeepAlive(c)
	return after - before
}

// TestMemory tests that a tracker's memory depends on the sum of maps and partitions: for each of
// their pairs it has two bits.
func TestMemory(t *testing.T) {
	const maps, homes = 10_000, 100
	if n := heldBy(func() *Core { return largeJob(maps, homes, 100, largeOutput) }); n > 5<<20 {
		t.Errorf("%d bytes for %d maps and %d partitions", n, maps, homes)
	}
	few := heldBy(func() *Core { return largeJob(maps, 10, 100, largeOutput) })
	many := heldBy(func() *Core { return largeJob(maps, 210, 100, largeOutput) })
	if perPair := float64(many-few) / (200 * maps); perPair > 1 {
		t.Errorf("%.2f bytes for each map of each further partition", perPair)
	}
}

// BenchmarkHomes makes the homes of a large job. An op is all of this.
func BenchmarkHomes(b *testing.B) {
	for b.Loop() {
		n := heldBy(func() *Core { return largeJob(10_000, 100, 100, largeOutput) })
		b.ReportMetric(float64(n)/1e6, "MB")
	}
}

// TestKnownOutputs tests what an inventory says about map outputs: the tracker knows those that were
// named, except those that it has reported lost.
func TestKnownOutputs(t *testing.T) {
	c := New(Config{Tracker: "t1", Addr: "t1:1", Process: 1, MapSlots: 1, ReduceSlots: 1, Dir: "D", Embedded: true})
	var inventories []*wire.Inventory
	step := func(ev Event) {
		for _, cmd := range c.Step(0, ev) {
			if send, ok := cmd.(Send); ok {
				if m, ok := send.Message.(*wire.Inventory); ok {
					inventories = append(inventories, m)
				}
			}
		}
	}
	connect := func() {
		step(StreamUp{})
		step(FromLeader{&wire.Welcome{Epoch: 1, Incarnation: 1, Lease: time.Hour}})
	}
	job := wire.JobID{Start: 1, N: 1}
	other := wire.MapOutput{Map: wire.OutputsPage + 1, Attempt: 1000, Tracker: "t2", Addr: "t2:1", Digest: 7}
	lost := wire.MapOutput{Map: 0, Attempt: 1000, Tracker: "t1", Addr: "t1:1", Digest: 8}
	connect()
	step(FromLeader{&wire.SetHome{Epoch: 1, Job: job, Generation: wire.Generation{Epoch: 1, N: 1}, Maps: wire.OutputsPage + 2}})
	step(FromLeader{wire.OutputsOf(1, job, other, lost)})
	step(StreamDown{})
	connect()
	known := inventories[len(inventories)-1].Known
	if len(inventories) != 2 || len(known) != 1 || known[0].Job != job || !slices.Equal(known[0].Sums, []uint64{0, other.Sum()}) {
		t.Errorf("%d inventories, the last one knows %+v", len(inventories), known)
	}
}
