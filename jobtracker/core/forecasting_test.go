package core

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/jobtracker/core/forecast"
	"github.com/quernmr/quern/wire"
)

// TestForecastInPieces tests that a forecast in pieces is the one that is made at once, and that the last one
// is used until then.
func TestForecastInPieces(t *testing.T) {
	const jobs, budget = 60, 7
	c := newLargeCluster(3, jobs, 0)
	l := c.core.leader
	at := func(now time.Duration) forecast.Forecast {
		c.now = now
		return l.recentForecast(now, 0)
	}
	want := at(time.Second)
	l.works.budget = budget
	l.forecasts.last = nil
	if f := at(time.Second); f != nil {
		t.Fatal("a forecast of many jobs is made at once")
	}
	ticks := 0
	for ; l.forecasts.making; ticks++ {
		c.step(Tick{})
		if n := len(l.forecasts.input); n > (ticks+1)*budget {
			t.Fatalf("%d Ticks take %d jobs", ticks+1, n)
		}
	}
	if least := 2 * jobs / budget; ticks < least {
		t.Errorf("a forecast takes %d Ticks, want at least %d", ticks, least)
	}
	if f := l.recentForecast(c.now, time.Hour); !reflect.DeepEqual(f, want) {
		t.Error("a forecast in pieces differs from one that is made at once")
	}
	before := &l.forecasts.last[0]
	if f := at(2 * time.Second); &f[0] != before || !l.forecasts.making {
		t.Error("until a forecast is made, the last one is not used")
	}
}

// TestPlansPaced tests that tasks which end during a survey do not request the next plan earlier than tasks
// that end after it.
func TestPlansPaced(t *testing.T) {
	const took = 50 * time.Millisecond
	c := newLargeCluster(3, 60, 0)
	l, p := c.core.leader, &c.core.leader.phases[mapPhase]
	l.works.budget = 7
	answer := func() {
		c.now += took
		c.answerPlans()
		c.settle()
	}
	for p.planning {
		answer()
	}
	c.now += time.Second
	c.step(Tick{})
	if p.surveying == nil {
		t.Fatal("the survey of many jobs is made at once")
	}
	c.endMap()
	c.settle()
	answer()
	if want := p.requestedAt + planTimeFactor*took; p.nextPlanAt != want {
		t.Errorf("the next plan is due at %v, want %v", p.nextPlanAt, want)
	}
}

// TestForecastLacksJob tests that a job which was submitted after the last forecast has an explanation.
func TestForecastLacksJob(t *testing.T) {
	c := newLargeCluster(3, 4, 0)
	if _, _, err := c.core.Explanations(c.now, wire.JobID{}); err != nil {
		t.Fatal(err)
	}
	c.commit(&facts.Submitted{Submission: wire.Submission{Key: "new", Staging: "s", Plan: wire.Plan{Jobs: []wire.JobPlan{{Name: "n", Reduces: 1}}}}})
	list, _, err := c.core.Explanations(c.now, wire.JobID{})
	if err != nil || len(list) != 5 {
		t.Fatalf("%d explanations, %v", len(list), err)
	}
	if x := list[4]; x.End != 0 || len(x.Phases) != 2 {
		t.Errorf("the new job ends at %d and has %d phases; want no end and two phases", x.End, len(x.Phases))
	}
}

// TestMeasuredOnce tests that a job which ends during a survey has its measured times there once, though it
// has left a profile.
func TestMeasuredOnce(t *testing.T) {
	c := newLargeCluster(3, 4, 0)
	c.commit(&facts.SchedulingChanged{N: 1, Scheduling: wire.Scheduling{Scheduler: "hmhs", Metric: "sum-response", Delay: "none"}})
	l := c.core.leader
	c.endMap()
	v := l.newSurvey(mapPhase)
	v.round.Request()
	v.jobRound.Advance(100)
	if len(v.measured) == 0 {
		t.Fatal("no times are measured")
	}
	ended := l.job(v.measured[0].Job)
	c.commit(&facts.Stopped{Job: ended.facts.N(), Outcome: wire.Killed}, &facts.Ended{Job: ended.facts.N(), Outcome: wire.Killed})
	l.profiles.Put("n", &history.Profile{Job: ended.id, Phases: [2]history.Sums{l.trackerTimes(ended, mapPhase)}})
	for _, stage := range v.stages[:2] {
		stage(math.MaxInt, true)
	}
	if _, err := v.snapshot.Normal(); err != nil {
		t.Error(err)
	}
}
