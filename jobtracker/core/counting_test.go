package core

import (
	"reflect"
	"testing"
	"time"

	"github.com/quernmr/quern/jobtracker/core/census"
	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/wire"
)

// countAll makes a census at once, in the simplest way.
func countAll(l *leader) (x census.Census) {
	for f := range l.facts.Jobs() {
		j := l.jobs[f.N()]
		if j == nil {
			continue
		}
		x.Jobs[l.facts.State(f)]++
		if f.Submission().Suspended() {
			x.Suspended++
		}
		for m := range j.maps {
			if j.assign.IsPending(m) {
				x.Phases[mapPhase].Pending++
			}
		}
		x.Phases[reducePhase].Pending += j.assign.Ready()
		launched := false
		for _, a := range l.freezeAttempts(j).Statuses() {
			launched = launched || a.Attempt.Task.Kind.Slotted()
		}
		if !launched {
			x.Unstarted = max(x.Unstarted, l.now-j.spec.arrived)
		}
	}
	for _, t := range l.fleet.trackers {
		x.Trackers.Registered++
		for p := range t.slots {
			x.Phases[p].Used += t.slots[p] - t.assign.Free(p)
			if !t.outOfService() && !t.contact.lossProposed {
				x.Phases[p].Slots += t.slots[p]
			}
		}
		if t.takesWork() {
			x.Trackers.Usable++
		}
		if t.Excluded != "" {
			x.Trackers.Excluded++
		}
		if t.drain.n > 0 {
			x.Trackers.Draining++
		}
		if t.contact.unhealthy != "" {
			x.Trackers.Unhealthy++
		}
	}
	return x
}

// requestCensus requests a census, and returns the Replies of the Steps until it is made.
func requestCensus(c *largeCluster, tokens ...Token) (replies []Reply, steps int) {
	collect := func(ev Event) {
		steps++
		for _, cmd := range c.core.Step(c.now, ev) {
			if r, ok := cmd.(Reply); ok {
				replies = append(replies, r)
			}
		}
	}
	for _, token := range tokens {
		collect(TakeCensus{Token: token})
	}
	for c.core.leader != nil && c.core.leader.hasWork() {
		collect(Tick{})
	}
	return replies, steps
}

// TestCensus tests that a census in pieces has the same numbers as one that is made at once, that requests
// during it get the same one, and that each Step visits few entries.
func TestCensus(t *testing.T) {
	const trackers, jobs, budget = 40, 90, 7
	c := newLargeCluster(trackers, jobs, 0)
	l := c.core.leader
	c.commit(&facts.Stopped{Job: 3, Outcome: wire.Killed})
	c.commit(&facts.SettingsChanged{Key: "5", N: 1, Suspended: true})
	c.commit(&facts.Drain{N: c.drains(), Tracker: "t0003"})
	excluded := l.fleet.trackers["t0004"]
	c.commit(&facts.TrackerExcluded{Tracker: excluded.Name, Incarnation: excluded.Incarnation, Until: 1 << 40, Reason: "r"})
	c.step(FromTracker{Stream: l.fleet.trackers["t0005"].contact.stream, Message: &wire.Capacity{MapSlots: largeMaps, ReduceSlots: 4, Unhealthy: "hot"}})
	c.now += time.Minute
	c.settle()
	c.now += time.Second
	c.step(Tick{})
	c.settle()
	want := countAll(l)
	if want.Phases[mapPhase].Pending == 0 || want.Unstarted == 0 || want.Suspended != 1 || want.Trackers.Usable != trackers-3 || want.Jobs[wire.Running] != jobs-1 {
		t.Fatalf("the cluster has %+v", want)
	}
	l.works.budget = budget
	replies, steps := requestCensus(c, 7, 8)
	if len(replies) != 2 || replies[0].Token != 7 || replies[1].Token != 8 {
		t.Fatalf("replies %+v", replies)
	}
	for _, r := range replies {
		if r.Err != nil || !reflect.DeepEqual(*r.Census, want) {
			t.Errorf("the census is\n%+v, %v, want\n%+v", r.Census, r.Err, want)
		}
	}
	if least := jobs / budget; steps < least {
		t.Errorf("%d Steps make the census, want at least %d", steps, least)
	}
	if again, _ := requestCensus(c, 9); len(again) != 1 || !reflect.DeepEqual(*again[0].Census, want) {
		t.Errorf("the next census is %+v", again)
	}
	c.core.Step(c.now, TakeCensus{Token: 10})
	var ended []Reply
	for _, cmd := range c.core.Step(c.now, Deposed{}) {
		if r, ok := cmd.(Reply); ok {
			ended = append(ended, r)
		}
	}
	if len(ended) != 1 || ended[0].Token != 10 || ended[0].Err == nil {
		t.Errorf("a job tracker that no longer leads answers %+v", ended)
	}
	if refused, _ := requestCensus(c, 11); len(refused) != 1 || refused[0].Err == nil {
		t.Errorf("a follower answers %+v", refused)
	}
}

