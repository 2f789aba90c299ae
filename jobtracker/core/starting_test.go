package core

import (
	"slices"
	"testing"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/wire"
)

// beginTerm elects the job tracker of a cluster with many jobs again, up to the first piece of its leader.
func beginTerm(t *testing.T, jobs int) *bigCluster {
	c := newBigCluster(2, jobs)
	c.term++
	c.step(Elected{Term: c.term, Wall: 1})
	if c.core.starting == nil || c.core.leader != nil {
		t.Fatalf("the leader of %d jobs is made in one Step", jobs)
	}
	return c
}

func (c *bigCluster) hello(i int) Event {
	name := []string{"t0", "t1"}[i]
	return FromTracker{Stream: c.stream(i), Message: &wire.Hello{
		Version: wire.Version, Tracker: name, Process: 1, Host: name, Addr: name, MapSlots: 8, ReduceSlots: 4,
	}}
}

// TestTermStartsInPieces tests that no Step makes the state of many jobs, that events wait until the leader is
// made, and that it has all jobs and trackers then.
func TestTermStartsInPieces(t *testing.T) {
	const jobs = 2000
	c := beginTerm(t, jobs)
	c.step(c.hello(1))
	c.step(c.hello(0))
	left, placed := len(c.core.starting.jobs), 0
	assigner := c.core.starting.l.assign
	checkPlaced := func() {
		if n := assigner.Placed() - placed; n > stepBudget/2 { // see advanceCost
			t.Fatalf("a Step places %d jobs in lines", n)
		}
		placed = assigner.Placed()
	}
	for c.core.starting != nil {
		if at, ok := c.core.Wake(); !ok || at > 0 {
			t.Fatal("the leader is not made, and the core does not ask for a Tick at once")
		}
		if len(c.core.early) != 2 {
			t.Fatalf("%d events wait, want 2", len(c.core.early))
		}
		c.step(Tick{})
		if s := c.core.starting; s != nil {
			if n := left - len(s.jobs); n > stepBudget/usualJobCost {
				t.Fatalf("a Step makes the state of %d jobs", n)
			}
			left = len(s.jobs)
		}
		checkPlaced()
	}
	for c.core.leader.hasWork() {
		c.step(Tick{})
		checkPlaced()
	}
	l := c.core.leader
	if len(l.order) != jobs || len(l.fleet.byStream) != 2 || len(c.core.early) != 0 {
		t.Errorf("the leader has %d jobs and %d streams, and %d events wait; want %d, 2 and 0", len(l.order), len(l.fleet.byStream), len(c.core.early), jobs)
	}
}

// TestEntryWaitsForStart tests that an entry waits until the leader is made, and is applied then, also if the job
// tracker is deposed meanwhile, and that a leader of a later term is followed at once.
func TestEntryWaitsForStart(t *testing.T) {
	drains := func(c *bigCluster) bool {
		_, drains := c.core.facts.Draining("t0")
		return drains
	}
	c := beginTerm(t, 2000)
	c.commit(&facts.Drain{N: 1, Tracker: "t0"})
	if c.core.leader != nil || drains(c) {
		t.Fatal("the entry does not wait")
	}
	c.step(c.hello(0))
	for c.core.starting != nil || len(c.core.early) > 0 {
		c.step(Tick{})
	}
	if l := c.core.leader; !drains(c) || l.fleet.trackers["t0"].drain.n != 1 || !l.fleet.trackers["t0"].outOfService() {
		t.Error("the leader does not know the entry")
	}

	c = beginTerm(t, 2000)
	c.commit(&facts.Drain{N: 1, Tracker: "t0"})
	c.core.Step(0, Deposed{})
	if !drains(c) || c.core.Applied() != c.index {
		t.Error("a deposed job tracker has not applied the entry that waited")
	}

	c = beginTerm(t, 2000)
	c.commit(&facts.Drain{N: 1, Tracker: "t0"})
	c.term++
	c.commit(&facts.LeaderElected{Leader: "b"})
	if !drains(c) || c.core.IsLeader() || c.core.starting != nil || c.core.Epoch() != c.term {
		t.Error("after the entry of a later term the job tracker does not follow, or has lost the one before")
	}
}

// TestDeposedWhileStarting tests that streams with waiting events are closed once if the term ends.
func TestDeposedWhileStarting(t *testing.T) {
	c := beginTerm(t, 2000)
	c.step(c.hello(1))
	c.step(FromTracker{Stream: c.stream(1), Message: &wire.Inventory{}})
	commands := c.core.Step(0, Deposed{})
	if want := []Command{CloseStream{Stream: c.stream(1)}}; !slices.Equal(commands, want) {
		t.Errorf("commands %v, want %v", commands, want)
	}
	if _, ok := c.core.Wake(); ok || c.core.starting != nil {
		t.Error("a deposed job tracker goes on to make its leader")
	}
}

// TestStartHoldsEffects tests that no effect begins before the leader is made: the owner of a job tracker that
// does not lead skips effects.
func TestStartHoldsEffects(t *testing.T) {
	const jobs = 2000
	c := newBigCluster(2, jobs)
	c.core.cfg.History = true
	c.commit(
		&facts.Submitted{Submission: wire.Submission{Key: "ended", Staging: "s", Plan: wire.Plan{Jobs: []wire.JobPlan{{Name: "n"}}}}},
		&facts.SplitsWritten{Job: jobs + 1, Maps: 0},
		&facts.Committing{Job: jobs + 1},
		&facts.Ended{Job: jobs + 1, Outcome: wire.Succeeded},
	)
	c.term++
	c.step(Elected{Term: c.term, Wall: 1})
	for c.core.starting != nil {
		commands := c.core.Step(0, Tick{})
		i := slices.IndexFunc(commands, func(x Command) bool { _, ok := x.(LoadHistory); return ok })
		if leads := c.core.IsLeader(); leads != (i >= 0) {
			t.Fatalf("leads: %v; it reads the profile of an ended job: %v", leads, i >= 0)
		}
	}
}
