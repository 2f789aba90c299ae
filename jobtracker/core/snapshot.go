package core

import (
	"cmp"
	"slices"
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/jobtracker/core/forecast"
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/menu"
	"github.com/quernmr/quern/wire"
)

// snapshot is the policy's view of a phase. Fields that only some policies read are left empty
// for the others: they may be large.
func (l *Live) snapshot(i int) scheduler.Snapshot {
	needs := menu.NeedsOf(l.sharing.Policy)
	v := l.survey(i)
	s := scheduler.Snapshot{
		Phase: l.phases[i].kind, Now: l.now, Metric: l.sharing.Metric, Slots: l.fleet.slots[i],
		Jobs: l.jobsToPlan(v, needs.Early),
	}
	if v.usual.HasJobs() {
		s.Usual = v.usual.Task().Time.Seconds()
	}
	if needs.Transfers && i == mapPhase {
		b := l.bandwidth()
		s.Transfers, s.Bandwidth = l.transfers(v), b.Rate()
	}
	if needs.Trackers {
		s.Trackers, s.Measured = l.freeTrackers(v), l.measured(i)
	}
	if needs.Later {
		s.Later = l.laterPhases(&s)
		s.Flows = l.flows(&s)
	}
	return l.applyPools(s)
}

// phaseSurvey is what is known of a phase's tasks, of all jobs.
type phaseSurvey struct {
	runningTasks
	jobs  []surveyedJob // as in Live.order, with jobs that get no more slots: they may have running tasks
	usual forecast.Mean
}

// surveyedJob is a job's phase, and the time of one of its tasks.
type surveyedJob struct {
	job   *job
	phase forecast.Phase
	task  time.Duration
}

func (l *Live) survey(phase int) *phaseSurvey {
	v := &phaseSurvey{runningTasks: l.runningIn(phase, l.now), jobs: make([]surveyedJob, len(l.order)), usual: l.meanTask(phase)}
	for i, j := range l.order {
		p := v.describe(j)
		v.jobs[i] = surveyedJob{j, p, p.Correct(p.Task(l.overheads.WarmUp)).Time}
	}
	return v
}

// plannable says whether the policy plans for a job.
func (j *job) plannable() bool { return j.runnable() && !j.facts.Submission().Suspended() }

// jobsToPlan lists the jobs with running or runnable tasks of a phase. Unknown work is 0: the
// policy then lets some tasks run to measure it.
func (l *Live) jobsToPlan(v *phaseSurvey, early bool) (list []scheduler.Job) {
	for i := range v.jobs {
		x := &v.jobs[i]
		j := x.job
		most := l.usefulSlots(j, v.phase, early)
		if !j.plannable() || j.assign.Barred() || most <= 0 {
			continue
		}
		settings := j.facts.Submission().Settings()
		list = append(list, scheduler.Job{
			ID: j.id, Arrived: j.spec.arrived, Running: j.assign.UsedSlots(v.phase), Max: most,
			Work: x.phase.Work(x.task), Alone: forecast.TotalSeconds(j.totalTasks(v.phase), x.task),
			Goal: admission.Goal(settings, j.spec.arrived), Priority: int(settings.Priority), Batch: settings.Batch, Flow: j.flowOf(),
		})
	}
	return list
}

// usefulSlots is how many slots of a phase a job could use now. With early it counts reduces
// that will be ready before the plan has been carried out.
func (l *Live) usefulSlots(j *job, phase int, early bool) int {
	now := j.assign.UsedSlots(phase) + l.toLaunch(j, phase)
	if early && phase == reducePhase && j.slowstarted() {
		return max(now, j.tasksLeft(phase))
	}
	return now
}

// transfers lists the shuffles that are not finished.
func (l *Live) transfers(v *phaseSurvey) (list []scheduler.Transfer) {
	for i := range v.jobs {
		j := v.jobs[i].job
		s := j.shuffle()
		if !j.plannable() || s.BytesLeft() <= 0 || j.housing.open == 0 {
			continue
		}
		list = append(list, scheduler.Transfer{
			ID: j.id, Ready: float64(s.Produced - s.Gathered), Left: float64(s.BytesLeft()), Whole: float64(s.Total),
			Maps: forecast.TotalSeconds(j.totalTasks(mapPhase), v.jobs[i].task),
		})
	}
	return list
}

// freeTrackers says when each slot of the trackers is free.
func (l *Live) freeTrackers(v *phaseSurvey) (list []scheduler.Tracker) {
	tasks := make(map[*job]time.Duration, len(v.jobs))
	for i := range v.jobs {
		tasks[v.jobs[i].job] = v.jobs[i].task
	}
	for _, t := range l.fleet.byIndex {
		if t != nil && t.countedSlots[v.phase] > 0 {
			list = append(list, scheduler.Tracker{ID: t.Name, Free: v.freeAt(t, tasks)})
		}
	}
	return list
}

