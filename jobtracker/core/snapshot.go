package core

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/jobtracker/core/forecast"
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/menu"
	"github.com/quernmr/quern/wire"
)

// snapshot is what the policy sees of a phase. What only some policies look at is
// left out for the others: there may be much of it.
func (l *Live) snapshot(i int) scheduler.Snapshot {
	needs := menu.NeedsOf(l.requests.wishes.name)
	s := scheduler.Snapshot{Phase: l.phases[i].kind, Now: l.now, Metric: l.requests.wishes.metric}
	v := l.lookAt(i, l.now)
	whole := make(map[*job]time.Duration, len(l.order))
	usual := l.meanTask(i)
	for _, j := range l.order {
		p := v.of(j)
		t := p.Correct(p.Task(l.overheads.WarmUp)).Time
		whole[j] = t // also of jobs that get no more slots: some may run there
		if !j.runnable() || j.facts.Submission().Suspended() {
			continue
		}
		if most := l.useful(j, i, needs.Early); most > 0 && !j.assign.Barred() {
			s.Jobs = append(s.Jobs, j.allocatable(i, p.Work(t), t, most))
		}
		if needs.Transfers && i == mapPhase {
			if t, ok := j.transfer(t); ok {
				s.Transfers = append(s.Transfers, t)
			}
		}
	}
	s.Slots = l.fleet.slots[i]
	if needs.Trackers {
		for _, t := range l.fleet.byIndex {
			if t != nil && t.counted[i] > 0 {
				s.Trackers = append(s.Trackers, scheduler.Tracker{ID: t.Name, Free: v.freeAt(t, whole, usual.Task().Time)})
			}
		}
		for _, j := range l.order {
			s.Measured = append(s.Measured, l.endedTasks(j, i)...)
		}
		s.Measured = append(s.Measured, l.endedJobs(i)...)
	}
	if needs.Transfers && i == mapPhase {
		b := l.bandwidth()
		s.Bandwidth = b.Rate()
	}
	if usual.Known() {
		s.Usual = usual.Task().Time.Seconds()
	}
	if needs.Later {
		s.Later = l.later(&s)
		s.Flows = l.flows(&s)
	}
	return l.shape(s)
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

// allocatable is a job's phase with tasks that run or could. Of a phase of which
// nothing is known the work is 0: the policy is to have it measured.
func (j *job) allocatable(phase int, work float64, whole time.Duration, most int) scheduler.Job {
	terms := j.facts.Submission().Terms()
	return scheduler.Job{
		ID: j.id, Arrived: j.spec.arrived, Running: j.assign.InSlots(phase), Max: most,
		Work: work, Alone: forecast.Times(j.total(phase), whole),
		Goal: goalOf(terms, j.spec.arrived), Priority: int(terms.Priority), Batch: terms.Batch, Flow: j.flowOf(),
	}
}

// transfer is a job's shuffle for policies; ok is false when nothing is left of it.
func (j *job) transfer(oneMap time.Duration) (t scheduler.Transfer, ok bool) {
	s := j.shuffle()
	if s.Left() <= 0 || j.housing.open == 0 {
		return t, false
	}
	return scheduler.Transfer{
		ID: j.id, Ready: float64(s.Made - s.Gathered), Left: float64(s.Left()), Whole: float64(s.Whole),
		Maps: forecast.Times(j.total(mapPhase), oneMap),
	}, true
}

// freeAt is when each slot of a tracker is free, in seconds, soonest first. Tasks of
// which nothing is known are taken to be as long as others.
func (v *look) freeAt(t *tracker, whole map[*job]time.Duration, usual time.Duration) []float64 {
	rests := make([]float64, 0, max(t.slots[v.phase], len(t.attempts)))
	for _, a := range t.attempts {
		if a.id.Task.Kind.Slotted() && phaseOf(a.id.Task.Kind) == v.phase {
			rests = append(rests, forecast.Rest(cmp.Or(whole[a.job], usual), v.age(a)).Seconds())
		}
	}
	return forecast.FreeAt(t.slots[v.phase], rests)
}

// endedTasks is the tasks of earlier and of this run on each tracker, for policies to
// which trackers are not alike.
func (l *Live) endedTasks(j *job, phase int) []scheduler.Measured {
	var past map[string]*history.Sum
	if j.profile != nil {
		past = j.profile.Phases[phase].Trackers
	}
	return measuredOn(j.id, forecast.OnTrackers(l.sums(j, phase).Trackers, past))
}

// toldPast is of how many jobs that have ended policies are told at most.
const toldPast = 16

// endedJobs is the tasks of the last jobs that have ended, each of another name: they tell
// of the trackers. Those that a job goes by that has not ended are among its own.
func (l *Live) endedJobs(phase int) (list []scheduler.Measured) {
	past := slices.SortedFunc(maps.Values(l.profiles.known), func(a, b *history.Profile) int { return b.Job.Compare(a.Job) })
	for _, x := range past[:min(toldPast, len(past))] {
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
		Goal: goalOf(j.facts.Submission().Terms(), j.spec.arrived),
	}
	begun := j.facts.Maps() >= 0
	if phase == mapPhase && !begun {
		x.Max = j.unbegun()
	}
	if j.facts.Committing() {
		x.Max = 0
	}
	x.Work = forecast.Times(x.Max, l.taskTime(j, phase).Time)
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
