package core

import (
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/jobtracker/core/forecast"
	"github.com/quernmr/quern/wire"
)

// This file describes jobs and the cluster to package forecast, and keeps the last forecast.

// predicted is the last forecast of all jobs.
type predicted struct {
	at   time.Duration
	jobs forecast.Forecast // nil: no forecast yet
}

// recentForecast is a forecast of less than a gap ago, or a new one.
func (l *Live) recentForecast(now, gap time.Duration) forecast.Forecast {
	if l.predicted.jobs == nil || now-l.predicted.at >= gap {
		l.predicted = predicted{now, l.forecast(now)}
	}
	return l.predicted.jobs
}

// forecast predicts the ends of all jobs that have not ended.
func (l *Live) forecast(now time.Duration) forecast.Forecast {
	c := forecast.Cluster{
		Now: now, Slots: l.fleet.slots, Fallback: [2]forecast.Task{l.usualTask(mapPhase), l.usualTask(reducePhase)},
		Bandwidth: l.bandwidth(), Overheads: l.overheads,
	}
	maps, reduces := l.runningIn(mapPhase, now), l.runningIn(reducePhase, now)
	jobs := make([]forecast.Job, len(l.order))
	for i, j := range l.order {
		jobs[i] = l.describe(j)
		jobs[i].Phases = [2]forecast.Phase{maps.describe(j), reduces.describe(j)}
	}
	portions := l.phases[mapPhase].plan.Portions
	turns := make(map[int]int, len(portions))
	for i := range portions {
		turns[portions[i].Job.N] = i + 1
	}
	for i := range jobs {
		jobs[i].Shuffle.Turn = turns[jobs[i].N]
	}
	return forecast.Predict(&c, jobs)
}

// describe is the forecast's input for a job, except its phases and its shuffle's rank.
func (l *Live) describe(j *job) forecast.Job {
	f := j.facts
	x := forecast.Job{
		N: f.N(), Workers: j.measures.Workers,
		Active:  f.Maps() >= 0 && !f.Stopping() && !j.recovering && !f.Submission().Suspended(),
		Closing: f.Committing(), ClosingSince: j.service.commitSince,
		Shuffle:  forecast.Transfer{Homes: j.housing.hosts.Len()},
		Upcoming: l.coming(j),
	}
	for i := range l.phases {
		p := &l.phases[i]
		g, named := l.assign.PlanShare(i, &j.assign)
		x.Rank[i] = g.Rank
		if named && i == mapPhase && p.plan.Targets[g.Rank].End > 0 {
			x.MapsEnd = p.plannedAt + forecast.Duration(p.plan.Targets[g.Rank].End)
			x.WholeTasks = len(p.plan.Queues) > 0
		}
	}
	if s := j.shuffle(); j.housing.open > 0 {
		x.Shuffle.BytesLeft = float64(max(0, s.BytesLeft()))
	}
	return x
}

// coming is nil for a job that has begun or has no profile.
func (l *Live) coming(j *job) *forecast.Upcoming {
	if j.facts.Maps() >= 0 || j.facts.Stopping() || j.facts.Submission().Suspended() || j.profile == nil {
		return nil
	}
	c := &forecast.Upcoming{Tasks: [2]int{j.profile.Phases[mapPhase].Tasks, j.facts.Reduces()}}
	for _, f := range l.facts.After(j.facts) {
		c.After = append(c.After, f.N())
	}
	return c
}

// times is what is known of the times of a job's tasks.
func (j *job) times(phase int) forecast.TaskTimes {
	k := forecast.TaskTimes{Measured: j.measures.Phases[phase]}
	if j.profile != nil && j.profile.Phases[phase].Tasks > 0 {
		k.Past, k.PastOf = &j.profile.Phases[phase], j.profile.Job
	}
	return k
}

// taskTime is how long a task of a job's phase takes in a warm process.
func (l *Live) taskTime(j *job, phase int) forecast.Task {
	k := j.times(phase)
	return k.Task(l.overheads.WarmUp)
}

// meanTask is the mean task time over jobs with known times, ended ones included.
func (l *Live) meanTask(phase int) (m forecast.Mean) {
	for _, j := range l.order {
		m.Add(l.taskTime(j, phase).Time)
	}
	for p := range l.profiles.All() {
		m.Add(p.Phases[phase].Mean())
	}
	return m
}

// usualTask stands in for tasks of unknown length.
func (l *Live) usualTask(phase int) forecast.Task {
	m := l.meanTask(phase)
	return m.Task()
}

// maxOneByOne is how many running tasks of a phase a forecast treats one by one; more are
// treated together. It bounds a Step.
const maxOneByOne = 4096

// runningTasks collects the ages of a phase's running tasks for one forecast or snapshot.
type runningTasks struct {
	phase    int
	wall     int64         // now in Unix milliseconds
	warmUp   time.Duration // cost of starting a process
	oneByOne bool
	ages     []time.Duration // of the jobs so far
}

