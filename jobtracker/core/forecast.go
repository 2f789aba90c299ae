package core

import (
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/jobtracker/core/forecast"
	"github.com/quernmr/quern/wire"
)

// This file makes the input of package forecast. forecasting.go runs it.

// forecastJob makes a job's input for a forecast, except Phases and Shuffle.Turn.
func (l *leader) forecastJob(j *job, x *forecast.Job) {
	f := j.facts
	*x = forecast.Job{
		N: f.N(), Workers: j.measures.Workers,
		Active:  f.Maps() >= 0 && !f.Stopping() && !j.recovering && !f.Submission().Suspended(),
		Closing: f.Committing(), ClosingSince: j.service.commitBegan,
		Shuffle:  forecast.Transfer{Homes: j.partitions.hosts.Len()},
		Upcoming: l.upcoming(j),
	}
	for i := range l.phases {
		p := &l.phases[i]
		g, inPlan := l.assign.PlanShare(i, &j.assign)
		x.Rank[i] = g.Rank
		if inPlan && i == mapPhase && p.plan.Targets[g.Rank].End > 0 {
			x.MapsEnd = p.plannedAt + forecast.Duration(p.plan.Targets[g.Rank].End)
			x.WholeTasks = len(p.plan.Queues) > 0
		}
	}
	if s := j.shuffle(); j.partitions.ungathered > 0 {
		x.Shuffle.BytesLeft = float64(max(0, s.BytesLeft()))
	}
}

// upcoming describes a job that has not begun, from the profile of the last job with its name. It
// returns nil for other jobs, and without a profile.
func (l *leader) upcoming(j *job) *forecast.Upcoming {
	if j.facts.Maps() >= 0 || j.facts.Stopping() || j.facts.Submission().Suspended() || j.profile == nil {
		return nil
	}
	c := &forecast.Upcoming{Tasks: [2]int{j.profile.Phases[mapPhase].Tasks, j.facts.Reduces()}}
	for _, f := range l.facts.After(j.facts) {
		c.After = append(c.After, f.N())
	}
	return c
}

// knownTimes returns the measured task times of a job's phase, and those in its profile.
func (j *job) knownTimes(phase int) forecast.TaskTimes {
	k := forecast.TaskTimes{Measured: j.measures.Phases[phase]}
	if j.profile != nil {
		k.Past, k.PastOf = j.profile.Usual[phase].At(j.bytesEach()[phase]), j.profile.Job
	}
	return k
}

// taskTime estimates how long a task of a job's phase takes in a process that runs already.
func (l *leader) taskTime(j *job, phase int) forecast.Task {
	k := j.knownTimes(phase)
	return k.Task(l.overheads.WarmUp)
}

// addProfiles adds the task times of all profiles.
func (l *leader) addProfiles(m *forecast.Mean, phase int) {
	for p := range l.profiles.All() {
		m.Add(p.Phases[phase].Mean())
	}
}

// Up to maxOneByOne running tasks of a phase, a forecast uses the age of each. Beyond, it uses
// their number only, to bound the time of a Step.
const maxOneByOne = 4096

// runningTasks collects the ages of all running tasks of a phase, for one forecast or snapshot.
type runningTasks struct {
	phase    int
	wall     int64           // now in Unix milliseconds
	warmUp   time.Duration   // time to start a process
	oneByOne bool            // it collects ages, see maxOneByOne
	ages     []time.Duration // ages in the jobs so far
}

func (l *leader) newRunningTasks(phase int, now time.Duration) runningTasks {
	running := l.assign.UsedSlots(phase)
	v := runningTasks{phase: phase, wall: l.c.wallAtZero + now.Milliseconds(), warmUp: l.overheads.WarmUp, oneByOne: running <= maxOneByOne}
	if v.oneByOne {
		v.ages = make([]time.Duration, 0, running)
	}
	return v
}

// forecastPhase makes the input of a forecast for a job's phase.
func (v *runningTasks) forecastPhase(j *job) forecast.Phase {
	p := forecast.Phase{TaskTimes: j.knownTimes(v.phase), TasksLeft: j.tasksLeft(v.phase), Running: j.workingTasks(v.phase)}
	if v.oneByOne {
		first := len(v.ages)
		for a := range j.runningAttempts(v.phase) {
			if a.task.attempts != a {
				p.Running-- // beside an older attempt of its task
				continue
			}
			age := v.age(a)
			v.ages = append(v.ages, age)
			if age > p.Oldest && a.next == nil && !j.movesFrom(a) {
				p.Oldest = age
			}
		}
		p.Ages = v.ages[first:len(v.ages):len(v.ages)]
	}
	return p
}

// age returns how long an attempt has run, without the start of its process.
func (v *runningTasks) age(a *attempt) time.Duration {
	age := time.Duration(v.wall-a.began) * time.Millisecond
	if a.coldStart {
		age -= v.warmUp
	}
	return age
}

// runningAttempts yields the running attempts of a phase, in no order.
func (j *job) runningAttempts(phase int) func(yield func(*attempt) bool) {
	return func(yield func(*attempt) bool) {
		for a := range j.attempts.all() {
			if a.id.Task.Kind.Slotted() && phaseOf(a.id.Task.Kind) == phase && !yield(a) {
				return
			}
		}
	}
}

