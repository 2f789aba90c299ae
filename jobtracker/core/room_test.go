package core

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/jobtracker/core/assign"
)

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
