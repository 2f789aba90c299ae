package core

import (
	"slices"
	"testing"

	"github.com/quernmr/quern/wire"
)

// TestInventoryTouches: an inventory touches only its own jobs, however many others exist.
func TestInventoryTouches(t *testing.T) {
	const jobs = 1000
	c := newBigCluster(3, jobs)
	c.elect()
	l := c.core.live
	looked := func(id Stream, about ...int) (n int) {
		page := &wire.Inventory{}
		for _, n := range about {
			task := wire.TaskID{Job: wire.JobID{Start: 1, N: n}, Kind: wire.Map}
			page.Attempts = append(page.Attempts, wire.Report{Attempt: wire.AttemptID{Task: task, N: wire.EpochAttempts}, State: wire.AttemptRunning})
		}
		l.handle(FromTracker{Stream: id, Message: page})
		if !l.fleet.bound[id].contact.inventoried {
			t.Fatal("the inventory is not handled")
		}
		n = max(len(l.todo.dirty), l.assign.Changed())
		c.step(Tick{})
		return n
	}
	if n := looked(c.stream(0)); n != 0 {
		t.Errorf("after a failover, an empty inventory touches %d jobs", n)
	}
	if n := looked(c.stream(1), 5, 7); n != 2 {
		t.Errorf("after a failover, an inventory of 2 jobs touches %d", n)
	}
	if n := looked(c.stream(2)); n != jobs {
		t.Errorf("the last inventory releases %d jobs, want %d", n, jobs)
	}
	c.step(StreamClosed{c.stream(0)})
	again := c.stream(3)
	c.step(FromTracker{Stream: again, Message: &wire.Hello{
		Version: wire.Version, Tracker: "t0", Process: 1, Host: "t0", Addr: "t0", MapSlots: 8, ReduceSlots: 4,
	}})
	if n := looked(again); n != 0 {
		t.Errorf("after a reconnection, an empty inventory touches %d jobs", n)
	}
}

// TestEndedJobsForgotten: no list of waiting jobs keeps an ended one.
func TestEndedJobsForgotten(t *testing.T) {
	f := newFleet(t, fleetSize{trackers: 1, jobs: 2, maps: fleetSlots, part: 1}, nil)
	l := f.core.live
	stream, first, second := l.fleet.byIndex[0].contact.stream, l.jobs[1], l.jobs[2]
	f.step(FromTracker{Stream: stream, Message: &wire.Capacity{MapSlots: fleetSlots}})
	if !slices.Equal(l.todo.noHomeFound, []*job{first, second}) {
		t.Fatalf("%d jobs wait for homes", len(l.todo.noHomeFound))
	}
	f.step(Kill{Token: 1, Job: second.id})
	for a := range second.attempts.all() {
		f.step(FromTracker{Stream: stream, Message: &wire.Report{Attempt: a.id, State: wire.AttemptSucceeded, Result: &wire.Result{}}})
	}
	if l.jobs[2] != nil || !slices.Equal(l.todo.noHomeFound, []*job{first}) {
		t.Errorf("job 2 has ended: %v; %d jobs wait for homes", l.jobs[2] == nil, len(l.todo.noHomeFound))
	}
}
