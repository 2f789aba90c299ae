package core

import (
	"cmp"
	"slices"
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/jobtracker/core/forecast"
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/menu"
	"github.com/quernmr/quern/wire"
)

// survey is the work of making the scheduler's input for a phase. It visits all jobs; stages follow. Jobs
// that change during it are as they were when it came to them, and jobs that end after the visits stay in the
// input.
type survey struct {
	jobRound
	runningTasks
	needs  menu.Needs
	stages []stage // that are left
	surveyMemory
	batches  map[string]time.Duration // when the first job of each batch arrived, with tasks left or not
	usual    [2]forecast.Mean         // replaces unknown task times, by phase; of the other phase only for flows
	later    []scheduler.LaterPhase
	measured []scheduler.Measured
	profiles map[*history.Profile]bool // of the jobs in measured
	nextFlow int                       // index in tasks
	tracker  int                       // index in the fleet of the next one in snapshot.Trackers
	search   *victimSearch             // for pools that starve; nil: none is under way
	snapshot scheduler.Snapshot
}

// stage is a stage of a survey. It handles at most budget entries, but at least one thing if it is the first one in a
// piece of the survey.
type stage func(budget int, first bool) (spent int, done bool)

// surveyMemory is the part of a survey that is large, and that the next one may overwrite.
type surveyMemory struct {
	tasks []surveyedJob // in the order of leader.order; all jobs, since suspended ones may run tasks too
	list  []scheduler.Job
	fits  []int32 // the slots that fit each job of list
}

// take returns empty lists with the memory, for some jobs.
func (m *surveyMemory) take(jobs int) surveyMemory {
	x := surveyMemory{slices.Grow(m.tasks[:0], jobs), slices.Grow(m.list[:0], jobs), slices.Grow(m.fits[:0], jobs)}
	*m = surveyMemory{}
	return x
}

// surveyedJob has the estimated time of a job's tasks.
type surveyedJob struct {
	job    *job
	task   time.Duration
	listed bool // in survey.list
	later  bool // in survey.later
}

func (l *leader) newSurvey(phase int) *survey {
	v := &survey{
		runningTasks: l.newRunningTasks(phase, l.now), needs: menu.NeedsOf(l.sharing.Policy),
		surveyMemory: l.phases[phase].surveyMemory.take(len(l.order)),
		batches:      make(map[string]time.Duration), profiles: make(map[*history.Profile]bool),
		snapshot: scheduler.Snapshot{Phase: l.phases[phase].kind, Now: l.now, Metric: l.sharing.Metric},
	}
	v.jobRound = jobRound{l: l, visit: v.add, cost: oneEntry}
	v.stages = []stage{
		v.whole(v.dropEnded), v.addTrackers, v.whole(v.addLarge), v.whole(v.applyPools), v.whole(v.preempt), v.searchVictims, v.addFlows, v.whole(v.request),
	}
	if v.needs.Trackers {
		v.jobRound.cost = func(*job) int { return 1 + len(l.fleet.byNumber)/trackersPerEntry }
	}
	return v
}

// A job's measured times are looked up on trackersPerEntry trackers in the time of an entry.
const trackersPerEntry = 512

// stageParts is how many jobs a stage handles in the time of an entry.
const stageParts = 4

// Advance implements pieces.Work.
func (v *survey) Advance(budget int) (spent int, done bool) {
	if v.l.phases[v.phase].surveying != v {
		return 0, true // the scheduling has changed
	}
	if spent, done = v.jobRound.Advance(budget); !done {
		return spent, false
	}
	for ; len(v.stages) > 0; v.stages = v.stages[1:] {
		n, done := v.stages[0](budget-spent, spent == 0)
		if spent += n; !done {
			return spent, false
		}
	}
	return spent, true
}

// whole makes a stage that is one piece: it handles all jobs at once.
func (v *survey) whole(do func()) stage {
	return func(budget int, first bool) (spent int, done bool) {
		cost := 1 + len(v.tasks)/stageParts
		if cost > budget && !first {
			return 0, false
		}
		do()
		return cost, true
	}
}

