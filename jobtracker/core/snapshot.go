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

// survey is the work of making the scheduler's input for a phase. It describes the tasks of the phase in
// all jobs. Jobs that change during it are as they were when it came to them.
type survey struct {
	jobRound
	runningTasks
	began    time.Duration
	pieces   int
	complete bool // all jobs are visited
	early    bool // see menu.Needs
	list     []scheduler.Job
	tasks    []surveyedJob // in the order of leader.order; all jobs, since suspended ones may run tasks too
	usual    forecast.Mean // replaces unknown task times
}

// surveyedJob has the estimated time of a job's tasks.
type surveyedJob struct {
	job  *job
	task time.Duration
}

func (l *leader) newSurvey(phase int) *survey {
	v := &survey{
		runningTasks: l.newRunningTasks(phase, l.now), began: l.now, early: menu.NeedsOf(l.sharing.Policy).Early,
		tasks: make([]surveyedJob, 0, len(l.order)), list: make([]scheduler.Job, 0, len(l.order)),
	}
	v.jobRound = jobRound{l: l, visit: v.add, cost: oneEntry}
	return v
}

// Advance implements pieces.Work. If there are many jobs, the end is a piece of its own.
func (v *survey) Advance(budget int) (spent int, done bool) {
	p := &v.l.phases[v.phase]
	if p.surveying != v {
		return 0, true // the scheduling has changed
	}
	v.pieces++
	if !v.complete {
		if spent, v.complete = v.jobRound.Advance(budget); !v.complete || v.pieces > 1 {
			return max(spent, 1), false
		}
	}
	v.l.requestPlan(p, v.snapshot())
	return max(spent, 1), true
}

// add adds a job.
func (v *survey) add(j *job) {
	p := v.forecastPhase(j)
	task := p.Task(v.l.overheads.WarmUp)
	v.usual.Add(task.Time)
	task = p.Correct(task)
	v.tasks = append(v.tasks, surveyedJob{j, task.Time})
	if x, ok := v.l.jobToPlan(j, &p, task.Time, v.phase, v.early); ok {
		v.list = append(v.list, x)
	}
}

// snapshot makes the snapshot. Large fields are filled only for schedulers that read them.
func (v *survey) snapshot() scheduler.Snapshot {
	l := v.l
	if v.pieces > 1 { // jobs may have ended
		v.tasks = slices.DeleteFunc(v.tasks, func(x surveyedJob) bool { return l.jobs[x.job.facts.N()] != x.job })
		v.list = slices.DeleteFunc(v.list, func(x scheduler.Job) bool { return l.jobs[x.ID.N] == nil })
	}
	l.addProfiles(&v.usual, v.phase)
	needs := menu.NeedsOf(l.sharing.Policy)
	s := scheduler.Snapshot{
		Phase: l.phases[v.phase].kind, Now: v.began, Metric: l.sharing.Metric, Slots: l.fleet.slots[v.phase], Jobs: v.list,
	}
	if v.usual.HasJobs() {
		s.TaskSeconds = v.usual.Task().Time.Seconds()
	}
	if needs.Transfers && v.phase == mapPhase {
		b := l.bandwidth()
		s.Transfers, s.Bandwidth = l.transfers(v), b.Rate()
	}
	if needs.Trackers {
		s.Trackers, s.Measured = l.freeTrackers(v), l.measuredTimes(v.phase)
	}
	if needs.Later {
		s.Later = l.laterPhases(&s)
		s.Flows = l.flows(&s)
	}
	return l.weighByRoom(l.applyPools(s))
}

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

// freeTrackers estimates when each slot of each tracker becomes free.
func (l *leader) freeTrackers(v *survey) (list []scheduler.Tracker) {
	tasks := make(map[*job]time.Duration, len(v.tasks))
	for i := range v.tasks {
		tasks[v.tasks[i].job] = v.tasks[i].task
	}
	for _, t := range l.fleet.byIndex {
		if t != nil && t.countedSlots[v.phase] > 0 {
			list = append(list, scheduler.Tracker{ID: t.Name, Free: v.freeAt(t, tasks)})
		}
	}
	return list
}

// freeAt estimates in how many seconds each slot of a tracker becomes free, soonest first.
func (v *survey) freeAt(t *tracker, tasks map[*job]time.Duration) []float64 {
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

// measuredTimes lists how long tasks of a phase took on each tracker: in jobs that have not ended
// and in their profiles, and in the last ended jobs with other names.
func (l *leader) measuredTimes(phase int) (list []scheduler.Measured) {
	for _, j := range l.order {
		var past map[string]*history.Sum
		if j.profile != nil {
			past = j.profile.Phases[phase].Trackers
		}
		list = append(list, measuredOn(j.id, forecast.OnTrackers(l.trackerTimes(j, phase).Trackers, past))...)
	}
	for _, x := range l.profiles.Latest(maxPastJobs) {
		if !slices.ContainsFunc(l.order, func(j *job) bool { return j.profile == x }) {
			list = append(list, measuredOn(x.Job, forecast.ByTracker(x.Phases[phase].Trackers))...)
		}
	}
	return list
}

// measuredOn converts the task times of one job for the scheduler.
func measuredOn(id wire.JobID, list []forecast.OnTracker) []scheduler.Measured {
	times := make([]scheduler.Measured, len(list))
	for i, o := range list {
		times[i] = scheduler.Measured{Job: id, Tracker: o.Tracker, Tasks: o.Tasks, Seconds: o.Seconds}
	}
	return times
}

// laterPhases lists the phases that will have tasks, but cannot use the snapshot's slots yet.
func (l *leader) laterPhases(s *scheduler.Snapshot) []scheduler.LaterPhase {
	inSnapshot := make(map[int]bool, len(s.Jobs))
	for _, j := range s.Jobs {
		inSnapshot[j.ID.N] = true
	}
	var later []scheduler.LaterPhase
	for _, j := range l.order {
		if j.recovering || j.finish.stopProposed || j.facts.Stopping() || j.facts.Submission().Suspended() {
			continue
		}
		for phase := range l.phases {
			if kind := l.phases[phase].kind; kind == s.Phase && inSnapshot[j.facts.N()] {
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

// flows lists the flows of a snapshot's jobs, by number. A job submitted alone is a flow of one.
func (l *leader) flows(s *scheduler.Snapshot) []scheduler.Flow {
	inSnapshot := make(map[int]bool, len(s.Jobs)+len(s.Later))
	for _, j := range s.Jobs {
		inSnapshot[j.ID.N] = true
	}
	for _, x := range s.Later {
		inSnapshot[x.ID.N] = true
	}
	usual := [2]time.Duration{l.usualTask(mapPhase).Time, l.usualTask(reducePhase).Time}
	var flows []scheduler.Flow
	for _, j := range l.order { // the jobs of a submission follow each other
		if sub := j.facts.Submission(); inSnapshot[j.facts.N()] && (len(flows) == 0 || flows[len(flows)-1].First != sub.First()) {
			flows = append(flows, scheduler.Flow{First: sub.First(), Alone: forecast.Alone(l.fleet.slots, l.forecastFlow(sub, usual))})
		}
	}
	return flows
}
