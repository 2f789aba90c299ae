package core

import (
	"time"

	"github.com/quernmr/quern/jobtracker/core/census"
	"github.com/quernmr/quern/jobtracker/core/forecast"
	"github.com/quernmr/quern/wire"
)

// counting is the work of counting all jobs, and then all task trackers, for requests of a census. A
// request that comes during it gets the same census.
type counting struct {
	jobRound
	tokens   []Token // requests
	forecast forecast.Forecast
	tracker  int // next index in the fleet, once all jobs are counted; negative before
	census   census.Census
}

// countedForecastAge is the maximum age of the forecast in a census.
const countedForecastAge = 10 * time.Second

// trackersCounted task trackers are counted in the time of an entry.
const trackersCounted = 16

// takeCensus begins a census, unless one is under way.
func (l *leader) takeCensus(r TakeCensus) {
	c := &l.counting
	if c.tokens = append(c.tokens, r.Token); len(c.tokens) > 1 {
		return
	}
	c.jobRound = jobRound{l: l, visit: c.addJob, cost: oneEntry}
	c.forecast, c.tracker, c.census = l.recentForecast(l.now, countedForecastAge), -1, census.Census{}
	c.round.Request()
	l.works.Add(c)
}

// Advance implements pieces.Work.
func (c *counting) Advance(budget int) (spent int, done bool) {
	if c.tracker < 0 {
		if spent, done = c.jobRound.Advance(budget); !done {
			return spent, false
		}
		c.tracker = 0
	}
	trackers := c.l.fleet.byIndex
	for ; c.tracker < len(trackers); c.tracker++ {
		if c.tracker%trackersCounted == 0 {
			if spent > 0 && spent >= budget {
				return spent, false
			}
			spent++
		}
		if t := trackers[c.tracker]; t != nil {
			c.addTracker(t)
		}
	}
	c.finish()
	return spent, true
}

func (c *counting) addJob(j *job) {
	l, x := c.l, &c.census
	state := l.facts.State(j.facts)
	if j.facts.Ended() {
		return
	}
	x.Jobs[state]++
	if j.facts.Submission().Suspended() {
		x.Suspended++
	}
	if j.tally.awaitsFirst {
		x.Unstarted = max(x.Unstarted, l.now-j.spec.arrived)
	}
	x.Phases[mapPhase].Pending += j.assign.Pending()
	x.Phases[reducePhase].Pending += j.assign.Ready()
	if deadline := j.facts.Submission().Settings().Deadline; deadline != 0 {
		if o := c.forecast.Of(j.facts.N()); o != nil && o.Range.Likely > j.spec.arrived+deadline {
			x.Late++
		}
	}
}

func (c *counting) addTracker(t *tracker) {
	x := &c.census.Trackers
	x.Registered++
	for _, s := range []struct {
		is bool
		n  *int
	}{
		{t.takesWork(), &x.Usable}, {t.Excluded != "" || t.operator.N != 0, &x.Excluded}, {t.drain.n != 0, &x.Draining},
		{t.contact.unhealthy != "", &x.Unhealthy}, {t.health.OnProbation(), &x.Probation},
	} {
		if s.is {
			*s.n++
		}
	}
}

// finish answers the requests.
func (c *counting) finish() {
	l := c.l
	for p := range c.census.Phases {
		c.census.Phases[p].Slots, c.census.Phases[p].Used = l.fleet.slots[p], l.assign.UsedSlots(p)
	}
	for _, token := range c.tokens {
		answer := c.census
		l.c.emit(Reply{Token: token, Census: &answer})
	}
	c.tokens, c.forecast = nil, nil
}

// countEnd counts the end of an attempt.
func (l *leader) countEnd(a *attempt, state wire.AttemptState, lost bool) {
	outcome := census.Killed
	switch {
	case lost:
		outcome = census.Lost
	case state == wire.AttemptSucceeded:
		outcome = census.Succeeded
	case state == wire.AttemptFailed:
		outcome = census.Failed
		if !a.killed() { // else a user has failed it
			a.tracker.faults.Attempts++
		}
	}
	l.c.counts.Attempts[a.id.Task.Kind][outcome].Add(1)
}

// countLaunch counts the launch of an attempt.
func (l *leader) countLaunch(j *job, a *attempt) {
	if !a.id.Task.Kind.Slotted() {
		return
	}
	if a.second {
		l.c.counts.Second[phaseOf(a.id.Task.Kind)].Add(1)
	}
	if j.tally.awaitsFirst {
		j.tally.awaitsFirst = false
		l.c.counts.QueueTime.AddTime(l.now - j.spec.arrived)
	}
}

// isUnstarted reports whether no map or reduce of a job has been launched, as far as the leader knows.
func (j *job) isUnstarted() bool {
	return j.tally.launched == [2]int{} && j.outputs.chosen == 0 && j.facts.SettledTasks() == 0
}