// add adds a job.
func (v *survey) add(j *job) {
	l := v.l
	p := v.forecastPhase(j)
	task := p.Task(l.overheads.WarmUp)
	v.usual[v.phase].Add(task.Time)
	task = p.Correct(task)
	x, ok := l.jobToPlan(j, &p, task.Time, v.phase, v.needs.Early)
	if ok {
		v.list, v.fits = append(v.list, x), append(v.fits, int32(j.assign.Fits(v.phase)))
	}
	surveyed := surveyedJob{job: j, task: task.Time, listed: ok}
	if batch := j.facts.Submission().Settings().Batch; batch != "" {
		if at, known := v.batches[batch]; !known || j.spec.arrived < at {
			v.batches[batch] = j.spec.arrived
		}
	}
	if v.needs.Trackers {
		v.addMeasured(j)
	}
	if v.needs.Later {
		other := 1 - v.phase
		v.usual[other].Add(l.taskTime(j, other).Time)
		surveyed.later = v.addLater(j, ok)
	}
	v.tasks = append(v.tasks, surveyed)
}

// dropEnded removes the jobs that have ended since they were added. It begins the snapshot.
func (v *survey) dropEnded() {
	tasks, list, fits, next := v.tasks[:0], v.list[:0], v.fits[:0], 0
	for _, x := range v.tasks {
		if !x.job.facts.Ended() {
			tasks = append(tasks, x)
			if x.listed {
				list, fits = append(list, v.list[next]), append(fits, v.fits[next])
			}
		}
		if x.listed {
			next++
		}
	}
	v.tasks, v.list, v.fits = tasks, list, fits
	for phase := range v.usual {
		if phase == v.phase || v.needs.Later {
			v.l.addProfiles(&v.usual[phase], phase)
		}
	}
	s := &v.snapshot
	s.Slots, s.Jobs = v.l.fleet.slots[v.phase], v.list
	if usual := &v.usual[v.phase]; usual.HasJobs() {
		s.TaskSeconds = usual.Task().Time.Seconds()
	}
}

// addTrackers estimates when each slot of each tracker becomes free.
func (v *survey) addTrackers(budget int, first bool) (spent int, done bool) {
	if !v.needs.Trackers {
		return 0, true
	}
	for fleet := v.l.fleet.byIndex; v.tracker < len(fleet); v.tracker++ {
		if spent >= budget && !(first && spent == 0) {
			return spent, false
		}
		if t := fleet[v.tracker]; t != nil && t.countedSlots[v.phase] > 0 {
			spent += 1 + len(t.attempts)/stageParts
			v.snapshot.Trackers = append(v.snapshot.Trackers, scheduler.Tracker{ID: t.Name, Free: v.freeAt(t)})
		}
	}
	return spent, true
}

// addLarge adds fields that only some schedulers read.
func (v *survey) addLarge() {
	l, s := v.l, &v.snapshot
	if v.needs.Transfers && v.phase == mapPhase {
		b := l.bandwidth()
		s.Transfers, s.Bandwidth = l.transfers(v), b.Rate()
	}
	if v.needs.Trackers {
		s.Measured = v.measuredTimes()
	}
	if v.needs.Later {
		s.Later = v.later
	}
}

// applyPools adds batches and pools. All jobs of a batch get the arrival time of its first job that has not
// ended. It divides the shares of jobs by their dominant shares: if only half of the slots fit a job, each
// of its slots counts as two.
func (v *survey) applyPools() {
	for i := range v.list {
		if batch := v.list[i].Batch; batch != "" {
			v.list[i].Arrived = v.batches[batch]
		}
	}
	_, table := v.l.facts.Pools()
	v.snapshot = table.Apply(v.snapshot, v.l.poolOf, v.needs.Pools)
	s := &v.snapshot
	for i, fits := range v.fits {
		if 0 < fits && int(fits) < s.Slots {
			s.Jobs[i].Share = cmp.Or(s.Jobs[i].Share, 1) * float64(fits) / float64(s.Slots)
		}
	}
}

