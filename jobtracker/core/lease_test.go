package core

import (
	"slices"
	"testing"
	"time"

	"github.com/quernmr/quern/wire"
)

// TestLeasesOfLateLeader tests a leader that is late in handling messages. It treats no tracker
// with waiting messages as lost, but still notices silent ones.
func TestLeasesOfLateLeader(t *testing.T) {
	c := New(Config{ID: "jt", Lease: 5 * time.Second})
	var log []Entry
	step := func(now time.Duration, ev Event) {
		t.Helper()
		for events := []Event{ev}; len(events) > 0; events = events[1:] {
			for _, cmd := range c.Step(now, events[0]) {
				if p, ok := cmd.(Propose); ok {
					log = append(log, Entry{Index: uint64(len(log) + 1), Term: 1, Data: p.Data})
					events = append(events, log[len(log)-1])
				}
			}
		}
	}
	trackers := func(now time.Duration, want int) {
		t.Helper()
		if got := len(slices.Collect(c.facts.Trackers())); got != want {
			t.Errorf("at %v there are %d trackers, want %d", now, got, want)
		}
	}
	step(0, Elected{Term: 1, Wall: 1})
	for i, name := range []string{"t1", "t2"} {
		step(0, FromTracker{Stream: Stream(i + 1), Message: &wire.Hello{
			Version: wire.Version, Tracker: name, Process: 1, Host: name, Addr: name + ":1", MapSlots: 1,
		}})
		step(0, FromTracker{Stream: Stream(i + 1), Message: &wire.Inventory{}})
	}
	const late = 7 * time.Second
	step(late, FromTracker{Stream: 1, Message: &wire.Heartbeat{}, ReadAt: time.Second})
	trackers(late, 2) // the heartbeat of t2 is not handled yet
	step(late, Tick{ReadUntil: 4 * time.Second})
	trackers(late, 2)
	step(late, FromTracker{Stream: 2, Message: &wire.Heartbeat{}, ReadAt: time.Second})
	step(late, Tick{ReadUntil: late})
	trackers(late, 2)
	step(late+3*time.Second, FromTracker{Stream: 1, Message: &wire.Heartbeat{}, ReadAt: late + 3*time.Second})
	step(late+5*time.Second, Tick{})
	trackers(late+5*time.Second, 1)
}

// TestInventoriesOfLateLeader tests a new leader that is late in handling messages. Recovered
// jobs go on only after it has handled the waiting inventories.
func TestInventoriesOfLateLeader(t *testing.T) {
	c := New(Config{ID: "jt", Lease: 5 * time.Second})
	var index uint64
	step := func(term uint64, now time.Duration, ev Event) {
		for events := []Event{ev}; len(events) > 0; events = events[1:] {
			for _, cmd := range c.Step(now, events[0]) {
				if p, ok := cmd.(Propose); ok {
					index++
					events = append(events, Entry{Index: index, Term: term, Data: p.Data})
				}
			}
		}
	}
	hello := func(term uint64, now time.Duration, stream Stream, name string) {
		step(term, now, FromTracker{Stream: stream, ReadAt: now, Message: &wire.Hello{
			Version: wire.Version, Tracker: name, Process: 1, Host: name, Addr: name + ":1", MapSlots: 1,
		}})
	}
	step(1, 0, Elected{Term: 1, Wall: 1})
	hello(1, 0, 1, "t1")
	hello(1, 0, 2, "t2")
	step(1, 0, Submit{Submission: &wire.Submission{Key: "k", Staging: "mem://s", Plan: wire.Plan{Jobs: []wire.JobPlan{{Name: "n"}}}}})
	const elected = 10 * time.Second
	step(2, elected, Elected{Term: 2, Wall: 1})
	hello(2, elected, 3, "t1")
	hello(2, elected, 4, "t2")
	step(2, elected+6*time.Second, FromTracker{Stream: 3, ReadAt: elected + time.Second, Message: &wire.Inventory{}})
	if j := c.leader.order[0]; !j.recovering {
		t.Error("the job goes on before a waiting inventory is handled")
	}
	step(2, elected+7*time.Second, FromTracker{Stream: 4, ReadAt: elected + time.Second, Message: &wire.Inventory{}})
	if j := c.leader.order[0]; j.recovering {
		t.Error("the job does not go on after the last inventory")
	}
}

// stepper returns a function that passes an event to a core, and then the entries that it proposes.
func stepper(c *Core) func(now time.Duration, ev Event) {
	var index uint64
	return func(now time.Duration, ev Event) {
		for events := []Event{ev}; len(events) > 0; events = events[1:] {
			for _, cmd := range c.Step(now, events[0]) {
				if p, ok := cmd.(Propose); ok {
					index++
					events = append(events, Entry{Index: index, Term: c.term, Data: p.Data})
				}
			}
		}
	}
}