// freeAt says when each slot of a tracker is free, in seconds, soonest first. Tasks of unknown
// length count as long as the usual one.
func (v *phaseSurvey) freeAt(t *tracker, tasks map[*job]time.Duration) []float64 {
	usual := v.usual.Task().Time
	rests := make([]float64, 0, max(t.slots[v.phase], len(t.attempts)))
	for _, a := range t.attempts {
		if a.id.Task.Kind.Slotted() && phaseOf(a.id.Task.Kind) == v.phase {
			rests = append(rests, forecast.Rest(cmp.Or(tasks[a.job], usual), v.age(a)).Seconds())
		}
	}
	return forecast.FreeAt(t.slots[v.phase], rests)
}

// maxPastJobs is the maximum number of ended jobs in a snapshot.
const maxPastJobs = 16

// measured says how long tasks of a phase took on each tracker, for policies that tell trackers
// apart. It has the jobs that have not ended, with their profiles, and the last ended jobs of
// other names.
func (l *Live) measured(phase int) (list []scheduler.Measured) {
	for _, j := range l.order {
		var past map[string]*history.Sum
		if j.profile != nil {
			past = j.profile.Phases[phase].Trackers
		}
		list = append(list, measuredOn(j.id, forecast.OnTrackers(l.sums(j, phase).Trackers, past))...)
	}
	for _, x := range l.profiles.Latest(maxPastJobs) {
		if !slices.ContainsFunc(l.order, func(j *job) bool { return j.profile == x }) {
			list = append(list, measuredOn(x.Job, forecast.ByTracker(x.Phases[phase].Trackers))...)
		}
	}
	return list
}

// measuredOn converts the times of one job's tasks for policies.
func measuredOn(id wire.JobID, list []forecast.OnTracker) []scheduler.Measured {
	told := make([]scheduler.Measured, len(list))
	for i, o := range list {
		told[i] = scheduler.Measured{Job: id, Tracker: o.Tracker, Tasks: o.Tasks, Seconds: o.Seconds}
	}
	return told
}

// laterPhases lists the future phases that cannot use the snapshot's slots yet.
func (l *Live) laterPhases(s *scheduler.Snapshot) []scheduler.Later {
	now := make(map[int]bool, len(s.Jobs))
	for _, j := range s.Jobs {
		now[j.ID.N] = true
	}
	var later []scheduler.Later
	for _, j := range l.order {
		if j.recovering || j.finish.stopProposed || j.facts.Stopping() || j.facts.Submission().Suspended() {
			continue
		}
		for phase := range l.phases {
			if kind := l.phases[phase].kind; kind == s.Phase && now[j.facts.N()] {
				continue
			}
			if x := l.waitingPhase(j, phase); x.Max > 0 {
				later = append(later, x)
			}
		}
	}
	return later
}

// waitingPhase describes a phase that waits for others.
func (l *Live) waitingPhase(j *job, phase int) scheduler.Later {
	x := scheduler.Later{
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

// setupLag is the time between the end of the last task that a job waits for and its first
// maps: earlier jobs commit, and the job's setup runs.
func (l *Live) setupLag(j *job) time.Duration {
	closes := time.Duration(0)
	for _, f := range l.facts.After(j.facts) {
		if before := l.jobs[f.N()]; before != nil {
			closes = max(closes, forecast.Remaining(l.overheads.Close, before.service.commitSince, l.now))
		}
	}
	return closes + forecast.Remaining(l.overheads.SetUp, j.service.setupSince, l.now)
}

// flowOf is the number of the job's flow; 0 for a job submitted alone.
func (j *job) flowOf() int {
	if j.facts.Submission().Jobs() < 2 {
		return 0
	}
	return j.facts.Submission().First()
}

// flows lists the flows of a snapshot's jobs, by their first job's number. A job submitted
// alone is a flow of one.
func (l *Live) flows(s *scheduler.Snapshot) []scheduler.Flow {
	seen := make(map[int]bool, len(s.Jobs)+len(s.Later))
	for _, j := range s.Jobs {
		seen[j.ID.N] = true
	}
	for _, x := range s.Later {
		seen[x.ID.N] = true
	}
	usual := [2]time.Duration{l.usualTask(mapPhase).Time, l.usualTask(reducePhase).Time}
	var flows []scheduler.Flow
	for _, j := range l.order { // by number, so that a submission's jobs are neighbours
		if sub := j.facts.Submission(); seen[j.facts.N()] && (len(flows) == 0 || flows[len(flows)-1].First != sub.First()) {
			flows = append(flows, scheduler.Flow{First: sub.First(), Alone: forecast.Alone(l.fleet.slots, l.flow(sub, usual))})
		}
	}
	return flows
}
