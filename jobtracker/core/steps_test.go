package core

import (
	"testing"
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/wire"
)

// Bounds of a Step with 10,000 jobs and 1,000 trackers. A work may exceed the budget if it cannot stop: by a
// quarter of the jobs. To advance the jobs that it has touched, and to place their partitions, may cost as much again.
const (
	maxVisited = 2*stepBudget + largeJobs/4
	maxPlaced  = stepBudget
	maxBytes   = 5 << 20 // a copy of all jobs for the scheduler, or for a forecast
)

// TestStepsAreBounded tests that no Step visits many entries or allocates much, whatever happens, and that
// all works end.
func TestStepsAreBounded(t *testing.T) {
	for _, w := range largeWorlds {
		t.Run(w.name, func(t *testing.T) {
			c := w.make()
			for i, ev := range w.events {
				checkBounds(t, c, &ev, i)
			}
		})
	}
}

// checkBounds tests the Steps of an event.
func checkBounds(t *testing.T, c *largeCluster, ev *largeEvent, i int) {
	largest, steps := c.measure(ev, i)
	t.Logf("%s: %d Steps, at most %d entries, %d jobs placed in lines and %d KiB each; %.1f ms", ev.name, steps, largest.visited, largest.placed, largest.bytes>>10, largest.time.Seconds()*1000)
	if largest.visited > maxVisited || largest.placed > maxPlaced && !ev.placesAll || largest.bytes > maxBytes {
		t.Errorf("%s: a Step visits %d entries, places %d jobs in lines and allocates %d bytes; want at most %d, %d and %d",
			ev.name, largest.visited, largest.placed, largest.bytes, maxVisited, maxPlaced, maxBytes)
	}
	if ev.name == mapEnded.name && largest.placed > 20 {
		t.Errorf("%s: %d jobs are placed in lines", ev.name, largest.placed)
	}
}

// TestStarvingPoolIsBounded tests the same while a pool starves: attempts of others are killed for it.
func TestStarvingPoolIsBounded(t *testing.T) {
	starving := largePool(wire.DefaultPool, pool.Unlimited)
	starving.Min, starving.Preemption = [2]int{500, 0}, &pool.Preemption{MinTimeout: time.Second}
	c := newLargeCluster(largeTrackers, largeJobs, largeJobs/2, starving, largePool("p", pool.Unlimited))
	c.core.cfg.Preemption = true
	checkBounds(t, c, &largeEvent{name: "a pool starves", do: func(c *largeCluster, i int) {
		for range 3 {
			plan.do(c, i)
		}
	}}, 0)
	if c.kills != starving.Min[0] {
		t.Errorf("%d attempts are killed, want %d", c.kills, starving.Min[0])
	}
}

// TestPiecesGoOn tests that all jobs are touched, and all outputs of a lost tracker are dropped, if a
// Step handles few entries. Until then the core asks for a Tick at once.
func TestPiecesGoOn(t *testing.T) {
	const jobs, budget = 50, 7
	c := newLargeCluster(3, jobs, 0)
	l := c.core.leader
	l.works.budget = budget
	lost := l.fleet.trackers["t0000"]
	for _, j := range l.order {
		for m := range j.maps {
			l.chooseOutput(j, lost, &wire.MapOutput{Map: m, Attempt: 1, Digest: 1, Bytes: 1})
		}
	}
	c.settle()
	c.commit(&facts.TrackerLost{Tracker: lost.Name, Incarnation: lost.Incarnation})
	left := func() (n int) {
		for _, w := range l.works.drops {
			n += len(w.refs)
		}
		return n
	}
	ticks := 0
	for before := left(); l.hasWork(); ticks++ {
		if at, ok := c.core.Wake(); !ok || at > c.now {
			t.Fatal("works are left, and the core does not ask for a Tick at once")
		}
		c.step(Tick{})
		if n := before - left(); n > 2*budget {
			t.Fatalf("a Step drops %d outputs", n)
		}
		before = left()
	}
	if least := jobs * largeMaps / budget; ticks < least {
		t.Errorf("%d Ticks, want at least %d", ticks, least)
	}
	for _, j := range l.order {
		for m := range j.maps {
			if x := &j.maps[m]; x.atHand() || !x.runs() && !j.assign.IsPending(m) {
				t.Errorf("%v map %d: its output is at hand: %v; it runs: %v", j.id, m, x.atHand(), x.runs())
			}
		}
	}
	if len(l.works.drops) > 0 {
		t.Errorf("outputs of %d trackers are still being dropped, want none", len(l.works.drops))
	}
}

