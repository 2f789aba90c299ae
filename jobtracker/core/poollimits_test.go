package core

import (
	"fmt"
	"testing"

	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/wire"
)

// TestHeldInPieces tests that a user runs no more jobs than the limit, although one begins to run while the leader
// decides, in pieces, that another one may.
func TestHeldInPieces(t *testing.T) {
	table := pool.Table{From: "f", Users: []pool.UserLimit{{Name: "u", MaxRunning: 1}}}
	c := newOwnedCluster(1, 30, table, func(i int) (owner, pool string) {
		if i == 20 || i == 21 {
			return "u", ""
		}
		return "v", ""
	})
	l := c.core.leader
	l.works.budget = 7
	first, second := l.order[20], l.order[21]
	for i := range 20 {
		c.suspend(1+i, true) // only the first job and the second one of the user may run
	}
	c.settle()
	c.suspend(20, false)
	for l.works.holding != nil && l.works.holding.why == nil {
		c.step(Tick{})
	}
	if l.works.holding == nil || second.heldBy != "" || second.runs() {
		t.Fatalf("no decision is under way, or the second job is held (%q) or runs", second.heldBy)
	}
	c.endMap()
	if !second.runs() {
		t.Fatal("the second job does not run")
	}
	c.settle()
	for range 7 {
		c.endMap()
	}
	if first.runs() || !second.runs() || first.heldBy == "" {
		t.Errorf("the first job runs: %v, the second one: %v; want only the second one", first.runs(), second.runs())
	}
}

// TestUsersLeave tests that limits of users without jobs are not kept for ever, and that limits hold afterwards.
func TestUsersLeave(t *testing.T) {
	table := pool.Table{From: "f", Users: []pool.UserLimit{{MaxRunning: 1}}}
	c := newOwnedCluster(1, 30, table, func(int) (owner, pool string) { return "u", "" })
	c.settle()
	l := c.core.leader
	for i := range 2 * minKept {
		l.sharing.limits.holder.Limits(fmt.Sprint(i), wire.DefaultPool)
	}
	l.holdJobs()
	if n := l.sharing.limits.holder.Kept(); n != 1 {
		t.Errorf("limits of %d users are kept, want 1", n)
	}
	c.settle()
	for _, j := range l.order[1:] {
		if j.heldBy == "" {
			t.Errorf("%v is not held", j.id)
		}
	}
}