func (l *Live) runningIn(phase int, now time.Duration) runningTasks {
	running := 0
	for _, j := range l.order {
		running += j.assign.UsedSlots(phase)
	}
	v := runningTasks{phase: phase, wall: l.c.wall + now.Milliseconds(), warmUp: l.overheads.WarmUp, oneByOne: running <= maxOneByOne}
	if v.oneByOne {
		v.ages = make([]time.Duration, 0, running)
	}
	return v
}

// describe is what is known of a job's phase.
func (v *runningTasks) describe(j *job) forecast.Phase {
	p := forecast.Phase{TaskTimes: j.times(v.phase), TasksLeft: j.tasksLeft(v.phase), Running: j.workingTasks(v.phase)}
	if v.oneByOne {
		first := len(v.ages)
		for a := range j.runningAttempts(v.phase) {
			v.ages = append(v.ages, v.age(a))
		}
		p.Ages = v.ages[first:len(v.ages):len(v.ages)]
	}
	return p
}

// age is how long an attempt has run, without the start of its process.
func (v *runningTasks) age(a *attempt) time.Duration {
	age := time.Duration(v.wall-a.began) * time.Millisecond
	if a.cold {
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

// workingTasks counts the tasks in slots. Partitions in reserved slots do not count: all their
// work is to come.
func (j *job) workingTasks(phase int) int {
	if phase == reducePhase {
		return j.assign.UsedSlots(phase) - j.housing.reservedSlots
	}
	return j.assign.UsedSlots(phase)
}

// totalTasks is how many tasks a phase has, as far as is known.
func (j *job) totalTasks(phase int) int {
	if phase == reducePhase {
		return j.facts.Reduces()
	}
	return max(0, j.facts.Maps())
}

// tasksLeft is how many tasks of a phase are not done, runnable or not.
func (j *job) tasksLeft(phase int) int {
	switch {
	case j.facts.Kind() == kindOf(phase):
		return j.totalTasks(phase) - j.facts.CommittedTasks()
	case phase == reducePhase:
		return 0 // it has none
	case j.outputs.known == len(j.maps) && j.housing.open == 0 && !j.outputs.recomputing:
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

// measure notes how long a task took. Later attempts of the same task do not count.
func (l *Live) measure(j *job, tk *task, t *tracker, took time.Duration, reads wire.Reads, cold bool) {
	if tk.measured {
		return
	}
	tk.measured = true
	phase := phaseOf(tk.kind)
	j.measures.Reads.Add(reads)
	j.measures.CountTask(phase, t.number, took, cold)
	if !cold {
		l.overheads.UpdateWarmUp(&j.measures.Phases[phase])
	}
}

// sums is the measured task times of a phase, by tracker name.
func (l *Live) sums(j *job, phase int) history.Sums {
	all := history.Sums{Sum: j.measures.Phases[phase].All, Trackers: make(map[string]*history.Sum)}
	for number, f := range l.fleet.byNumber {
		if s := j.measures.TasksOn(int32(number), phase); s.Tasks > 0 {
			all.Trackers[f.Name] = &s
		}
	}
	return all
}

// output is what is known of a job's map output.
func (j *job) output() forecast.Output {
	return forecast.Output{
		Maps: j.facts.Maps(), MapsDone: j.outputs.chosen, Bytes: j.outputs.bytes, Fetched: j.outputs.fetched,
		Read: j.outputs.input, Input: j.splits.input, Past: j.profile,
	}
}

// shuffle is a job's map output in bytes; zero without reduces.
func (j *job) shuffle() forecast.Shuffle {
	if j.facts.Reduces() == 0 {
		return forecast.Shuffle{}
	}
	o := j.output()
	return o.Shuffle()
}

// bandwidth is that of all trackers that can be homes.
func (l *Live) bandwidth() (b forecast.Bandwidth) {
	for _, t := range l.fleet.byIndex {
		if t != nil && t.usable() && t.canBeHome() {
			b.Add(t.hosting.fetchRate)
		}
	}
	return b
}

// slowness is the time of a job's reduces on a tracker relative to others: measured in this
// job, in the last job of its name, or in all jobs.
func (l *Live) slowness(j *job, t *tracker) float64 {
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

// flow lists the jobs of a submission with all their tasks. Ended jobs count with their
// measured times, future jobs with expected ones.
func (l *Live) flow(sub *facts.Submission, usual [2]time.Duration) []forecast.FlowJob {
	flow := make([]forecast.FlowJob, 0, sub.Jobs())
	for f := range l.facts.Flow(sub) {
		x := forecast.FlowJob{N: f.N()}
		for _, before := range l.facts.After(f) {
			x.After = append(x.After, before.N())
		}
		for phase := range x.Tasks {
			if x.Tasks[phase], x.Each[phase] = l.extent(f, phase); x.Each[phase] == 0 {
				x.Each[phase] = usual[phase]
			}
		}
		flow = append(flow, x)
	}
	return flow
}

// extent is a phase's number of tasks, and the time of one; 0: unknown.
func (l *Live) extent(f *facts.Job, phase int) (tasks int, each time.Duration) {
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

// expectedMaps is how many maps a job that has not begun should have: as many as the last job
// of its name, or one.
func (j *job) expectedMaps() int {
	if j.profile == nil {
		return 1
	}
	return max(1, j.profile.Phases[mapPhase].Tasks)
}
