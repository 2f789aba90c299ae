package cluster_test

import (
	"strings"
	"testing"

	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/integration/trial"
	"github.com/quernmr/quern/jobtracker/web"
)

// drains returns the leader's status of a draining task tracker; nil: it has none.
func (c *cluster) drains(d *processes.Daemon) *web.Drain {
	status, err := c.client.Cluster(c.ctx)
	if err != nil {
		return nil
	}
	return status.Drain(d.ID)
}

// Row 37. Two of three trackers are drained during a job: one runs its last map, the
// other only has map outputs. Both exit with status 0 when the third has gathered all
// partitions, and nothing runs twice.
func TestDrained(t *testing.T) {
	c := start(t)
	c.mrsubmit("cluster", "drain", "tt9").Fail(1, `unknown task tracker "tt9"`)
	j, busy := holding(c)
	var idle *processes.Daemon
	for _, d := range c.TaskTrackers {
		if d != busy {
			idle = d
		}
	}
	var waits []*trial.Run
	for _, d := range []*processes.Daemon{busy, idle} {
		waits = append(waits, c.mrsubmit("cluster", "drain", d.ID, "-wait"))
		c.await("word of what is needed of "+d.ID, func() bool {
			x := c.drains(d)
			return x != nil && x.Needs != "" && !strings.Contains(x.Needs, "at home")
		})
	}
	if said := c.mrsubmit("cluster").Succeed(); !trial.ContainsAll(said, []string{"draining: 1 attempt", " of job_"}) {
		t.Errorf("the cluster says\n%s", said)
	}
	j.Open()
	j.correct()
	j.Once("m")
	j.Once("r")
	for i, d := range []*processes.Daemon{busy, idle} {
		waits[i].Succeed()
		if code, err := d.Ended(c.ctx); err != nil || code != 0 || !d.Said("drained") {
			t.Errorf("%s ended with %d, %v", d.ID, code, err)
		}
	}

	// A drained tracker that restarts registers, and gets no attempts until recommissioned.
	if err := idle.Start(); err != nil {
		t.Fatal(err)
	}
	c.await("drained tracker", func() bool { x := c.drains(idle); return x != nil && x.Drained && x.Registered })
	j = c.paced(4, "-gate")
	j.Began("m", 2)
	if n := c.maps(idle); n != 0 {
		t.Errorf("%d maps run on a tracker that is drained", n)
	}
	ids := jobID.FindAllString(c.mrsubmit("list").Succeed(), -1)
	if said := c.mrsubmit("explain", ids[len(ids)-1]).Succeed(); !strings.Contains(said, "map slots stay empty on draining trackers: "+idle.ID) {
		t.Errorf("explain says\n%s", said)
	}
	c.mrsubmit("cluster", "undrain", idle.ID).Succeed()
	j.Began("m", 4)
	c.await("work for the tracker that was drained", func() bool { return c.maps(idle) > 0 })
	j.Open()
	j.correct()
	j.Once("m")
	if x := c.drains(busy); x == nil || !x.Drained || x.Registered {
		t.Errorf("%s, which has left, is said to be %+v", busy.ID, x)
	}
}
