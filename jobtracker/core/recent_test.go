package core

import (
	"testing"

	"github.com/quernmr/quern/jobtracker/core/past"
	"github.com/quernmr/quern/wire"
)

// recentOf asks for the recent attempts, and lets time stand still until they come.
func recentOf(t *testing.T, c *Core) (jobs []wire.JobAttempts, since int64) {
	t.Helper()
	commands := c.Step(c.now, TakeRecent{Token: 1})
	for c.leader.works.Len() > 0 {
		commands = append(commands, c.Step(c.now, Tick{})...)
	}
	for _, cmd := range commands {
		if r, ok := cmd.(Reply); ok && r.Recent != nil {
			return r.Recent.Get().Jobs, r.Recent.Get().Since
		}
	}
	t.Fatal("there is no answer")
	return nil, 0
}

// TestRecent: each unfinished job gets the same part of a long list, and the list says since when it is
// complete. Ends that are too old are left out.
func TestRecent(t *testing.T) {
	c := newBigCluster(2, 2).ready().core
	l := c.leader
	c.wallAtZero = 1_000_000_000_000
	now := l.wall()
	ended := func(j *job, n int, ago int64) {
		p := past.Attempt{Number: n, State: wire.AttemptSucceeded, Began: now - ago - 1000, Took: 1000}
		j.addEnded(j.task(wire.TaskID{Job: j.id, Kind: wire.Map, N: n % 8}), &p, "")
	}
	first, second := l.order[0], l.order[1]
	ended(first, 0, recentSpan.Milliseconds()+5000)
	for i := range maxRecent/2 + 100 {
		ended(first, i+1, int64(maxRecent-i))
	}
	ended(second, 1, 100)
	jobs, since := recentOf(t, c)
	running := first.attempts.Len() + second.attempts.Len()
	if got := len(jobs[0].Attempts); got > maxRecent/2 || got < maxRecent/2-running {
		t.Errorf("%d attempts of a large job", got)
	}
	if last := jobs[0].Attempts[len(jobs[0].Attempts)-1]; since > last.Began+last.Took || since < last.Began+last.Took-1 {
		t.Errorf("the list is complete since %d, its oldest attempt ended at %d", since, last.Began+last.Took)
	}
	if got := len(jobs[1].Attempts) - second.attempts.Len(); got != 1 {
		t.Errorf("%d ended attempts of a small job", got)
	}

	l.rememberEnded(first)
	l.rememberEnded(second)
	l.order = nil
	jobs, since = recentOf(t, c)
	if len(jobs) != 2 || len(jobs[0].Attempts) != maxGoneOfJob || len(jobs[1].Attempts) != 1 {
		t.Fatalf("of ended jobs the list has %d", len(jobs))
	}
	if last := jobs[0].Attempts[maxGoneOfJob-1]; since > last.Began+last.Took || since < last.Began+last.Took-1 {
		t.Errorf("the list is complete since %d, its oldest attempt ended at %d", since, last.Began+last.Took)
	}
	for range maxGone / maxGoneOfJob {
		l.rememberEnded(first)
	}
	if jobs, _ = recentOf(t, c); len(jobs) != maxGone/maxGoneOfJob || l.recent.attempts != maxGone {
		t.Errorf("the list has %d ended jobs with %d attempts", len(jobs), l.recent.attempts)
	}
}