// TestHeardWhenRead tests that a lease begins when a message is read, not when the leader comes to it.
// It also tests that leases are longer while the leader is late, until all events of a whole lease
// were on time.
func TestHeardWhenRead(t *testing.T) {
	c := New(Config{ID: "jt", Lease: 4 * time.Second})
	step := stepper(c)
	trackers := func(now time.Duration, want int) {
		t.Helper()
		if got := len(slices.Collect(c.facts.Trackers())); got != want {
			t.Errorf("at %v there are %d trackers, want %d", now, got, want)
		}
	}
	register := func(now time.Duration, stream Stream) {
		step(now, FromTracker{Stream: stream, Message: &wire.Hello{
			Version: wire.Version, Tracker: "t1", Process: uint64(stream), Host: "h", Addr: "h:1", MapSlots: 1,
		}})
		step(now, FromTracker{Stream: stream, Message: &wire.Inventory{}})
	}
	step(0, Elected{Term: 1, Wall: 1})
	register(0, 1)
	step(1900*time.Millisecond, FromTracker{Stream: 1, Message: &wire.Heartbeat{}, ReadAt: time.Second})
	step(4900*time.Millisecond, Tick{})
	trackers(4900*time.Millisecond, 1)
	step(5*time.Second, Tick{})
	trackers(5*time.Second, 0)

	register(10*time.Second, 2)
	step(13*time.Second, Tick{ReadUntil: 11 * time.Second}) // late by two seconds
	step(16900*time.Millisecond, Tick{})
	trackers(16900*time.Millisecond, 1)
	if at, ok := c.Wake(); !ok || at != 17*time.Second {
		t.Errorf("the leader wakes at %v, %v", at, ok)
	}
	step(17*time.Second, Tick{})
	trackers(17*time.Second, 0)
}

// TestLeasesOfAlwaysLateLeader: a leader that is late all the time still loses a tracker that is dead,
// and keeps the others.
func TestLeasesOfAlwaysLateLeader(t *testing.T) {
	const lease, late, every = 4 * time.Second, 2 * time.Second, 500 * time.Millisecond
	c := New(Config{ID: "jt", Lease: lease})
	step := stepper(c)
	step(0, Elected{Term: 1, Wall: 1})
	for i, name := range []string{"alive", "dead"} {
		step(0, FromTracker{Stream: Stream(i + 1), Message: &wire.Hello{
			Version: wire.Version, Tracker: name, Process: 1, Host: name, Addr: name + ":1", MapSlots: 1,
		}})
		step(0, FromTracker{Stream: Stream(i + 1), Message: &wire.Inventory{}})
	}
	for read := every; read < 10*lease; read += every {
		step(read+late, FromTracker{Stream: 1, Message: &wire.Heartbeat{}, ReadAt: read})
		step(read+late, Tick{ReadUntil: read})
		_, alive := c.facts.Tracker("alive")
		if _, dead := c.facts.Tracker("dead"); !alive || dead != (read < lease+2*late) {
			t.Fatalf("messages of %v are handled: the tracker that sends is there: %v, the other one: %v", read, alive, dead)
		}
	}
}

// TestMuteTrackerOfAlwaysLateLeader: jobs of a new leader that is late all the time go on, although a tracker
// sends heartbeats and never its inventory.
func TestMuteTrackerOfAlwaysLateLeader(t *testing.T) {
	const lease, late, every = 4 * time.Second, 2 * time.Second, 500 * time.Millisecond
	c := New(Config{ID: "jt", Lease: lease})
	step := stepper(c)
	hello := func(now time.Duration, stream Stream) {
		step(now, FromTracker{Stream: stream, Message: &wire.Hello{
			Version: wire.Version, Tracker: "mute", Process: 1, Host: "h", Addr: "h:1", MapSlots: 1,
		}})
	}
	step(0, Elected{Term: 1, Wall: 1})
	hello(0, 1)
	step(0, Submit{Submission: &wire.Submission{Key: "k", Staging: "mem://s", Plan: wire.Plan{Jobs: []wire.JobPlan{{Name: "n"}}}}})
	const elected = 10 * time.Second
	step(elected, Elected{Term: 2, Wall: 1})
	hello(elected, 2)
	for read := elected + every; read < elected+10*lease; read += every {
		step(read+late, FromTracker{Stream: 2, Message: &wire.Heartbeat{}, ReadAt: read})
		step(read+late, Tick{ReadUntil: read})
		if j := c.leader.order[0]; j.recovering != (read < elected+lease+2*late) {
			t.Fatalf("messages of %v after the election are handled, and the job waits for inventories: %v", read-elected, j.recovering)
		}
		if at, ok := c.Wake(); !ok || at < read {
			t.Fatalf("the leader wakes at %v, %v; messages of %v are handled", at, ok, read)
		}
	}
}
