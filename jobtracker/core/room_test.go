package core

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/jobtracker/core/assign"
)

// checkFree compares the free slots of trackers for all requests with those for each request.
func checkFree(c *Core, fail func(string, ...any)) {
	if c.leader == nil {
		return
	}
	for phase := range c.leader.phases {
		requests := make(map[assign.Room]bool)
		for _, j := range c.leader.order {
			requests[j.assign.Request(phase)] = true
		}
		smallest := smallestRequests(requests)
		for _, t := range c.leader.fleet.byIndex {
			if t == nil {
				continue
			}
			want := 0
			for request := range requests {
				want = max(want, t.assign.FreeWith(phase, request))
			}
			if got := t.freeForAny(phase, smallest); got != want {
				fail("tracker %s has %d free slots for any of %v, want %d", t.Name, got, requests, want)
			}
		}
	}
}

// TestSmallestRequests tests that an offer has room for one of the smallest requests exactly if it has room for
// any, and that none of them is needless.
func TestSmallestRequests(t *testing.T) {
	room := rapid.Custom(func(t *rapid.T) assign.Room {
		return assign.Room{Memory: rapid.Int64Range(0, 5).Draw(t, "memory"), Cores: rapid.IntRange(0, 5).Draw(t, "cores")}
	})
	fits := func(r, offer assign.Room) bool { return r.Memory <= offer.Memory && r.Cores <= offer.Cores }
	rapid.Check(t, func(t *rapid.T) {
		requests := make(map[assign.Room]bool)
		for _, r := range rapid.SliceOf(room).Draw(t, "requests") {
			requests[r] = true
		}
		smallest := smallestRequests(requests)
		offer, all, some := room.Draw(t, "offer"), false, false
		for r := range requests {
			all = all || fits(r, offer)
		}
		for i, r := range smallest {
			some = some || fits(r, offer)
			for k, other := range smallest {
				if !requests[r] || i != k && fits(other, r) {
					t.Fatalf("%v is needless in %v", r, smallest)
				}
			}
		}
		if all != some {
			t.Fatalf("%v has room for one of %v: %v, and for one of %v: %v", offer, requests, all, smallest, some)
		}
	})
}