// workingTasks counts the tasks that run in slots. Reserved slots do not count: their reduces
// have not begun.
func (j *job) workingTasks(phase int) int {
	if phase == reducePhase {
		return j.assign.UsedSlots(phase) - j.partitions.reservedSlots
	}
	return j.assign.UsedSlots(phase)
}

// totalTasks is the number of a phase's tasks; 0 for maps before the setup has ended.
func (j *job) totalTasks(phase int) int {
	if phase == reducePhase {
		return j.facts.Reduces()
	}
	return max(0, j.facts.Maps())
}

// tasksLeft counts the tasks of a phase that still have to succeed, runnable or not.
func (j *job) tasksLeft(phase int) int {
	switch {
	case j.facts.Kind() == kindOf(phase):
		return j.totalTasks(phase) - j.facts.SettledTasks()
	case phase == reducePhase:
		return 0 // a job without reduces
	case j.outputs.digestsKnown == len(j.maps) && j.partitions.ungathered == 0 && !j.outputs.recomputing:
		return 0 // lost outputs are not needed
	}
	return j.totalTasks(phase) - j.outputs.chosen
}

func kindOf(phase int) wire.Kind {
	if phase == reducePhase {
		return wire.Reduce
	}
	return wire.Map
}

// recordTime records how long a task took. Later attempts of the same task do not count.
func (l *leader) recordTime(j *job, tk *task, t *tracker, took time.Duration, reads wire.Reads, cold bool) {
	if tk.measured {
		return
	}
	tk.measured = true
	phase := phaseOf(tk.kind)
	j.measures.Reads.Add(reads)
	j.measures.CountTask(phase, t.number, took, cold)
	l.overheads.AddTask(phase, took)
	l.c.counts.TaskTimes[phase].AddTime(took)
}

// trackerTimes sums up the measured task times of a phase, by tracker name.
func (l *leader) trackerTimes(j *job, phase int) history.Sums {
	times := history.Sums{Sum: j.measures.Phases[phase].All, Trackers: make(map[string]*history.Sum)}
	for number, s := range j.measures.Trackers(phase) {
		times.Trackers[l.fleet.byNumber[number].Name] = &s
	}
	return times
}

// knownOutput describes a job's map output so far, for a forecast of all of it.
func (j *job) knownOutput() forecast.Output {
	return forecast.Output{
		Maps: j.facts.Maps(), MapsDone: j.outputs.chosen, Bytes: j.outputs.bytes, Fetched: j.outputs.fetched,
		Read: j.outputs.input, Input: j.splits.input, Past: j.profile,
	}
}

// shuffle estimates the bytes of a job's shuffle; zero without reduces.
func (j *job) shuffle() forecast.Shuffle {
	if j.facts.Reduces() == 0 {
		return forecast.Shuffle{}
	}
	o := j.knownOutput()
	return o.Shuffle()
}

// bandwidth sums up the fetch rates of the trackers that can be homes.
func (l *leader) bandwidth() (b forecast.Bandwidth) {
	for _, t := range l.fleet.byIndex {
		if t != nil && t.usable() && t.canBeHome() {
			b.Add(t.hosting.fetchRate)
		}
	}
	return b
}

// slowness is the time of a job's reduces on a tracker, relative to other trackers. It is
// measured in this job, else in the last job with its name, else in all jobs.
func (l *leader) slowness(j *job, t *tracker) float64 {
	if f := forecast.Slowness(j.measures.TasksOn(t.number, reducePhase), j.measures.Phases[reducePhase].All.Mean()); f > 0 {
		return f
	}
	if j.profile != nil {
		past := &j.profile.Phases[reducePhase]
		if f := forecast.Slowness(past.On(t.Name), past.Mean()); f > 0 {
			return f
		}
	}
	if t.hosting.slowdown == 0 {
		return 1
	}
	return t.hosting.slowdown
}

// forecastFlow lists the jobs of a submission with the number and time of their tasks, also the
// jobs that have ended or not begun.
func (l *leader) forecastFlow(sub *facts.Submission, usual [2]time.Duration) []forecast.FlowJob {
	flow := make([]forecast.FlowJob, 0, sub.Jobs())
	for f := range l.facts.Flow(sub) {
		x := forecast.FlowJob{N: f.N()}
		for _, earlier := range l.facts.After(f) {
			x.After = append(x.After, earlier.N())
		}
		for phase := range x.Tasks {
			if x.Tasks[phase], x.Each[phase] = l.phaseSize(f, phase); x.Each[phase] == 0 {
				x.Each[phase] = usual[phase]
			}
		}
		flow = append(flow, x)
	}
	return flow
}

// phaseSize returns a phase's number of tasks, and the time of one; 0: unknown.
func (l *leader) phaseSize(f *facts.Job, phase int) (tasks int, each time.Duration) {
	if j := l.jobs[f.N()]; j != nil {
		tasks = j.totalTasks(phase)
		if phase == mapPhase && f.Maps() < 0 {
			tasks = j.expectedMaps()
		}
		return tasks, l.taskTime(j, phase).Time
	}
	if tasks = max(0, f.Maps()); phase == reducePhase {
		tasks = f.Reduces()
	}
	if p := l.profiles.Get(f.Name()); p != nil {
		each = p.Phases[phase].Mean()
	}
	return tasks, each
}

// expectedMaps is the expected number of maps of a job that has not begun: as many as the last
// job with its name had, or one.
func (j *job) expectedMaps() int {
	if j.profile == nil {
		return 1
	}
	return max(1, j.profile.Phases[mapPhase].Tasks)
}
