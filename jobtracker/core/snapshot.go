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

// snapshot is what the policy sees of a phase. What only some policies look at is
// left out for the others: there may be much of it.
func (l *Live) snapshot(i int) scheduler.Snapshot {
	needs := menu.NeedsOf(l.sharing.Policy)
	v := l.survey(i)
	s := scheduler.Snapshot{
		Phase: l.phases[i].kind, Now: l.now, Metric: l.sharing.Metric, Slots: l.fleet.slots[i],
		Jobs: l.allocatable(v, needs.Early),
	}
	if v.usual.Known() {
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
		s.Later = l.later(&s)
		s.Flows = l.flows(&s)
	}
	return l.shape(s)
}

// survey is what is known of the tasks of a phase, of all jobs.
type survey struct {
	look
	jobs  []surveyed // as in Live.order, also those that get no more slots: some may run there
	usual forecast.Mean
}

// surveyed is a job's phase, and how long one of its tasks takes.
type surveyed struct {
	job   *job
	phase forecast.Phase
	task  time.Duration
}

func (l *Live) survey(phase int) *survey {
	v := &survey{look: l.lookAt(phase, l.now), jobs: make([]surveyed, len(l.order)), usual: l.meanTask(phase)}
	for i, j := range l.order {
		p := v.of(j)
		v.jobs[i] = surveyed{j, p, p.Correct(p.Task(l.overheads.WarmUp)).Time}
	}
	return v
}

// plannable says whether a policy is asked about a job.
func (j *job) plannable() bool { return j.runnable() && !j.facts.Submission().Suspended() }

// allocatable is the jobs with tasks of a phase that run or could. Where nothing is known
// of these the work is 0: the policy is to have it measured.
func (l *Live) allocatable(v *survey, early bool) (list []scheduler.Job) {
	for i := range v.jobs {
		x := &v.jobs[i]
		j := x.job
		most := l.useful(j, v.phase, early)
		if !j.plannable() || j.assign.Barred() || most <= 0 {
			continue
		}
		terms := j.facts.Submission().Terms()
		list = append(list, scheduler.Job{
			ID: j.id, Arrived: j.spec.arrived, Running: j.assign.InSlots(v.phase), Max: most,
			Work: x.phase.Work(x.task), Alone: forecast.TotalSeconds(j.total(v.phase), x.task),
			Goal: admission.Goal(terms, j.spec.arrived), Priority: int(terms.Priority), Batch: terms.Batch, Flow: j.flowOf(),
		})
	}
	return list
}

// useful is how many slots of a phase a job could use, or, early, is to be planned
// with: reduces that will be ready before the plan has been carried out.
func (l *Live) useful(j *job, phase int, early bool) int {
	now := j.assign.InSlots(phase) + l.toLaunch(j, phase)
	if early && phase == reducePhase && j.slowstarted() {
		return max(now, j.left(phase))
	}
	return now
}

// transfers is the shuffles of which something is left.
func (l *Live) transfers(v *survey) (list []scheduler.Transfer) {
	for i := range v.jobs {
		j := v.jobs[i].job
		s := j.shuffle()
		if !j.plannable() || s.Left() <= 0 || j.housing.open == 0 {
			continue
		}
		list = append(list, scheduler.Transfer{
			ID: j.id, Ready: float64(s.Made - s.Gathered), Left: float64(s.Left()), Whole: float64(s.Whole),
			Maps: forecast.TotalSeconds(j.total(mapPhase), v.jobs[i].task),
		})
	}
	return list
}

// freeTrackers is when each slot of the trackers is free.
func (l *Live) freeTrackers(v *survey) (list []scheduler.Tracker) {
	tasks := make(map[*job]time.Duration, len(v.jobs))
	for i := range v.jobs {
		tasks[v.jobs[i].job] = v.jobs[i].task
	}
	for _, t := range l.fleet.byIndex {
		if t != nil && t.counted[v.phase] > 0 {
			list = append(list, scheduler.Tracker{ID: t.Name, Free: v.freeAt(t, tasks)})
		}
	}
	return list
}

