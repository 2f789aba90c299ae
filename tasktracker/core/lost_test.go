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
	const outputs, homes = 200, 10
	c := largeJob(outputs, homes, 1)
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
			step(FetchDone{Fetch: id, Error: "connection refused"})
		}
	}
	check("after the host has failed")
	step(StreamDown{})
	step(StreamUp{})
	step(FromLeader{&wire.Welcome{Epoch: 2, Incarnation: 1, Lease: 1e6 * time.Hour}})
	check("after a welcome")
}
