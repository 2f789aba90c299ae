package core

import (
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/wire"
)

// takeOpenJobs asks for the open jobs, and returns the Replies of the Steps until they come.
func takeOpenJobs(c *largeCluster, tokens ...Token) (replies []Reply) {
	collect := func(ev Event) {
		for _, cmd := range c.measured(ev) {
			if r, ok := cmd.(Reply); ok {
				replies = append(replies, r)
			}
		}
	}
	for _, token := range tokens {
		collect(TakeOpenJobs{Token: token})
	}
	for c.core.leader != nil && c.core.leader.works.Len() > 0 {
		collect(Tick{})
	}
	return replies
}

// TestOpenJobs: the view has all jobs that have not ended, what runs of them and where, and why others are left out.
// Requests that come while it is made get the same one.
func TestOpenJobs(t *testing.T) {
	const trackers, jobs = 5, 20
	c := newLargeCluster(trackers, jobs, 0)
	c.commit(&facts.Stopped{Job: 3, Outcome: wire.Killed})
	c.commit(&facts.SettingsChanged{Key: "5", N: 1, Suspended: true})
	c.now += time.Minute
	for range 7 {
		c.endMap()
	}
	c.now += 3 * time.Second
	c.settle()
	c.core.leader.works.budget = 3
	replies := takeOpenJobs(c, 7, 8)
	if len(replies) != 2 || replies[0].Token != 7 || replies[1].Token != 8 || replies[0].Err != nil {
		t.Fatalf("replies %+v", replies)
	}
	x := replies[0].OpenJobs.Get()
	if x != replies[1].OpenJobs.Get() {
		t.Error("two requests get two views")
	}
	s := x.State
	if len(s.Jobs) != jobs-2 || len(x.Access) != len(s.Jobs) || len(s.Flows) != len(s.Jobs) || len(s.Trackers) != trackers || s.Trackers[0].Slots != [2]int{largeMaps, 4} {
		t.Fatalf("%d jobs, %d flows, trackers %+v", len(s.Jobs), len(s.Flows), s.Trackers)
	}
	if len(x.LeftOut) != 2 || x.LeftOut[0].Job.N != 3 || x.LeftOut[0].Reason != "it stops" || x.LeftOut[1].Job.N != 6 || x.LeftOut[1].Reason != "it is suspended" {
		t.Errorf("left out: %+v", x.LeftOut)
	}
	running, left := make([]int, trackers), 0
	for i, j := range s.Jobs {
		maps := j.Phases[mapPhase]
		left += maps.Left
		if i > 0 && s.Jobs[i-1].ID.N >= j.ID.N || !j.Begun || maps.Tasks != largeMaps || j.Phases[reducePhase].Left != 1 || maps.Fits != trackers*largeMaps || len(maps.Running) > maps.Left {
			t.Errorf("%+v", j)
		}
		if measured := maps.Seconds > 0; measured != (maps.Left < largeMaps) {
			t.Errorf("%v has %d of %d maps left, and their time is %v", j.ID, maps.Left, maps.Tasks, maps.Seconds)
		}
		for _, r := range maps.Running {
			if running[r.Tracker]++; r.Rest <= 0 || r.Rest > 1 { // maps take a second, these have run for a while
				t.Errorf("%v: %+v", j.ID, r)
			}
		}
		if f := s.Flows[i]; f.First != j.ID.N || f.Alone <= 0 {
			t.Errorf("flow %+v of %v", f, j.ID)
		}
	}
	for _, r := range s.Others[mapPhase] { // of the suspended job
		running[r.Tracker]++
	}
	for i, n := range running {
		if n != largeMaps {
			t.Errorf("%d maps run on tracker %d, want %d", n, i, largeMaps)
		}
	}
	if want := (jobs-2)*largeMaps - 7; left != want {
		t.Errorf("%d maps are left, want %d", left, want)
	}
	c.core.Step(c.now, TakeOpenJobs{Token: 10})
	var ended []Reply
	for _, cmd := range c.core.Step(c.now, Deposed{}) {
		if r, ok := cmd.(Reply); ok {
			ended = append(ended, r)
		}
	}
	if len(ended) != 1 || ended[0].Token != 10 || ended[0].Err == nil {
		t.Errorf("a job tracker that no longer leads answers %+v", ended)
	}
	if refused := takeOpenJobs(c, 11); len(refused) != 1 || refused[0].Err == nil {
		t.Errorf("a follower answers %+v", refused)
	}
}

// TestOpenJobsAreBounded: no Step takes long for the view, and there is none of too many jobs.
func TestOpenJobsAreBounded(t *testing.T) {
	c := newLargeCluster(largeTrackers, maxOpenJobs, 0)
	c.measuring = true
	replies := takeOpenJobs(c, 1)
	c.measuring = false
	largest, steps := c.largest()
	t.Logf("%d Steps, at most %d entries and %d KiB each", steps, largest.visited, largest.bytes>>10)
	if largest.visited > maxVisited || largest.bytes > maxBytes || steps < 3 {
		t.Errorf("a Step of %d visits %d entries and allocates %d bytes; want at most %d and %d", steps, largest.visited, largest.bytes, maxVisited, maxBytes)
	}
	if x := replies[0].OpenJobs.Get(); x.State == nil || len(x.State.Jobs) != maxOpenJobs {
		t.Errorf("the view has too few jobs: %q", x.Unknown)
	}
	c.commit(&facts.Submitted{Submission: wire.Submission{Key: "one more", Staging: "s", Plan: wire.Plan{Jobs: []wire.JobPlan{{Name: "n"}}}}})
	if x := takeOpenJobs(c, 2)[0].OpenJobs.Get(); x.State != nil || !strings.Contains(x.Unknown, "there are 2001 jobs") {
		t.Errorf("with too many jobs: %q", x.Unknown)
	}
}
