package core

import (
	"cmp"
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/jobtracker/core/forecast"
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/wire"
)

// plannable reports whether the scheduler plans for a job: its tasks may be launched, apart from the
// limits of its own pool.
func (j *job) plannable() bool {
	return j.runnable() && !j.facts.Submission().Suspended() && j.heldBy == ""
}

// jobToPlan describes a job with running or runnable tasks of a phase; ok is false for others. Unknown
// work is 0: the scheduler then lets some tasks run to measure it.
func (l *leader) jobToPlan(j *job, p *forecast.Phase, task time.Duration, phase int, early bool) (x scheduler.Job, ok bool) {
	useful, tasks := l.limitByRoom(j, phase, l.usefulSlots(j, phase, early))
	if !j.plannable() || j.assign.Barred() || useful <= 0 {
		return x, false
	}
	settings := j.facts.Submission().Settings()
	return scheduler.Job{
		ID: j.id, Arrived: j.spec.arrived, Running: j.assign.UsedSlots(phase), Max: useful, Tasks: tasks,
		Work: p.Work(task), Alone: forecast.TotalSeconds(j.totalTasks(phase), task),
		Goal: admission.Goal(settings, j.spec.arrived), Priority: int(settings.Priority), Batch: settings.Batch, Flow: j.flowOf(),
	}, true
}

// usefulSlots is the number of slots of a phase that a job could use now. With early it includes
// reduces that are not ready yet.
func (l *leader) usefulSlots(j *job, phase int, early bool) int {
	now := j.assign.UsedSlots(phase) + l.toLaunch(j, phase)
	if early && phase == reducePhase && j.slowstarted() {
		return max(now, j.tasksLeft(phase))
	}
	return now
}

// transfers lists the unfinished shuffles.
func (l *leader) transfers(v *survey) (list []scheduler.Transfer) {
	for i := range v.tasks {
		j := v.tasks[i].job
		s := j.shuffle()
		if !j.plannable() || s.BytesLeft() <= 0 || j.partitions.ungathered == 0 {
			continue
		}
		list = append(list, scheduler.Transfer{
			ID: j.id, Ready: float64(s.Produced - s.Gathered), Left: float64(s.BytesLeft()), Whole: float64(s.Total),
			Maps: forecast.TotalSeconds(j.totalTasks(mapPhase), v.tasks[i].task),
		})
	}
	return list
}

// freeAt estimates in how many seconds each slot of a tracker becomes free, soonest first.
func (v *survey) freeAt(t *tracker) []float64 {
	usual := v.usual[v.phase].Task().Time
	rests := make([]float64, 0, max(t.slots[v.phase], len(t.attempts)))
	for _, a := range t.attempts {
		if a.id.Task.Kind.Slotted() && phaseOf(a.id.Task.Kind) == v.phase {
			rests = append(rests, forecast.Rest(cmp.Or(v.taskOf(a.job), usual), v.age(a)).Seconds())
		}
	}
	return forecast.FreeAt(t.slots[v.phase], rests)
}

// taskOf returns the estimated time of a job's tasks; 0: unknown.
func (v *survey) taskOf(j *job) time.Duration {
	i, found := slices.BinarySearchFunc(v.tasks, j.facts.N(), func(x surveyedJob, n int) int { return x.job.facts.N() - n })
	if !found {
		return 0
	}
	return v.tasks[i].task
}

// measuredOn converts the task times of one job for the scheduler.
func measuredOn(id wire.JobID, list []forecast.OnTracker) []scheduler.Measured {
	times := make([]scheduler.Measured, len(list))
	for i, o := range list {
		times[i] = scheduler.Measured{Job: id, Tracker: o.Tracker, Tasks: o.Tasks, Seconds: o.Seconds}
	}
	return times
}

// waitingPhase describes a phase that waits for others.
func (l *leader) waitingPhase(j *job, phase int) scheduler.LaterPhase {
	x := scheduler.LaterPhase{
		ID: j.id, Phase: l.phases[phase].kind, Flow: j.flowOf(), Max: j.tasksLeft(phase),
		Goal: admission.Goal(j.facts.Submission().Settings(), j.spec.arrived),
	}
	begun := j.facts.Maps() >= 0
	if phase == mapPhase && !begun {
		x.Max = j.expectedMaps()
	}
	if j.facts.Committing() {
		x.Max = 0
	}
	x.Work = forecast.TotalSeconds(x.Max, l.taskTime(j, phase).Time)
	switch {
	case phase == reducePhase && (!begun || j.tasksLeft(mapPhase) > 0):
		x.After = []scheduler.PhaseID{{Job: j.id, Phase: wire.Map}}
	case phase == mapPhase && !begun:
		for _, f := range l.facts.After(j.facts) {
			if !f.Ended() {
				x.After = append(x.After, scheduler.PhaseID{Job: l.facts.ID(f.N()), Phase: f.Kind()})
			}
		}
		x.Lag = l.setupLag(j).Seconds()
	}
	return x
}

// setupLag estimates the time between the last task of the jobs that a job reads from and its
// own first map: those jobs commit, and the job's setup runs.
func (l *leader) setupLag(j *job) time.Duration {
	commits := time.Duration(0)
	for _, f := range l.facts.After(j.facts) {
		if earlier := l.jobs[f.N()]; earlier != nil {
			commits = max(commits, forecast.Remaining(l.overheads.Close, earlier.service.commitBegan, l.now))
		}
	}
	return commits + forecast.Remaining(l.overheads.SetUp, j.service.setupLaunched, l.now)
}

// flowOf returns the number of the job's flow; 0 for a job submitted alone.
func (j *job) flowOf() int {
	if j.facts.Submission().Jobs() < 2 {
		return 0
	}
	return j.facts.Submission().First()
}