// freeAt is when each slot of a tracker is free, in seconds, soonest first. Tasks of
// which nothing is known are taken to be as long as others.
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

// toldPast is of how many jobs that have ended policies are told at most.
const toldPast = 16

// measured is how long the tasks of a phase took on each tracker, for policies to which
// trackers are not alike: of jobs that have not ended, together with those that their
// estimates go by, and of the last jobs that have ended, each of another name.
func (l *Live) measured(phase int) (list []scheduler.Measured) {
	for _, j := range l.order {
		var past map[string]*history.Sum
		if j.profile != nil {
			past = j.profile.Phases[phase].Trackers
		}
		list = append(list, measuredOn(j.id, forecast.OnTrackers(l.sums(j, phase).Trackers, past))...)
	}
	for _, x := range l.profiles.Latest(toldPast) {
		if !slices.ContainsFunc(l.order, func(j *job) bool { return j.profile == x }) {
			list = append(list, measuredOn(x.Job, forecast.ByTracker(x.Phases[phase].Trackers))...)
		}
	}
	return list
}

// measuredOn tells policies which job's tasks ended on each tracker.
func measuredOn(id wire.JobID, list []forecast.OnTracker) []scheduler.Measured {
	told := make([]scheduler.Measured, len(list))
	for i, o := range list {
		told[i] = scheduler.Measured{Job: id, Tracker: o.Tracker, Tasks: o.Tasks, Seconds: o.Seconds}
	}
	return told
}

// later is the phases that are to come and cannot use the snapshot's slots yet.
func (l *Live) later(s *scheduler.Snapshot) []scheduler.Later {
	now := make(map[int]bool, len(s.Jobs))
	for _, j := range s.Jobs {
		now[j.ID.N] = true
	}
	var later []scheduler.Later
	for _, j := range l.order {
		if j.held || j.finish.stopping || j.facts.Stopping() || j.facts.Submission().Suspended() {
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

// waitingPhase is a phase that waits for others.
func (l *Live) waitingPhase(j *job, phase int) scheduler.Later {
	x := scheduler.Later{
		ID: j.id, Phase: l.phases[phase].kind, Flow: j.flowOf(), Max: j.left(phase),
		Goal: admission.Goal(j.facts.Submission().Terms(), j.spec.arrived),
	}
	begun := j.facts.Maps() >= 0
	if phase == mapPhase && !begun {
		x.Max = j.unbegun()
	}
	if j.facts.Committing() {
		x.Max = 0
	}
	x.Work = forecast.TotalSeconds(x.Max, l.taskTime(j, phase).Time)
	switch {
	case phase == reducePhase && (!begun || j.left(mapPhase) > 0):
		x.After = []scheduler.PhaseID{{Job: j.id, Phase: wire.Map}}
	case phase == mapPhase && !begun:
		for _, f := range l.facts.After(j.facts) {
			if !f.Ended() {
				x.After = append(x.After, scheduler.PhaseID{Job: l.facts.ID(f.N()), Phase: f.Kind()})
			}
		}
		x.Lag = l.lag(j).Seconds()
	}
	return x
}

// lag is what passes until a job's maps can be launched once the last tasks of those
// that it waits for have ended: these close, and it is set up.
func (l *Live) lag(j *job) time.Duration {
	closes := time.Duration(0)
	for _, f := range l.facts.After(j.facts) {
		if before := l.jobs[f.N()]; before != nil {
			closes = max(closes, forecast.Left(l.overheads.Close, before.service.committing, l.now))
		}
	}
	return closes + forecast.Left(l.overheads.SetUp, j.service.preparing, l.now)
}

// flowOf is the number of the flow that a job is of, 0: it stands alone.
func (j *job) flowOf() int {
	if j.facts.Submission().Jobs() < 2 {
		return 0
	}
	return j.facts.Submission().First()
}

// flows is what the jobs of a snapshot are of, by the number of the first job. A job
// that stands alone is a flow of one.
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
