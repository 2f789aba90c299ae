package compose_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/quernmr/quern/integration/compose/stack"
	"github.com/quernmr/quern/integration/trial"
	"github.com/quernmr/quern/jobtracker/web"
)

// kill kills a service's processes with SIGKILL. Docker does not restart them.
func (c *cluster) kill(service string) {
	c.t.Helper()
	c.docker("kill", "-s", "KILL", c.container(service))
}

func (c *cluster) start(service string) {
	c.t.Helper()
	c.docker("start", c.container(service))
}

// busiestTracker waits until a task tracker runs maps. It returns the tracker with the most maps,
// and their number.
func (c *cluster) busiestTracker() (id string, maps int) {
	c.t.Helper()
	c.await("task tracker that runs maps", func() bool {
		if status := c.leaderStatus(); status != nil {
			for i := range status.Trackers {
				if t := &status.Trackers[i]; t.Maps > maps {
					id, maps = t.ID, t.Maps
				}
			}
		}
		return id != ""
	})
	return id, maps
}

// awaitLost waits until the leader treats a task tracker as lost.
func (c *cluster) awaitLost(id string) {
	c.t.Helper()
	c.await("loss of "+id, func() bool {
		status := c.leaderStatus()
		return status != nil && !slices.ContainsFunc(status.Trackers, func(t web.Tracker) bool { return t.ID == id && t.Connected })
	})
}

// leaderKilled: the next leader adopts the running attempts; none runs twice.
func leaderKilled(c *cluster) {
	j := c.paced(6, "-gate")
	j.AwaitBegan("m", 6)
	old := c.leader()
	c.kill(old)
	c.leader(old)
	j.OpenGate()
	j.checkSuccess()
	j.CheckOnce("m")
	c.start(old)
}

// trackerKilled: only the tasks of that tracker rerun.
func trackerKilled(c *cluster) {
	j := c.paced(6, "-gate")
	j.AwaitBegan("m", 6)
	id, maps := c.busiestTracker()
	c.kill(id)
	j.AwaitBegan("m", 6+maps)
	j.OpenGate()
	j.checkSuccess()
	if n := len(j.Traces("m", "began")); n != 6+maps {
		c.t.Errorf("%d maps have begun, want 6 and %d again", n, maps)
	}
	c.start(id)
}

// dataNodeKilled: a job starts before HDFS notices that a DataNode is dead. It reads and writes
// other replicas.
func dataNodeKilled(c *cluster) {
	c.writeInput()
	j := c.paced(6, "-gate")
	j.AwaitBegan("m", 6)
	c.kill("datanode2")
	c.compareEmbedded("wordcount", "", "-input", inputDir)
	j.OpenGate()
	j.checkSuccess()
	j.CheckOnce("m")
	c.start("datanode2")
}

// leaderPaused: a leader is paused for half a minute, then notices the next leader.
func leaderPaused(c *cluster) {
	j := c.paced(6, "-gate")
	j.AwaitBegan("m", 6)
	old := c.leader()
	c.docker("pause", c.container(old))
	half := time.After(30 * time.Second)
	c.leader(old)
	j.OpenGate()
	j.checkSuccess()
	j.CheckOnce("m")
	c.paced(3).checkSuccess()
	<-half
	c.docker("unpause", c.container(old))
	c.awaitFollower(old)
	c.paced(3).checkSuccess()
}

// awaitFollower waits until a job tracker reports another leader.
func (c *cluster) awaitFollower(id string) {
	c.t.Helper()
	c.await(id+" as a follower", func() bool {
		status := c.statusOf(id)
		return status != nil && !status.IsLeader && status.Leader != "" && status.Leader != id
	})
}

// memoryLimit: an attempt that exceeds its memory limit fails; other attempts and the task
// trackers continue.
func memoryLimit(c *cluster) {
	j := c.paced(4, "-gate")
	j.AwaitBegan("m", 4)
	before := c.startTimes()
	c.put("hdfs:///test/memory", trial.Lines(1))
	c.client("run", "-D", "mapreduce.map.maxattempts=2", "-D", "mapreduce.map.memory.mb=200", "/jobs/faulty",
		"-input", "hdfs:///test/memory", "-output", "hdfs:///test/memory-out", "-at", "map", "-do", "memory").Fail(1, "memory", "200")
	j.OpenGate()
	j.checkSuccess()
	j.CheckOnce("m")
	if after := c.startTimes(); after != before {
		c.t.Errorf("task trackers have restarted: start times are %s, before %s", after, before)
	}
}

// startTimes returns the start time of each task tracker.
func (c *cluster) startTimes() string {
	c.t.Helper()
	var all []string
	for _, id := range stack.TaskTrackers() {
		all = append(all, id+" "+c.inspect(id, "{{.State.StartedAt}} {{.RestartCount}} {{.State.OOMKilled}}"))
	}
	return strings.Join(all, ", ")
}

// diskFull: a task tracker's small disk is full. Its tasks rerun elsewhere, and the tracker
// reports the disk as bad. It uses the disk again when there is room.
func diskFull(c *cluster) {
	c.writeInput()
	disk := fmt.Sprintf("/proc/%s/root/small", c.pid("tt4"))
	fill(c, disk+"/fill")
	j := c.paced(24)
	c.compareEmbedded("sort", "", "-input", inputDir)
	j.checkSuccess()
	c.await("report of the full disk", func() bool {
		seen := c.tracker("tt4")
		return seen != nil && strings.Contains(seen.Trouble, "/small")
	})
	if err := os.Remove(disk + "/fill"); err != nil {
		c.t.Fatal(err)
	}
}

// fill writes until the disk is full.
func fill(c *cluster, name string) {
	c.t.Helper()
	f, err := os.Create(name)
	if err != nil {
		c.t.Fatal(err)
	}
	defer f.Close()
	for chunk := make([]byte, 1<<20); err == nil; {
		_, err = f.Write(chunk)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		c.t.Fatal(err)
	}
}
