package compose_test

import (
	"slices"

	"github.com/quernmr/quern/jobtracker/web"
)

// nameNodeRestarted: running attempts wait for HDFS and continue.
func nameNodeRestarted(c *cluster) {
	j := c.paced(6, "-gate")
	j.AwaitBegan("m", 6)
	c.docker("stop", "-t", "1", c.container("namenode"))
	j.OpenGate()
	c.start("namenode")
	j.checkSuccess()
	j.CheckOnce("m")
}

// rollingRestart: all daemons restart one after the other while jobs run. Each is ready before
// the next one stops.
func rollingRestart(c *cluster) {
	long := c.paced(6, "-gate")
	long.AwaitBegan("m", 6)
	for _, service := range daemons() {
		short := c.paced(8, "-map-time", "300ms")
		short.AwaitBegan("m", 1)
		c.docker("restart", "-t", "20", c.container(service))
		if code := c.inspect(service, "{{.RestartCount}}"); code != "0" {
			c.t.Errorf("%s was restarted by docker %s times", service, code)
		}
		short.checkSuccess()
		c.awaitHealthy()
	}
	long.OpenGate()
	long.checkSuccess()
}

// downAndUp: all containers are removed and created again with the same volumes. The
// cluster knows all acknowledged jobs, and a running job succeeds without its client.
func downAndUp(c *cluster) {
	c.paced(3).checkSuccess()
	j := c.paced(6, "-gate")
	j.AwaitBegan("m", 6)
	var before, after []web.Job
	c.await("list of both jobs", func() bool {
		before = c.list()
		return len(before) >= 2
	})
	running := before[slices.IndexFunc(before, func(j web.Job) bool { return j.State == "running" })].ID
	if err := c.Down(c.ctx, false); err != nil {
		c.t.Fatal(err)
	}
	<-j.Ended
	if err := c.Up(c.ctx); err != nil {
		c.t.Fatal(err)
	}
	c.awaitHealthy()
	c.await("list of jobs after the restart", func() bool {
		after = c.list()
		return len(after) > 0
	})
	for _, known := range before {
		if !slices.ContainsFunc(after, func(j web.Job) bool { return j.ID == known.ID }) {
			c.t.Errorf("the cluster has forgotten %s", known.ID)
		}
	}
	j.OpenGate()
	c.client("wait", running).Succeed()
	j.checkOutput()
}
