package core

import (
	"testing"
	"time"

	"github.com/quernmr/quern/jobtracker/core/pastplans"
	"github.com/quernmr/quern/wire"
)

// TestPastPlans: a sample has the slots of each job in a new plan, and those that it has. Without jobs there is
// one sample without entries.
func TestPastPlans(t *testing.T) {
	c := newLargeCluster(1, 3, 0) // 8 map slots: the first job has them all
	plan := func() {
		c.now += pastplans.Every
		c.step(Tick{})
		c.settle()
		c.answerPlans()
	}
	plan()
	c.now += pastplans.Every / 2
	c.step(Tick{})
	c.settle()
	c.answerPlans() // too soon for a sample
	plan()
	maps := c.core.PastPlans()[mapPhase]
	if len(maps.Samples) != 2 || maps.Since != 0 {
		t.Fatalf("%d samples since %d, want 2", len(maps.Samples), maps.Since)
	}
	s := maps.Samples[1]
	if s.Slots != largeMaps || len(s.Entries) != 3 || s.At-maps.Samples[0].At < pastplans.Every.Milliseconds() {
		t.Errorf("%+v at %d after %d", s, s.At, maps.Samples[0].At)
	}
	planned, used := int32(0), int32(0)
	for _, e := range s.Entries {
		planned, used = planned+e.Planned, used+e.Used
		if e.Job != maps.Samples[0].Entries[0].Job && e.ID == maps.Samples[0].Entries[0].ID {
			t.Errorf("%v has two values", e.ID)
		}
	}
	if planned != 3 || used != largeMaps {
		t.Errorf("%d slots are planned and %d used, want 3 and %d", planned, used, largeMaps)
	}
	for len(c.running) > 0 {
		c.endMap()
	}
	for _, j := range c.core.leader.order {
		c.core.leader.stopJob(j, wire.Killed, "enough")
	}
	c.settle()
	c.now += time.Minute
	c.step(Tick{})
	c.settle()
	maps = c.core.PastPlans()[mapPhase]
	if last := maps.Samples[len(maps.Samples)-1]; len(last.Entries) != 0 || len(maps.Samples) < 3 {
		t.Errorf("after all jobs the last of %d samples has %d jobs", len(maps.Samples), len(last.Entries))
	}
}
