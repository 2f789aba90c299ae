package cluster_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/integration/trial"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/wire"
)

// drainOf returns the leader's status of a draining task tracker; nil: none.
func (c *cluster) drainOf(d *processes.Daemon) *web.Drain {
	status, err := c.client.Cluster(c.ctx)
	if err != nil {
		return nil
	}
	return status.Drain(d.ID)
}

// trackerWithOutputs waits until the leader knows a finished map on a tracker other than the given one, and
// returns it. There is only one job.
func (c *cluster) trackerWithOutputs(except *processes.Daemon) (found *processes.Daemon) {
	c.t.Helper()
	c.await("tracker with map outputs", func() bool {
		jobs, err := c.client.Jobs(c.ctx, core.Query{})
		if err != nil || len(jobs) != 1 {
			return false
		}
		id, err := wire.ParseJobID(jobs[0].ID)
		if err != nil {
			c.t.Fatal(err)
		}
		attempts, err := c.client.Attempts(c.ctx, id)
		if err != nil {
			return false
		}
		for _, d := range c.TaskTrackers {
			if d != except && slices.ContainsFunc(attempts.Items, func(a web.Attempt) bool {
				return a.Tracker == d.ID && a.State == "succeeded" && strings.Contains(a.ID, "_m_")
			}) {
				found = d
			}
		}
		return found != nil
	})
	return found
}

// Row 37. Two of three trackers are drained during a job: one runs the last map, the other only
// has map outputs. Both exit with status 0 when the third has gathered all partitions. No task
// reruns. With one slot, the waiting map's tracker runs no other one.
func TestDrained(t *testing.T) {
	c := start(t, func(cfg *processes.Config) { cfg.MapSlots = 1 })
	c.mrsubmit("cluster", "drain", "tt9").Fail(1, `unknown task tracker "tt9"`)
	j, busy := startAllButOne(c)
	idle := c.trackerWithOutputs(busy) // one without any would be drained at once
	var waits []*trial.Run
	for _, d := range []*processes.Daemon{busy, idle} {
		waits = append(waits, c.mrsubmit("cluster", "drain", d.ID, "-wait"))
		c.await("status of the drain of "+d.ID, func() bool {
			x := c.drainOf(d)
			return x != nil && x.Needs != "" && !strings.Contains(x.Needs, "at home")
		})
	}
	if printed := c.mrsubmit("cluster").Succeed(); !trial.ContainsAll(printed, []string{"draining: 1 attempt", " of job_"}) {
		t.Errorf("mrsubmit cluster prints\n%s", printed)
	}
	j.OpenGate()
	j.checkSuccess()
	j.CheckOnce("m")
	j.CheckOnce("r")
	for i, d := range []*processes.Daemon{busy, idle} {
		waits[i].Succeed()
		if code, err := d.Ended(c.ctx); err != nil || code != 0 || !d.Logged("drained") {
			t.Errorf("%s ended with %d, %v", d.ID, code, err)
		}
	}

	// A drained tracker that restarts registers, and gets no attempts until recommissioned.
	if err := idle.Start(); err != nil {
		t.Fatal(err)
	}
	c.await("drained tracker", func() bool { x := c.drainOf(idle); return x != nil && x.Drained && x.Registered })
	j = c.paced(2, "-gate")
	j.AwaitBegan("m", 1)
	if n := c.mapsOn(idle); n != 0 {
		t.Errorf("%d maps run on a drained tracker", n)
	}
	c.checkExplain("map slots stay empty on draining trackers: " + idle.ID)
	c.mrsubmit("cluster", "undrain", idle.ID).Succeed()
	j.AwaitBegan("m", 2)
	c.await("maps on the recommissioned tracker", func() bool { return c.mapsOn(idle) > 0 })
	j.OpenGate()
	j.checkSuccess()
	j.CheckOnce("m")
	if x := c.drainOf(busy); x == nil || !x.Drained || x.Registered {
		t.Errorf("%s has exited, but its status is %+v", busy.ID, x)
	}
}
