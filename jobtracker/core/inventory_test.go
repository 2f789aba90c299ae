package core

import (
	"slices"
	"testing"

	"github.com/quernmr/quern/wire"
)

// TestInventoryTouchesOwnJobs tests that an inventory touches only the jobs that it lists.
func TestInventoryTouchesOwnJobs(t *testing.T) {
	const jobs = 1000
	c := newBigCluster(3, jobs)
	c.elect()
	l := c.core.leader
	touched := func(id Stream, listed ...int) (n int) {
		page := &wire.Inventory{}
		for _, n := range listed {
			task := wire.TaskID{Job: wire.JobID{Start: 1, N: n}, Kind: wire.Map}
			page.Attempts = append(page.Attempts, wire.Report{Attempt: wire.AttemptID{Task: task, N: wire.EpochAttempts}, State: wire.AttemptRunning})
		}
		l.handle(FromTracker{Stream: id, Message: page})
		if !l.fleet.byStream[id].contact.inventoried {
			t.Fatal("the leader has not handled the inventory")
		}
		n = max(len(l.todo.touched), l.assign.Changed())
		c.step(Tick{})
		return n
	}
	if n := touched(c.stream(0)); n != 0 {
		t.Errorf("after a failover, an empty inventory touches %d jobs", n)
	}
	if n := touched(c.stream(1), 5, 7); n != 2 {
		t.Errorf("after a failover, an inventory of 2 jobs touches %d", n)
	}
	if n := touched(c.stream(2)); n != 0 {
		t.Errorf("the last inventory touches %d jobs at once, want none: their recovery ends in pieces", n)
	}
	for l.works.Len() > 0 {
		c.step(Tick{})
	}
	if i := slices.IndexFunc(l.order, func(j *job) bool { return j.recovering }); i >= 0 {
		t.Errorf("after the last inventory, %v still waits for inventories", l.order[i].id)
	}
	c.step(StreamClosed{c.stream(0)})
	reconnected := c.stream(3)
	c.step(FromTracker{Stream: reconnected, Message: &wire.Hello{
		Version: wire.Version, Tracker: "t0", Process: 1, Host: "t0", Addr: "t0", MapSlots: 8, ReduceSlots: 4,
	}})
	if n := touched(reconnected); n != 0 {
		t.Errorf("after a reconnection, an empty inventory touches %d jobs", n)
	}
}

// TestEndedJobsForgotten tests that an ended job is in no list of waiting jobs.
func TestEndedJobsForgotten(t *testing.T) {
	f := newFleet(t, fleetSize{trackers: 1, jobs: 2, maps: fleetSlots, inputRacks: 1}, nil)
	l := f.core.leader
	stream, first, second := l.fleet.byIndex[0].contact.stream, l.jobs[1], l.jobs[2]
	f.step(FromTracker{Stream: stream, Message: &wire.Capacity{MapSlots: fleetSlots}})
	if !slices.Equal(l.todo.noHomeFound, []*job{first, second}) {
		t.Fatalf("%d jobs wait for homes, want 2", len(l.todo.noHomeFound))
	}
	f.step(Kill{Token: 1, Job: second.id})
	for a := range second.attempts.all() {
		f.step(FromTracker{Stream: stream, Message: &wire.Report{Attempt: a.id, State: wire.AttemptSucceeded, Result: &wire.Result{}}})
	}
	if l.jobs[2] != nil || !slices.Equal(l.todo.noHomeFound, []*job{first}) {
		t.Errorf("job 2 is forgotten: %v; %d jobs wait for homes, want 1", l.jobs[2] == nil, len(l.todo.noHomeFound))
	}
}
