package core

import (
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core/assign"
	"github.com/quernmr/quern/scheduler"
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
	index        int
	kind         wire.Kind
	seq          uint64
	planning     bool          // an Allocate is under way
	due          time.Duration // of the next one
	askedAt      time.Duration // when the last was asked for
	planTime     time.Duration // until the last was answered
	noPlanReason string        // why there is none of it

	snapshotJobs  []scheduler.Job // of the last snapshot
	snapshotPools []scheduler.Pool
	plannedAt     time.Duration // when the plan in force was asked for

	plan scheduler.Plan // in force
}

func newPhase(k wire.Kind) phase {
	return phase{index: phaseOf(k), kind: k, due: never, askedAt: -completionGap}
}

// dropPlan forgets the plan, and the one that is asked for.
func (l *Live) dropPlan(p *phase) {
	p.planning = false
	p.seq++
	l.assign.DropPlan(p.index)
	p.plan = scheduler.Plan{}
}

// begun asks for a plan at once: a job has its first tasks of the phase.
func (p *phase) planNow(now time.Duration) { p.due = min(p.due, now) }

// completed asks for a plan soon: a slot is free or a job needs fewer.
func (p *phase) planSoon(now time.Duration) {
	p.due = min(p.due, max(now, p.askedAt+max(completionGap, planTimes*p.planTime)))
}

// allocate asks for the plans that are due.
func (l *Live) allocate() {
	for i := range l.phases {
		p := &l.phases[i]
		if p.planning || l.now < p.due {
			continue
		}
		s := l.snapshot(i)
		if len(s.Jobs) == 0 && len(s.Transfers) == 0 {
			p.due, p.noPlanReason = never, ""
			if l.assign.ForgetPlan(p.index) {
				p.plan = scheduler.Plan{}
				l.notePlan(p)
			}
			continue
		}
		p.seq++
		p.snapshotJobs, p.snapshotPools = slices.Clone(s.Jobs), s.Pools // the policy has the others
		p.planning, p.askedAt, p.due = true, l.now, l.now+l.c.cfg.Period
		l.c.emit(Allocate{Epoch: l.epoch, Seq: p.seq, Phase: p.kind, Policy: l.sharing.Policy, Snapshot: s})
	}
}

// allocated takes a new plan over. Without one the old plan stays.
func (l *Live) allocated(r Allocated) {
	p := &l.phases[phaseOf(r.Phase)]
	if r.Epoch != l.epoch || r.Seq != p.seq || !p.planning {
		return
	}
	p.planning, p.planTime = false, l.now-p.askedAt
	p.noPlanReason = ""
	if r.Err != nil {
		p.noPlanReason = r.Err.Error()
		return
	}
	p.plan, p.plannedAt = r.Plan, p.askedAt
	targets := make([]assign.Target, len(r.Plan.Targets))
	for i, t := range r.Plan.Targets {
		targets[i].Slots = t.Slots
		if j := l.job(t.Job); j != nil {
			targets[i].Job = &j.assign
			if j.housing.homeless.Len() > 0 {
				l.touch(j) // its homes may have waited for this
			}
		}
	}
	l.assign.SetPlan(p.index, r.Seq, targets, l.queuesFor(p))
	l.notePlan(p)
}
