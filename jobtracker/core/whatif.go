package core

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/jobtracker/core/forecast"
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/whatif"
	"github.com/quernmr/quern/wire"
)

// askers have asked for a view of the cluster. A request that comes while it is made gets the same view.
type askers struct{ tokens []Token }

// add adds a request, and reports whether it is the first one.
func (a *askers) add(t Token) bool {
	a.tokens = append(a.tokens, t)
	return len(a.tokens) == 1
}

// answer answers all requests.
func (a *askers) answer(c *Core, r Reply) {
	for _, r.Token = range a.tokens {
		c.emit(r)
	}
	a.tokens = nil
}

// Later is a value that takes long to make: any goroutine may make it, and it is made once.
type Later[T any] struct{ get func() T }

// Get makes the value, if it is not made yet.
func (l *Later[T]) Get() T { return l.get() }

func later[T any](get func() T) *Later[T] { return &Later[T]{sync.OnceValue(get)} }

// OpenJobs describes the jobs that have not ended, to predict what another scheduler would make of them.
type OpenJobs struct {
	Wall       int64 // Unix milliseconds of State.Now
	Scheduling wire.Scheduling
	State      *whatif.State
	Access     []wire.Access // by index in State.Jobs
	LeftOut    []LeftOut     // by id
	Unknown    string        // why there is no State; empty: there is one
}

// LeftOut is a job that no prediction considers.
type LeftOut struct {
	Job    wire.JobID
	Owner  string
	Access wire.Access
	Reason string
}

// maxOpenJobs is the maximum number of jobs that a view describes.
const maxOpenJobs = 2000

// usualDeviation is that of task times that were not measured.
const usualDeviation = 0.3

// describing is the work of describing all jobs.
type describing struct {
	jobRound
	askers
	running  [2]runningTasks
	usual    [2]forecast.Mean
	index    []int // in State.Trackers, by assign.Index; -1: not there
	flows    [][]forecast.FlowJob
	firsts   []int // the numbers of these flows
	measured [2][]scheduler.Measured
	profiles map[*history.Profile]bool
	out      *OpenJobs
}

// takeOpenJobs begins to describe the jobs, unless that is under way.
func (l *leader) takeOpenJobs(r TakeOpenJobs) {
	d := &l.describing
	if !d.add(r.Token) {
		return
	}
	if n := len(l.order); n > maxOpenJobs {
		none := &OpenJobs{Wall: l.wall(), Scheduling: l.sharing.Requested, Unknown: fmt.Sprintf("there are %d jobs, a prediction considers at most %d", n, maxOpenJobs)}
		d.answer(l.c, Reply{OpenJobs: later(func() *OpenJobs { return none })})
		return
	}
	d.begin(l)
}

func (d *describing) begin(l *leader) {
	band := l.bandwidth()
	s := &whatif.State{Now: l.now, Metric: l.sharing.Metric, Bandwidth: band.Rate(), Close: l.overheads.Close.Seconds(), SetUp: l.overheads.SetUp.Seconds()}
	_, s.Pools = l.facts.Pools()
	d.out = &OpenJobs{Wall: l.wall(), Scheduling: l.sharing.Requested, State: s}
	d.running = [2]runningTasks{l.newRunningTasks(mapPhase, l.now), l.newRunningTasks(reducePhase, l.now)}
	d.usual, d.flows, d.firsts, d.measured = [2]forecast.Mean{}, nil, nil, [2][]scheduler.Measured{}
	d.profiles = make(map[*history.Profile]bool)
	d.index = make([]int, len(l.fleet.byIndex))
	for i, t := range l.fleet.byIndex {
		if d.index[i] = -1; t != nil && t.countedSlots != [2]int{} {
			d.index[i] = len(s.Trackers)
			s.Trackers = append(s.Trackers, whatif.Tracker{Name: t.Name, Slots: t.countedSlots})
		}
	}
	l.charge(len(d.index) / 8)
	d.jobRound = jobRound{l: l, visit: d.visit, cost: d.costOf}
	d.round.Request()
	l.works.Add(d)
}

// costOf is what a job's description costs, in entries.
func (d *describing) costOf(j *job) int {
	return 2 + j.attempts.Len()/8 + j.facts.Submission().Jobs()/4 + 2*len(d.l.fleet.byNumber)/trackersPerEntry
}

// Advance implements pieces.Work.
func (d *describing) Advance(budget int) (spent int, done bool) {
	if spent, done = d.jobRound.Advance(budget); done {
		d.finish()
	}
	return spent, done
}

func (d *describing) visit(j *job) {
	l, f, sub := d.l, j.facts, j.facts.Submission()
	access := l.c.access(f)
	reason := ""
	switch {
	case f.Ended():
		return
	case f.Stopping() || j.finish.stopProposed:
		reason = "it stops"
	case sub.Suspended():
		reason = "it is suspended"
	case j.recovering:
		reason = "the cluster has a new leader, which waits for the inventories of task trackers"
	}
	if reason != "" {
		for phase := range d.running {
			for a := range j.runningAttempts(phase) {
				d.addOther(a, phase, l.taskTime(j, phase).Time)
			}
		}
		d.out.LeftOut = append(d.out.LeftOut, LeftOut{Job: j.id, Owner: sub.Owner(), Access: access, Reason: reason})
		return
	}
	d.out.State.Jobs = append(d.out.State.Jobs, d.describe(j))
	d.out.Access = append(d.out.Access, access)
	if n := len(d.firsts); n == 0 || d.firsts[n-1] != sub.First() { // the jobs of a submission follow each other
		d.firsts, d.flows = append(d.firsts, sub.First()), append(d.flows, l.forecastFlow(sub, [2]time.Duration{}))
	}
}

