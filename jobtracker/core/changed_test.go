package core

import (
	"reflect"
	"slices"
	"testing"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/wire"
)

// statusCheck checks that Changed lists each job with a status that a Step has changed, except for the parts
// that Changed leaves out.
type statusCheck struct {
	leader *leader
	last   map[wire.JobID]wire.JobStatus
}

func (x *statusCheck) check(c *Core, fail func(format string, args ...any)) {
	statuses := make(map[wire.JobID]wire.JobStatus)
	for f := range c.facts.Jobs() {
		s := c.statusOf(f, c.now)
		s.Elapsed, s.WaitReason = 0, ""
		statuses[s.ID] = s
		checkFetched(c, s.ID, fail)
	}
	if x.leader == c.leader && c.leader != nil {
		for id, s := range statuses {
			if last, ok := x.last[id]; ok && !last.State.Ended() && !slices.Contains(c.Changed(), id) && !reflect.DeepEqual(last, s) {
				fail("the status of %v has changed, but Changed does not list it:\n%+v\n%+v", id, last, s)
			}
		}
	}
	x.leader, x.last = c.leader, statuses
}

// checkFetched compares the bytes that a job's homes have gathered with the sum of their reports.
func checkFetched(c *Core, id wire.JobID, fail func(format string, args ...any)) {
	if c.leader == nil || c.leader.job(id) == nil {
		return
	}
	j, sum := c.leader.job(id), int64(0)
	for i := range j.partitions.homes {
		sum += j.partitions.homes[i].report.Bytes
	}
	if sum != j.outputs.fetched {
		fail("homes of %v have gathered %d bytes, not %d", id, sum, j.outputs.fetched)
	}
}

// TestChangedOfOthers: progress of a job lists that job as changed, and no other. A heartbeat without
// progress lists none.
func TestChangedOfOthers(t *testing.T) {
	const trackers, jobs = 10, 1000
	c := newBigCluster(trackers, jobs)
	c.elect()
	id := wire.JobID{Start: 1, N: 7}
	running := func(bytes int) []wire.Report {
		task := wire.TaskID{Job: id, Kind: wire.Map}
		return []wire.Report{{
			Attempt: wire.AttemptID{Task: task, N: wire.EpochAttempts}, State: wire.AttemptRunning, Bytes: wire.Progress{Done: int64(bytes), Total: 99},
		}}
	}
	for i := range trackers {
		c.step(FromTracker{Stream: c.stream(i), Message: &wire.Inventory{Attempts: running(0)[:1-min(i, 1)]}})
	}
	c.settle()
	for i := range 100 {
		for done, want := range [][]wire.JobID{{id}, nil} {
			c.core.Step(0, FromTracker{Stream: c.stream(0), Message: &wire.Heartbeat{Attempts: running(i + 1)}})
			if got := c.core.Changed(); !slices.Equal(got, want) {
				t.Fatalf("heartbeat %d, repeated %d times: %v have changed, want %v", i, done, got, want)
			}
		}
	}
}

// TestChangedNew: Changed lists the jobs of a new submission, and lists have their times.
func TestChangedNew(t *testing.T) {
	c := newBigCluster(1, 2)
	flow := wire.Submission{Key: "flow", Staging: "s", Plan: wire.Plan{Jobs: []wire.JobPlan{{Name: "a", Output: "a"}, {Name: "b", Output: "b"}}}}
	c.commit(&facts.Submitted{At: 1234, Submission: flow})
	ids := []wire.JobID{{Start: 1, N: 3}, {Start: 1, N: 4}}
	if got := c.core.Changed(); !slices.Equal(got, ids) {
		t.Errorf("after a submission %v have changed, want %v", got, ids)
	}
	list := c.core.Listed(0, append(ids, wire.JobID{Start: 1, N: 9}))
	if len(list) != 2 || list[0].Name != "a" || list[1].Submitted != 1234 || list[1].Flow.N != 3 {
		t.Errorf("listed as %+v", list)
	}
}
