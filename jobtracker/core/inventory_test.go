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
	for l.hasWork() {
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

// TestInventoryPages tests that the leader handles each page of an inventory when it comes, and keeps only
// what it must know at the end: which of its own attempts and homes were listed.
func TestInventoryPages(t *testing.T) {
	c := newBigCluster(2, 10)
	c.elect()
	l, stream := c.core.leader, c.stream(0)
	running := func(job, n int) wire.Report {
		task := wire.TaskID{Job: wire.JobID{Start: 1, N: job}, Kind: wire.Map, N: n}
		return wire.Report{Attempt: wire.AttemptID{Task: task, N: wire.EpochAttempts}, State: wire.AttemptRunning}
	}
	home := func(job int) wire.HomeReport {
		return wire.HomeReport{Job: wire.JobID{Start: 1, N: job}, Generation: wire.Generation{Epoch: 1, N: 1}, Maps: 4}
	}
	pages := []*wire.Inventory{
		{Homes: []wire.HomeReport{home(3)}, Attempts: []wire.Report{running(3, 0), running(3, 1)}, More: true},
		{Homes: []wire.HomeReport{home(4)}, Attempts: []wire.Report{running(4, 0)}, More: true},
		{Homes: []wire.HomeReport{home(50)}, Attempts: []wire.Report{running(60, 0)}, Jobs: []wire.JobID{{Start: 1, N: 70}}, More: true},
		{Attempts: []wire.Report{running(5, 0)}},
	}
	x := l.fleet.byStream[stream]
	for i, want := range []int{2, 3, 3, 4} {
		c.step(FromTracker{Stream: stream, Message: pages[i]})
		if len(x.attempts) != want || x.usable() != (i == 3) {
			t.Errorf("after page %d, %d attempts are known, want %d; usable: %v", i+1, len(x.attempts), want, x.usable())
		}
	}
	if l.jobs[3].partitions.homes[0].tracker != x || l.jobs[4].partitions.homes[0].tracker != x {
		t.Error("homes of earlier pages are forgotten")
	}
	// On the next stream, the tracker lists less: the others are lost.
	c.step(StreamClosed{stream})
	stream = c.stream(1000)
	c.step(FromTracker{Stream: stream, Message: &wire.Hello{
		Version: wire.Version, Tracker: x.Name, Process: 1, Host: x.Host, Addr: x.Addr, MapSlots: 8, ReduceSlots: 4,
	}})
	for n := range 1000 {
		for _, page := range []*wire.Inventory{pages[0], {Homes: []wire.HomeReport{home(100 + n)}, Attempts: []wire.Report{running(100+n, 0)}, More: true}} {
			c.step(FromTracker{Stream: stream, Message: page})
		}
	}
	if n := len(x.contact.listed.homes) + len(x.contact.listed.attempts); n != 3 {
		t.Errorf("the leader remembers %d listed homes and attempts, want 3", n)
	}
	c.step(FromTracker{Stream: stream, Message: &wire.Inventory{}})
	if len(x.attempts) != 2 || x.contact.listed.homes != nil {
		t.Errorf("%d attempts are known after the second inventory, want 2", len(x.attempts))
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