func (d *describing) describe(j *job) whatif.Job {
	l, f, settings := d.l, j.facts, j.facts.Submission().Settings()
	x := whatif.Job{
		ID: j.id, User: f.Submission().Owner(), Pool: poolName(f.Submission()), Arrived: j.spec.arrived, Goal: admission.Goal(settings, j.spec.arrived),
		Priority: int(settings.Priority), Batch: settings.Batch, Flow: j.flowOf(), Begun: f.Maps() >= 0, Slowstart: j.spec.Slowstart,
	}
	if f.Committing() {
		x.Closing = max(forecast.Rest(l.overheads.Close, l.now-j.service.commitBegan).Seconds(), 1e-3)
	}
	if !x.Begun {
		for _, earlier := range l.facts.After(f) {
			if !earlier.Ended() {
				x.After = append(x.After, l.facts.ID(earlier.N()))
			}
		}
		x.Lag = forecast.Remaining(l.overheads.SetUp, j.service.setupLaunched, l.now).Seconds()
	}
	for phase := range x.Phases {
		d.describePhase(j, phase, &x.Phases[phase])
	}
	if s := j.shuffle(); j.partitions.ungathered > 0 && s.BytesLeft() > 0 {
		x.Shuffle = whatif.Shuffle{Ready: float64(max(0, s.Produced-s.Gathered)), Left: float64(s.BytesLeft()), Whole: float64(s.Total)}
	}
	d.addMeasured(j)
	return x
}

func (d *describing) describePhase(j *job, phase int, x *whatif.Phase) {
	l := d.l
	p := d.running[phase].forecastPhase(j)
	task := p.Task(l.overheads.WarmUp)
	d.usual[phase].Add(task.Time)
	task = p.Correct(task)
	*x = whatif.Phase{Tasks: j.totalTasks(phase), Left: j.tasksLeft(phase), Seconds: task.Time.Seconds(), Deviation: cmp.Or(task.Deviation, usualDeviation), Fits: j.assign.Fits(phase)}
	if phase == mapPhase && j.facts.Maps() < 0 {
		x.Tasks = j.expectedMaps()
		x.Left = x.Tasks
	}
	if j.facts.Committing() {
		x.Left = 0
	}
	for a := range j.runningAttempts(phase) {
		if a.second || j.movesFrom(a) || len(x.Running) >= x.Left { // its task has another attempt
			d.addOther(a, phase, task.Time)
			continue
		}
		x.Running = append(x.Running, whatif.Running{Tracker: d.indexOf(a.tracker), Rest: d.running[phase].age(a).Seconds()}) // the age, until setRests
	}
}

// addOther adds an attempt that only holds its slot.
func (d *describing) addOther(a *attempt, phase int, task time.Duration) {
	others := &d.out.State.Others[phase]
	*others = append(*others, whatif.Running{Tracker: d.indexOf(a.tracker), Rest: forecast.Rest(task, d.running[phase].age(a)).Seconds()})
}

// indexOf is the index of a tracker in the view; -1: its slots do not count.
func (d *describing) indexOf(t *tracker) int {
	if i := t.assign.Index(); i < len(d.index) && d.l.fleet.byIndex[i] == t {
		return d.index[i]
	}
	return -1
}

// addMeasured adds how long tasks of a job took on each tracker.
func (d *describing) addMeasured(j *job) {
	for phase := range d.measured {
		var past map[string]*history.Sum
		if j.profile != nil {
			past = j.profile.Phases[phase].Trackers
			d.profiles[j.profile] = true
		}
		if past != nil || j.measures.Phases[phase].All.Tasks > 0 {
			d.measured[phase] = append(d.measured[phase], measuredOn(j.id, forecast.OnTrackers(d.l.trackerTimes(j, phase).Trackers, past))...)
		}
	}
}

// finish answers the requests. The view is completed by the goroutine that asks for it.
func (d *describing) finish() {
	l, out, flows, firsts := d.l, d.out, d.flows, d.firsts
	s := out.State
	var usual [2]time.Duration
	for phase := range usual {
		l.addProfiles(&d.usual[phase], phase)
		usual[phase] = d.usual[phase].Task().Time
		s.Usual[phase] = usual[phase].Seconds()
		s.Measured[phase] = d.measured[phase]
		for _, x := range l.profiles.Latest(maxPastJobs) {
			if !d.profiles[x] && l.job(x.Job) == nil {
				s.Measured[phase] = append(s.Measured[phase], measuredOn(x.Job, forecast.ByTracker(x.Phases[phase].Trackers))...)
			}
		}
	}
	slots := l.fleet.slots
	d.out, d.flows, d.measured, d.profiles = nil, nil, [2][]scheduler.Measured{}, nil
	d.answer(l.c, Reply{OpenJobs: later(func() *OpenJobs {
		setRests(s, usual)
		for i, flow := range flows {
			for k := range flow {
				for phase := range usual {
					flow[k].Each[phase] = cmp.Or(flow[k].Each[phase], usual[phase])
				}
			}
			s.Flows = append(s.Flows, scheduler.Flow{First: firsts[i], Alone: forecast.Alone(slots, flow)})
		}
		return out
	})})
}

// setRests turns the ages of running attempts into the time to their ends.
func setRests(s *whatif.State, usual [2]time.Duration) {
	for i := range s.Jobs {
		for phase := range s.Jobs[i].Phases {
			p := &s.Jobs[i].Phases[phase]
			whole := cmp.Or(forecast.Duration(p.Seconds), usual[phase])
			for k := range p.Running {
				p.Running[k].Rest = forecast.Rest(whole, forecast.Duration(p.Running[k].Rest)).Seconds()
			}
		}
	}
}
