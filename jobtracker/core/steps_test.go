package core

import (
	"testing"
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/wire"
)

// Bounds of a Step with 10,000 jobs and 1,000 trackers. An event touches few jobs, apart from works. A work may
// exceed the budget if it cannot stop: by a quarter of the jobs.
const (
	maxVisited = stepBudget + largeJobs/4
	maxBytes   = 9 << 20
)

// TestStepsAreBounded tests that no Step visits all jobs or allocates much, whatever happens, and that
// all works end.
func TestStepsAreBounded(t *testing.T) {
	c := newLargeCluster(largeTrackers, largeJobs, largeJobs/2, largePool("p", 100))
	for i, ev := range largeEvents {
		placed := c.core.leader.assign.Placed()
		largest, steps := c.measure(func() { ev.do(c, i) })
		placed = c.core.leader.assign.Placed() - placed
		t.Logf("%s: %d Steps, at most %d entries and %d KiB each; %d jobs placed in lines", ev.name, steps, largest.visited, largest.bytes>>10, placed)
		if largest.visited > maxVisited || largest.bytes > maxBytes {
			t.Errorf("%s: a Step visits %d entries and allocates %d bytes; want at most %d and %d", ev.name, largest.visited, largest.bytes, maxVisited, maxBytes)
		}
		if ev.name == "map ended" && placed > 20 {
			t.Errorf("after the end of a map in a pool at its maximum, %d jobs are placed in lines", placed)
		}
		if ev.undo != nil {
			ev.undo(c, i)
			c.settle()
		}
	}
}

// TestStarvingPoolIsBounded tests the same while a pool starves: attempts of others are killed for it.
func TestStarvingPoolIsBounded(t *testing.T) {
	starving := largePool(wire.DefaultPool, pool.Unlimited)
	starving.Min, starving.Preemption = [2]int{500, 0}, &pool.Preemption{MinTimeout: time.Second}
	c := newLargeCluster(largeTrackers, largeJobs, largeJobs/2, starving, largePool("p", pool.Unlimited))
	c.core.cfg.Preemption = true
	largest, steps := c.measure(func() {
		for range 3 {
			c.now += time.Second
			c.step(Tick{})
			c.settle()
			c.answerPlans()
		}
	})
	t.Logf("%d Steps, at most %d entries and %d KiB each, %v; %d attempts killed", steps, largest.visited, largest.bytes>>10, largest.time, c.kills)
	if c.kills != starving.Min[0] {
		t.Errorf("%d attempts are killed, want %d", c.kills, starving.Min[0])
	}
	if largest.visited > maxVisited || largest.bytes > maxBytes {
		t.Errorf("a Step visits %d entries and allocates %d bytes; want at most %d and %d", largest.visited, largest.bytes, maxVisited, maxBytes)
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
	ticks := 0
	for ; l.works.Len() > 0; ticks++ {
		if at, ok := c.core.Wake(); !ok || at > c.now {
			t.Fatal("works are left, and the core does not ask for a Tick at once")
		}
		c.step(Tick{})
		if l.works.visited > 2*budget+jobs {
			t.Fatalf("a Step visits %d entries", l.works.visited)
		}
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

// TestReturnFinishesDrop tests that the outputs of a lost tracker are all dropped before a tracker with
// its name can report outputs.
func TestReturnFinishesDrop(t *testing.T) {
	c := newLargeCluster(3, 20, 0)
	l := c.core.leader
	l.works.budget = 3
	lost, j := l.fleet.trackers["t0000"], l.order[19]
	for m := range j.maps {
		l.chooseOutput(j, lost, &wire.MapOutput{Map: m, Attempt: 1, Digest: 1, Bytes: 1})
	}
	c.settle()
	c.commit(&facts.TrackerLost{Tracker: lost.Name, Incarnation: lost.Incarnation})
	c.connect(0, 2)
	back := l.fleet.trackers["t0000"]
	l.chooseOutput(j, back, &wire.MapOutput{Map: largeMaps - 1, Attempt: 1, Digest: 1, Bytes: 1})
	c.settle()
	if x := &j.maps[largeMaps-1]; !x.atHand() {
		t.Error("the output that the tracker reported after its return was dropped")
	}
	if x := &j.maps[0]; x.atHand() {
		t.Error("an output of the lost tracker is at hand")
	}
}

// TestLossFinishesDrop tests that a tracker which restarts and is lost at once leaves no work that would drop
// outputs of its next process.
func TestLossFinishesDrop(t *testing.T) {
	c := newLargeCluster(3, 20, 0)
	l := c.core.leader
	l.works.budget = 3
	old, j := l.fleet.trackers["t0000"], l.order[19]
	for _, j := range l.order {
		for m := range j.maps {
			l.chooseOutput(j, old, &wire.MapOutput{Map: m, Attempt: 1, Digest: 1, Bytes: 1})
		}
	}
	c.settle()
	again := old.Tracker
	again.Process++
	c.commit(&facts.TrackerRegistered{Tracker: again})
	restarted := l.fleet.trackers["t0000"]
	if restarted == old || len(l.works.drops) != 1 {
		t.Fatal("the tracker has not restarted, or its outputs are dropped already")
	}
	c.commit(&facts.TrackerLost{Tracker: restarted.Name, Incarnation: restarted.Incarnation})
	c.connect(0, again.Process+1)
	for _, m := range []int{0, largeMaps - 1} {
		l.chooseOutput(j, l.fleet.trackers["t0000"], &wire.MapOutput{Map: m, Attempt: 2, Digest: 1, Bytes: 1})
	}
	c.settle()
	for _, m := range []int{0, largeMaps - 1} {
		if !j.maps[m].atHand() {
			t.Errorf("the output of map %d, which the tracker reported after its return, was dropped", m)
		}
	}
}
