package core

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/quernmr/quern/wire"
)

// TestLostOnce tests that outputs on a host that cannot be reached are reported once each, however many homes
// want them, and once more to a new leader.
func TestLostOnce(t *testing.T) {
	for _, bytes := range []int64{0, largeOutput} { // in batches, and alone
		testLostOnce(t, bytes)
	}
}

func testLostOnce(t *testing.T, bytes int64) {
	const outputs, homes = 200, 10
	c := largeJob(outputs, homes, 1, bytes)
	now := time.Duration(0)
	lost := make(map[int]int) // reports by map
	step := func(ev Event) {
		for _, cmd := range c.Step(now, ev) {
			if send, ok := cmd.(Send); ok {
				if x, ok := send.Message.(*wire.OutputLost); ok && x.Unreachable {
					lost[x.Map]++
				}
			}
		}
	}
	check := func(when string) {
		t.Helper()
		least, most := outputs, 0
		for _, n := range lost {
			least, most = min(least, n), max(most, n)
		}
		if len(lost) != outputs || least != 1 || most != 1 {
			t.Errorf("%s: %d outputs are reported, each %d to %d times, want %d once", when, len(lost), least, most, outputs)
		}
		clear(lost)
	}
	for len(lost) == 0 {
		if now > time.Hour {
			t.Fatal("no output is reported lost")
		}
		now += time.Second
		step(Tick{})
		for _, id := range slices.Sorted(maps.Keys(c.fetches)) {
			step(endOf(c, id, "connection refused"))
		}
	}
	check("after the host has failed")
	step(StreamDown{})
	step(StreamUp{})
	step(FromLeader{&wire.Welcome{Epoch: 2, Incarnation: 1, Lease: 1e6 * time.Hour}})
	check("after a welcome")
}

// TestLostMemory counts what a tracker keeps of outputs that it cannot fetch: some for each map, not for each
// map of each home, also after it has tried them all again.
func TestLostMemory(t *testing.T) {
	for _, bytes := range []int64{0, largeOutput} {
		testLostMemory(t, bytes)
	}
}

func testLostMemory(t *testing.T, bytes int64) {
	const outputs, homes, hosts = 10_000, 1_000, 10
	c := largeJob(outputs, homes, hosts, bytes)
	j := c.jobs[wire.JobID{Start: 1, N: 1}]
	now, lost := time.Duration(0), 0
	for lost < 2*outputs {
		if now > time.Hour {
			t.Fatalf("%d outputs are reported lost", lost)
		}
		now += time.Second
		events := []Event{Tick{}}
		for _, id := range slices.Sorted(maps.Keys(c.fetches)) {
			events = append(events, endOf(c, id, "connection refused"))
		}
		for _, ev := range events {
			for _, cmd := range c.Step(now, ev) {
				if send, ok := cmd.(Send); ok {
					if _, ok := send.Message.(*wire.OutputLost); ok {
						lost++
					}
				}
			}
		}
		kept := len(j.unreachable) + len(c.retries)
		for _, x := range c.aside {
			kept += len(x.maps)
		}
		entries := 0
		for _, h := range j.homes {
			entries += len(h.entries)
		}
		if kept > 2*outputs || entries > len(c.fetches) {
			t.Fatalf("after %d reports the tracker keeps %d entries, and homes keep %d during %d fetches", lost, kept, entries, len(c.fetches))
		}
	}
}

// TestSetAside tests when outputs of a host that could not be reached are tried again: in time, or when the
// leader names them again.
func TestSetAside(t *testing.T) {
	c := largeJob(20, 3, 1, 0)
	j := c.jobs[wire.JobID{Start: 1, N: 1}]
	now := time.Duration(0)
	fail := func() {
		for len(c.aside) == 0 {
			now += time.Second
			c.Step(now, Tick{})
			for _, id := range slices.Sorted(maps.Keys(c.fetches)) {
				c.Step(now, endOf(c, id, "connection refused"))
			}
		}
	}
	fail()
	if wake, ok := c.Wake(); !ok || wake > c.aside[0].until || len(j.unreachable) != 20 || j.inQueue.Len() != 0 {
		t.Fatalf("%d outputs are lost, %d queued; the next Tick is at %v", len(j.unreachable), j.inQueue.Len(), wake)
	}
	same := j.outputs[7].MapOutput
	now = c.aside[0].until - 1
	c.Step(now, FromLeader{wire.OutputsOf(1, j.id, same)})
	if len(c.fetches) != 1 || len(j.unreachable) != 19 || j.wants[7] != 2 {
		t.Fatalf("%d fetches after the output was named again; %d are lost, %d homes wait for it", len(c.fetches), len(j.unreachable), j.wants[7])
	}
	checkInvariants(t, c)
	now++
	c.Step(now, Tick{})
	if j.inQueue.Len() != 20 || len(c.aside) != 0 {
		t.Errorf("%d outputs are queued again, want 20", j.inQueue.Len())
	}
	checkInvariants(t, c)
	for len(c.fetches) > 0 {
		for _, id := range slices.Sorted(maps.Keys(c.fetches)) {
			c.Step(now, endOf(c, id, ""))
		}
	}
	if len(j.unreachable) != 0 || !c.complete(j.homes[0]) {
		t.Errorf("%d outputs are lost after all were fetched", len(j.unreachable))
	}
}

// TestNewLeaderHearsOfFetched tests that a new leader hears of all outputs that were reported lost, also of those
// that the last home which wants them tries to fetch again.
func TestNewLeaderHearsOfFetched(t *testing.T) {
	const outputs = 20
	c := largeJob(outputs, 1, 1, largeOutput)
	j := c.jobs[wire.JobID{Start: 1, N: 1}]
	now := time.Duration(0)
	fail := func() {
		for _, id := range slices.Sorted(maps.Keys(c.fetches)) {
			c.Step(now, endOf(c, id, "connection refused"))
		}
	}
	for len(c.aside) == 0 {
		now += time.Second
		c.Step(now, Tick{})
		fail()
	}
	for len(c.fetches) == 0 {
		now += time.Second
		c.Step(now, Tick{})
	}
	checkInvariants(t, c)
	c.Step(now, StreamDown{})
	c.Step(now, StreamUp{})
	lost := 0
	for _, cmd := range c.Step(now, FromLeader{&wire.Welcome{Epoch: 2, Incarnation: 1, Lease: 1e6 * time.Hour}}) {
		if send, ok := cmd.(Send); ok {
			if x, ok := send.Message.(*wire.OutputLost); ok && x.Unreachable {
				lost++
			}
		}
	}
	if lost != outputs || len(j.unreachable) != outputs {
		t.Errorf("the new leader hears of %d lost outputs during %d fetches, and %d are known, want %d", lost, len(c.fetches), len(j.unreachable), outputs)
	}
	for _, sum := range j.knownSums() {
		if sum != 0 {
			t.Error("an output that was reported lost counts as known")
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.fetches)) {
		c.Step(now, FetchDone{Fetch: id, Missing: true, Error: "no such output"})
	}
	checkInvariants(t, c)
}
