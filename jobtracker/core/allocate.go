package core

import (
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core/assign"
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/menu"
	"github.com/quernmr/quern/wire"
)

// Completed tasks ask for allocations at least so far apart, and so many times as far
// as a plan takes to make, so that planning for many jobs does not take a whole
// processor. The period bounds both.
const (
	completionGap = 20 * time.Millisecond
	planTimes     = 5
)

// phase is the allocation layer's side of the map or the reduce phase.
type phase struct {
	index  int
	kind   wire.Kind
	seq    uint64
	asked  bool          // an Allocate is under way
	due    time.Duration // of the next one
	last   time.Duration // when the last was asked for
	took   time.Duration // until the last was answered
	noPlan string        // why there is none of it

	seen      []scheduler.Job // of the last snapshot
	bounds    []scheduler.Pool
	plannedAt time.Duration // when the plan in force was asked for

	plan scheduler.Plan // in force
}

func newPhase(k wire.Kind) phase {
	return phase{index: phaseOf(k), kind: k, due: never, last: -completionGap}
}

// dropPlan forgets the plan, and the one that is asked for.
func (l *Live) dropPlan(p *phase) {
	p.asked = false
	p.seq++
	l.assign.DropPlan(p.index)
	p.plan = scheduler.Plan{}
}

// begun asks for a plan at once: a job has its first tasks of the phase.
func (p *phase) begun(now time.Duration) { p.due = min(p.due, now) }

// completed asks for a plan soon: a slot is free or a job needs fewer.
func (p *phase) completed(now time.Duration) {
	p.due = min(p.due, max(now, p.last+max(completionGap, planTimes*p.took)))
}

// allocate asks for the plans that are due.
func (l *Live) allocate() {
	for i := range l.phases {
		p := &l.phases[i]
		if p.asked || l.now < p.due {
			continue
		}
		s := l.snapshot(i)
		if len(s.Jobs) == 0 && len(s.Transfers) == 0 {
			p.due, p.noPlan = never, ""
			if l.assign.ForgetPlan(p.index) {
				p.plan = scheduler.Plan{}
				l.notePlan(p)
			}
			continue
		}
		p.seq++
		p.seen, p.bounds = slices.Clone(s.Jobs), s.Pools // the policy has the others
		p.asked, p.last, p.due = true, l.now, l.now+l.c.cfg.Period
		l.c.emit(Allocate{Epoch: l.epoch, Seq: p.seq, Phase: p.kind, Policy: l.wishes.name, Snapshot: s})
	}
}

// snapshot is what the policy sees of a phase. What only some policies look at is
// left out for the others: there may be much of it.
func (l *Live) snapshot(i int) scheduler.Snapshot {
	needs := menu.NeedsOf(l.wishes.name)
	s := scheduler.Snapshot{Phase: l.phases[i].kind, Now: l.now, Metric: l.wishes.metric}
	v := l.lookAt(i, l.now)
	whole := make(map[*job]time.Duration, len(l.order))
	usual := l.meanTime(i)
	for _, j := range l.order {
		t := v.corrected(j, l.taskTime(j, i))
		whole[j] = t.time // also of jobs that get no more slots: some may run there
		if !j.runnable() || j.facts.Submission().Suspended() {
			continue
		}
		if most := l.useful(j, i, needs.Early); most > 0 && !j.assign.Barred() {
			s.Jobs = append(s.Jobs, l.allocatable(j, v, t.time, most))
		}
		if needs.Transfers && i == mapPhase {
			if t, ok := j.transfer(t); ok {
				s.Transfers = append(s.Transfers, t)
			}
		}
	}
	s.Slots = l.slots[i]
	if needs.Trackers {
		for _, t := range l.byIndex {
			if t != nil && t.counted[i] > 0 {
				s.Trackers = append(s.Trackers, scheduler.Tracker{ID: t.Name, Free: l.freeAt(t, v, whole, usual.time)})
			}
		}
		for _, j := range l.order {
			s.Measured = append(s.Measured, l.endedTasks(j, i)...)
		}
		s.Measured = append(s.Measured, l.endedJobs(i)...)
	}
	if needs.Transfers && i == mapPhase {
		s.Bandwidth, _ = l.bandwidth()
	}
	if usual.source == sourceOthers {
		s.Usual = usual.time.Seconds()
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
func (l *Live) allocatable(j *job, v look, whole time.Duration, most int) scheduler.Job {
	terms := j.facts.Submission().Terms()
	return scheduler.Job{
		ID: j.id, Arrived: j.arrived, Running: j.assign.InSlots(v.phase), Max: most,
		Work:  v.work(j, whole),
		Alone: times(j.total(v.phase), whole),
		Goal:  goalOf(terms, j.arrived), Priority: int(terms.Priority), Batch: terms.Batch, Flow: j.flowOf(),
	}
}

// later is the phases that are to come and cannot use the snapshot's slots yet.
func (l *Live) later(s *scheduler.Snapshot) []scheduler.Later {
	now := make(map[int]bool, len(s.Jobs))
	for _, j := range s.Jobs {
		now[j.ID.N] = true
	}
	var later []scheduler.Later
	for _, j := range l.order {
		if j.held || j.stopping || j.facts.Stopping() || j.facts.Submission().Suspended() {
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
		Goal: goalOf(j.facts.Submission().Terms(), j.arrived),
	}
	begun := j.facts.Maps() >= 0
	if phase == mapPhase && !begun {
		x.Max = j.unbegun()
	}
	if j.facts.Committing() {
		x.Max = 0
	}
	x.Work = times(x.Max, l.taskTime(j, phase).time)
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
	rest := func(takes, since time.Duration) time.Duration {
		if since == 0 {
			return takes
		}
		return max(0, takes-(l.now-since))
	}
	closes := time.Duration(0)
	for _, f := range l.facts.After(j.facts) {
		if before := l.jobs[f.N()]; before != nil {
			closes = max(closes, rest(l.closeTime, before.committing))
		}
	}
	return closes + rest(l.setUpTime, j.preparing)
}

// allocated takes a new plan over. Without one the old plan stays.
func (l *Live) allocated(r Allocated) {
	p := &l.phases[phaseOf(r.Phase)]
	if r.Epoch != l.epoch || r.Seq != p.seq || !p.asked {
		return
	}
	p.asked, p.took = false, l.now-p.last
	p.noPlan = ""
	if r.Err != nil {
		p.noPlan = r.Err.Error()
		return
	}
	p.plan, p.plannedAt = r.Plan, p.last
	targets := make([]assign.Target, len(r.Plan.Targets))
	for i, t := range r.Plan.Targets {
		targets[i].Slots = t.Slots
		if j := l.job(t.Job); j != nil {
			targets[i].Job = &j.assign
			if j.homeless.Len() > 0 {
				l.touch(j) // its homes may have waited for this
			}
		}
	}
	l.assign.SetPlan(p.index, r.Seq, targets, l.queuesFor(p))
	l.notePlan(p)
}
