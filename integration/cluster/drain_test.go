package cluster_test

import (
	"strings"
	"testing"

	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/integration/trial"
	"github.com/quernmr/quern/jobtracker/web"
)

// drainOf returns the leader's status of a draining task tracker; nil: none.
func (c *cluster) drainOf(d *processes.Daemon) *web.Drain {
	status, err := c.client.Cluster(c.ctx)
	if err != nil {
		return nil
	}
	return status.Drain(d.ID)
}

// Row 37. Two of three trackers are drained during a job: one runs the last map, the other only
// has map outputs. Both exit with status 0 when the third has gathered all partitions. No task
// reruns.
func TestDrained(t *testing.T) {
	c := start(t)
	c.mrsubmit("cluster", "drain", "tt9").Fail(1, `unknown task tracker "tt9"`)
	j, busy := startAllButOne(c)
	var idle *processes.Daemon
	for _, d := range c.TaskTrackers {
		if d != busy {
			idle = d
		}
	}
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
	j = c.paced(4, "-gate")
	j.AwaitBegan("m", 2)
	if n := c.mapsOn(idle); n != 0 {
		t.Errorf("%d maps run on a drained tracker", n)
	}
	c.checkExplain("map slots stay empty on draining trackers: " + idle.ID)
	c.mrsubmit("cluster", "undrain", idle.ID).Succeed()
	j.AwaitBegan("m", 4)
	c.await("maps on the recommissioned tracker", func() bool { return c.mapsOn(idle) > 0 })
	j.OpenGate()
	j.checkSuccess()
	j.CheckOnce("m")
	if x := c.drainOf(busy); x == nil || !x.Drained || x.Registered {
		t.Errorf("%s has exited, but its status is %+v", busy.ID, x)
	}
}
