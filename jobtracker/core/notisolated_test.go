package core

import (
	"testing"
	"time"

	"github.com/quernmr/quern/wire"
)

// TestNotIsolatedIsTrouble: the status of the cluster shows a task tracker that wants to isolate jobs and cannot, with
// the reason and the flag that accepts it. One that does not want to is good. Each has its level.
func TestNotIsolatedIsTrouble(t *testing.T) {
	c := New(Config{ID: "jt", Lease: 5 * time.Second})
	var index uint64
	step := func(ev Event) {
		for events := []Event{ev}; len(events) > 0; events = events[1:] {
			for _, cmd := range c.Step(0, events[0]) {
				if p, ok := cmd.(Propose); ok {
					index++
					events = append(events, Entry{Index: index, Term: 1, Data: p.Data})
				}
			}
		}
	}
	step(Elected{Term: 1, Wall: 1})
	for i, reason := range []string{"", "proc /proc: operation not permitted"} {
		name := string(rune('a' + i))
		step(FromTracker{Stream: Stream(i + 1), Message: &wire.Hello{
			Version: wire.Version, Tracker: name, Process: 1, Host: name, Addr: name + ":1", MapSlots: 1, NotIsolated: reason, Isolation: "level " + name,
		}})
		step(FromTracker{Stream: Stream(i + 1), Message: &wire.Inventory{}})
	}
	want := []string{"", "jobs are not isolated: proc /proc: operation not permitted (-isolation none accepts this)"}
	trackers := c.Cluster(0).Trackers
	if len(trackers) != len(want) {
		t.Fatalf("%d trackers", len(trackers))
	}
	for i, s := range trackers {
		if s.Trouble != want[i] {
			t.Errorf("the trouble of %s is %q, want %q", s.Tracker, s.Trouble, want[i])
		}
		if s.Isolation != "level "+s.Tracker {
			t.Errorf("the level of %s is %q", s.Tracker, s.Isolation)
		}
	}
}