// preempt looks at pools that starve.
func (v *survey) preempt() { v.search = v.l.preempt(&v.l.phases[v.phase], &v.snapshot) }

// searchVictims searches for attempts to kill for pools that starve.
func (v *survey) searchVictims(budget int, first bool) (spent int, done bool) {
	switch {
	case v.search == nil:
		return 0, true
	case budget <= 0 && !first:
		return 0, false
	}
	return v.search.Advance(max(budget, 1))
}

// request requests the plan.
func (v *survey) request() {
	p := &v.l.phases[v.phase]
	clear(v.tasks) // they have pointers
	clear(v.list)
	p.surveyMemory = v.surveyMemory
	v.l.requestPlan(p, v.snapshot)
	if p.planAgain {
		p.planSoon(v.l.now)
	}
}

// addMeasured adds how long tasks of a job took on each tracker, and in its profile.
func (v *survey) addMeasured(j *job) {
	var past map[string]*history.Sum
	if j.profile != nil {
		past = j.profile.Phases[v.phase].Trackers
		v.profiles[j.profile] = true
	}
	v.measured = append(v.measured, measuredOn(j.id, forecast.OnTrackers(v.l.trackerTimes(j, v.phase).Trackers, past))...)
}

// maxPastJobs is the maximum number of ended jobs in a snapshot.
const maxPastJobs = 16

// measuredTimes lists how long tasks took on each tracker: in jobs that have not ended and in their
// profiles, and in the last ended jobs with other names. Jobs that have ended since they were added have
// new profiles: they are listed once.
func (v *survey) measuredTimes() []scheduler.Measured {
	added := v.measured // by number
	for _, x := range v.l.profiles.Latest(maxPastJobs) {
		_, again := slices.BinarySearchFunc(added, x.Job, func(m scheduler.Measured, id wire.JobID) int { return m.Job.Compare(id) })
		if !again && !v.profiles[x] {
			v.measured = append(v.measured, measuredOn(x.Job, forecast.ByTracker(x.Phases[v.phase].Trackers))...)
		}
	}
	return v.measured
}

// addLater adds the phases of a job that will have tasks, but cannot use the snapshot's slots yet. It
// reports whether there are any.
func (v *survey) addLater(j *job, inSnapshot bool) (added bool) {
	l := v.l
	if j.recovering || j.finish.stopProposed || j.facts.Stopping() || j.facts.Submission().Suspended() {
		return false
	}
	for phase := range l.phases {
		if phase == v.phase && inSnapshot {
			continue
		}
		if x := l.waitingPhase(j, phase); x.Max > 0 {
			v.later, added = append(v.later, x), true
		}
	}
	return added
}

// addFlows adds flows of the jobs in the snapshot, by number. A job submitted alone is a flow of one.
func (v *survey) addFlows(budget int, first bool) (spent int, done bool) {
	l := v.l
	if !v.needs.Later {
		return 0, true
	}
	usual := [2]time.Duration{v.usual[mapPhase].Task().Time, v.usual[reducePhase].Task().Time}
	for ; v.nextFlow < len(v.tasks); v.nextFlow++ {
		if spent >= budget && !(first && spent == 0) {
			return spent, false
		}
		spent++
		x := &v.tasks[v.nextFlow]
		sub, flows := x.job.facts.Submission(), v.snapshot.Flows
		if !x.listed && !x.later || x.job.facts.Ended() || len(flows) > 0 && flows[len(flows)-1].First == sub.First() {
			continue // the jobs of a submission follow each other
		}
		spent += sub.Jobs()
		v.snapshot.Flows = append(flows, scheduler.Flow{First: sub.First(), Alone: forecast.Alone(l.fleet.slots, l.forecastFlow(sub, usual))})
	}
	return spent, true
}