// TestCounts tests that the counts of attempts, tasks and jobs are those in the histories.
func TestCounts(t *testing.T) {
	p := newPaced(t, 5, wire.Scheduling{Scheduler: "fair"}, 4, 2, 2)
	failing := 0
	p.submit(&pacedJob{name: "a", maps: 30, reduces: 3, taskTime: [2]time.Duration{time.Second, time.Second}, spread: 0.2, bytes: 100})
	p.submit(&pacedJob{name: "b", maps: 20, reduces: 2, taskTime: [2]time.Duration{time.Second, time.Second}, bytes: 100, submitAt: 3 * time.Second,
		fails: func(_ *pacedTracker, id wire.TaskID) bool { // the first attempt of map 2
			if id.N == 2 && id.Kind == wire.Map {
				failing++
			}
			return id.N == 2 && failing == 1
		}})
	p.submit(&pacedJob{name: "c", maps: 5, taskTime: [2]time.Duration{time.Second, time.Second}, submitAt: 4 * time.Second})
	p.run(3)
	p.runUntil(func() bool { return len(p.core.leader.jobs) == 0 })
	var attempts [wire.Fence + 1][census.Outcomes]int64
	var tasks [census.Phases]int64
	for _, r := range p.records {
		for _, a := range r.Attempts {
			outcome := map[wire.AttemptState]census.Outcome{wire.AttemptSucceeded: census.Succeeded, wire.AttemptFailed: census.Failed, wire.AttemptKilled: census.Killed}[a.State]
			attempts[a.Attempt.Task.Kind][outcome]++
		}
		tasks[mapPhase] += int64(r.Job.Maps.Total)
		tasks[reducePhase] += int64(r.Job.Reduces.Total)
	}
	counts := p.core.Counts()
	for kind := range attempts {
		for outcome, want := range attempts[kind] {
			if got := counts.Attempts[kind][outcome].Value(); got != want {
				t.Errorf("%d attempts of kind %v %v, want %d", got, wire.Kind(kind), census.Outcome(outcome), want)
			}
		}
	}
	for phase, want := range tasks {
		if d := counts.TaskTimes[phase].Distribution(); d.Total() != want {
			t.Errorf("times of %d tasks of phase %d, want %d", d.Total(), phase, want)
		}
	}
	if attempts[wire.Map][census.Failed] == 0 {
		t.Error("no map has failed")
	}
	queued := counts.QueueTime.Distribution()
	if counts.Submitted.Value() != 3 || counts.Ended[wire.Succeeded].Value() != 3 || queued.Total() != 3 {
		t.Errorf("%d jobs submitted, %d succeeded, %d with a first task", counts.Submitted.Value(), counts.Ended[wire.Succeeded].Value(), queued.Total())
	}
}
