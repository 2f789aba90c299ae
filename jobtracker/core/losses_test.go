package core

import (
	"strings"
	"testing"

	"github.com/quernmr/quern/wire"
)

// TestLossTroubles tests that a job's troubles show the loss of a tracker, even after many
// failures.
func TestLossTroubles(t *testing.T) {
	f, l, lost := smallFleet(t)
	for _, other := range l.fleet.byIndex[1:] {
		for range fleetSlots {
			f.failAttempt(other.attempts[0], 0)
		}
	}
	troubles := func() []string {
		status, _ := f.core.Status(l.jobs[1].id)
		return status.Troubles
	}
	failures := troubles()
	if len(failures) != wire.MaxTroubles {
		t.Fatalf("%d failures in the troubles, want %d", len(failures), wire.MaxTroubles)
	}
	for i := range 2 * wire.MaxTroubles {
		f.step(StreamClosed{l.fleet.trackers[lost.Name].contact.stream})
		stream := Stream(1000 + i)
		f.step(FromTracker{Stream: stream, Message: &wire.Hello{
			Version: wire.Version, Tracker: lost.Name, Process: uint64(2 + i), Host: lost.Host, Addr: lost.Addr, MapSlots: fleetSlots,
		}})
		f.step(FromTracker{Stream: stream, Message: &wire.Inventory{}})
		all := troubles()
		if want := wire.MaxTroubles + min(i+1, wire.MaxTroubles); len(all) != want {
			t.Fatalf("after %d restarts of a tracker, %d troubles, want %d", i+1, len(all), want)
		}
		if last := all[len(all)-1]; !strings.HasPrefix(last, "tracker "+lost.Name+" restarted: 8 maps rerun") {
			t.Errorf("the trouble of a restart is %q", last)
		}
	}
}