// TestReturnDuringDrop tests that outputs of a lost tracker that are still to be dropped are not confused with
// those that its next process reports meanwhile.
func TestReturnDuringDrop(t *testing.T) {
	c := newLargeCluster(3, 20, 0)
	l := c.core.leader
	l.works.budget = 3
	lost, j := c.at(0), l.order[19]
	for m := range j.maps {
		l.chooseOutput(j, lost, &wire.MapOutput{Map: m, Attempt: 1, Digest: 1, Bytes: 1})
	}
	c.settle()
	c.lose(0)
	c.restart(0)
	if len(l.works.drops) != 1 {
		t.Fatal("the outputs of the lost tracker are dropped at once")
	}
	l.chooseOutput(j, c.at(0), &wire.MapOutput{Map: largeMaps - 1, Attempt: 1, Digest: 1, Bytes: 1})
	c.settle()
	if x := &j.maps[largeMaps-1]; !x.atHand() {
		t.Error("the output that the tracker reported after its return was dropped")
	}
	if x := &j.maps[0]; x.atHand() {
		t.Error("an output of the lost tracker is at hand")
	}
}

// TestRestartsDuringDrop tests that a tracker which restarts again and again, and is lost then, leaves no work that
// would drop outputs of its last process.
func TestRestartsDuringDrop(t *testing.T) {
	c := newLargeCluster(3, 20, 0)
	l := c.core.leader
	l.works.budget = 3
	j := l.order[19]
	for _, j := range l.order {
		for m := range j.maps {
			l.chooseOutput(j, c.at(0), &wire.MapOutput{Map: m, Attempt: 1, Digest: 1, Bytes: 1})
		}
	}
	c.settle()
	c.restart(0)
	c.restart(0)
	c.lose(0)
	c.restart(0)
	if len(l.works.drops) == 0 {
		t.Fatal("the outputs are dropped at once")
	}
	for _, m := range []int{0, largeMaps - 1} {
		l.chooseOutput(j, c.at(0), &wire.MapOutput{Map: m, Attempt: 2, Digest: 1, Bytes: 1})
	}
	c.settle()
	for m := range j.maps {
		if x := &j.maps[m]; x.atHand() != (m == 0 || m == largeMaps-1) {
			t.Errorf("map %d, its output is at hand: %v", m, x.atHand())
		}
	}
}

// TestInventoryDuringDrop tests that maps rerun if a restarted tracker does not report their outputs, although its
// inventory is read before these outputs are dropped.
func TestInventoryDuringDrop(t *testing.T) {
	c := newLargeCluster(3, 20, 0)
	l := c.core.leader
	l.works.budget = 3
	for _, j := range l.order {
		for m := range j.maps {
			l.chooseOutput(j, c.at(0), &wire.MapOutput{Map: m, Attempt: 1, Digest: 1, Bytes: 1})
		}
	}
	c.settle()
	c.restart(0)
	if len(l.works.drops) != 1 || !c.at(0).contact.inventoried {
		t.Fatal("all outputs are dropped before the inventory is read")
	}
	c.settle()
	for _, j := range l.order {
		for m := range j.maps {
			if x := &j.maps[m]; x.expected || x.atHand() || !x.runs() && !j.assign.IsPending(m) {
				t.Fatalf("%v map %d: its output is expected: %v, at hand: %v; it runs: %v", j.id, m, x.expected, x.atHand(), x.runs())
			}
		}
	}
}

// TestNeededAgain tests that a draining tracker has a needed output again as soon as a home loses what it has
// gathered.
func TestNeededAgain(t *testing.T) {
	c := newLargeCluster(3, 20, 0)
	l := c.core.leader
	c.giveOutputs(0)
	c.settle()
	l.works.budget = 3
	c.gatherAll()
	last := l.order[len(l.order)-1]
	c.commit(&facts.Stopped{Job: last.facts.N(), Outcome: wire.Killed})
	x := c.at(0)
	for l.servesNeeded(x) {
		if !l.hasWork() {
			t.Fatal("no output is needed, and no work finds that out")
		}
		c.step(Tick{})
	}
	l.rehome(l.order[3], 0)
	if !l.servesNeeded(x) {
		t.Error("an output that a new home needs is not")
	}
	c.settle()
	if l.servesNeeded(x); x.drain.needed.by[l.order[3]] == nil {
		t.Error("the outputs that the home needs are not found")
	}
}
