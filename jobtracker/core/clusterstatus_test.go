package core

import (
	"maps"
	"testing"

	"github.com/quernmr/quern/jobtracker/core/assign"
	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/wire"
)

// checkUses compares what the assigner counts for each pool with a count of the jobs.
func checkUses(c *Core, fail func(string, ...any)) {
	if c.leader == nil {
		return
	}
	want := make(map[string]assign.PoolUse)
	for _, j := range c.leader.order {
		u := want[poolName(j.facts.Submission())]
		u.Jobs++
		for phase := range u.Slots {
			u.Slots[phase] += j.assign.UsedSlots(phase)
			if j.plannable() {
				u.Waiting[phase] += c.leader.toLaunch(j, phase)
			}
		}
		want[poolName(j.facts.Submission())] = u
	}
	got := c.leader.assign.PoolUses()
	if c.leader.assign.Changed() > 0 { // the next round counts what waits
		for _, uses := range []map[string]assign.PoolUse{got, want} {
			for name, u := range uses {
				u.Waiting = [2]int{}
				uses[name] = u
			}
		}
	}
	if !maps.Equal(got, want) {
		fail("pools use %v, want %v", got, want)
	}
}

// TestClusterView tests that a view of the cluster shows its moment, whatever happens before the status is
// made from it. While it is copied, the number of jobs does not matter.
func TestClusterView(t *testing.T) {
	var allocated [2]float64
	for i, jobs := range []int{20, 500} {
		c := newLargeCluster(3, jobs, jobs/2, largePool("p", 5))
		allocated[i] = testing.AllocsPerRun(5, func() { c.core.ClusterView(c.now) })
		view := c.core.ClusterView(c.now)
		n, _ := c.core.facts.Pools()
		c.commit(&facts.PoolsChanged{N: n + 1, Table: pool.Table{From: "f", Pools: []pool.Pool{largePool("q", 7)}}})
		c.commit(&facts.Stopped{Job: jobs, Outcome: wire.Killed})
		c.endMap()
		s := view()
		var in, other wire.PoolStatus
		for _, p := range s.InPools {
			switch p.Name {
			case "p":
				in = p
			case wire.DefaultPool:
				other = p
			default:
				t.Errorf("there is a pool %s", p.Name)
			}
		}
		if in.Jobs != jobs/2 || in.Removed || in.Max[mapPhase] != 5 || in.Running[mapPhase] != 5 || other.Jobs != jobs/2 || other.Running[mapPhase] != 3*largeMaps-5 || s.Jobs != jobs {
			t.Errorf("%d jobs, of them in pools: %+v and %+v", s.Jobs, in, other)
		}
		if len(s.Trackers) != 3 || s.Trackers[0].Tracker != "t0000" || s.Trackers[2].Tracker != "t0002" {
			t.Errorf("trackers %+v", s.Trackers)
		}
	}
	if allocated[1] > 2*allocated[0] {
		t.Errorf("a view allocates %v times with few jobs, and %v times with many", allocated[0], allocated[1])
	}
}

// BenchmarkClusterView measures the part of a cluster's status that runs on the loop of a job tracker.
func BenchmarkClusterView(b *testing.B) {
	c := newLargeCluster(largeTrackers, largeJobs, largeJobs/2, largePool("p", 100))
	b.ReportAllocs()
	for b.Loop() {
		c.core.ClusterView(c.now)
	}
}
