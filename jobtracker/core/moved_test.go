package core

import (
	"testing"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/wire"
)

// TestNewAddress tests that a home which knows all outputs gets none again, although their tracker has
// restarted with another address meanwhile.
func TestNewAddress(t *testing.T) {
	c := newLargeCluster(3, 1, 0)
	l := c.core.leader
	j := l.order[0]
	choose := func() {
		for m := range j.maps {
			l.chooseOutput(j, l.fleet.trackers["t0000"], &wire.MapOutput{Map: m, Attempt: 1, Digest: 1, Bytes: 1})
		}
		c.settle()
	}
	choose()
	again := l.fleet.trackers["t0000"].Tracker
	again.Process, again.Addr = again.Process+1, "elsewhere:1"
	c.commit(&facts.TrackerRegistered{Tracker: again})
	c.settle()
	choose()
	known := make([]uint64, 1)
	for m := range j.maps {
		o := l.outputOf(j, m)
		if known[0] += o.Sum(); o.Addr != again.Addr {
			t.Fatalf("map %d has its output at %s, want %s", m, o.Addr, again.Addr)
		}
	}
	const home = 1000
	j.outputs.log.Follow(home)
	r := j.outputs.log.Reader(home)
	r.Knows(known)
	if r.All(); r.Pending() {
		t.Error("a home that knows all outputs gets them again")
	}
}
