package core

import (
	"time"

	"github.com/quernmr/quern/jobtracker/core/assign"
	"github.com/quernmr/quern/jobtracker/core/pastplans"
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/wire"
)

// After a completed task, the next plan is requested when minPlanGap has passed since the last
// request, and planTimeFactor times the time that the answer took. So planning for many jobs
// does not use a whole processor.
const (
	minPlanGap     = 20 * time.Millisecond
	planTimeFactor = 5
)

// phase is the planning state of the map or the reduce phase.
type phase struct {
	index        int
	kind         wire.Kind
	seq          uint64
	planning     bool          // an Allocate is pending
	surveying    *survey       // it makes the snapshot for the next Allocate; nil: none
	surveyMemory surveyMemory  // of the last survey
	planAgain    bool          // planSoon was called during the survey
	nextPlanAt   time.Duration // when to request the next plan
	requestedAt  time.Duration // when the last plan was requested
	planTime     time.Duration // how long the last answer took
	noPlanReason string        // error of the last Allocate

	snapshotJobs  []plannedBounds  // of the jobs of the last snapshot
	snapshotPools []scheduler.Pool // pools of the last snapshot
	plannedAt     time.Duration    // when the plan in force was requested

	plan scheduler.Plan // the plan in force
	past pastplans.Log

	starvation starvation
}

// plannedBounds are the bounds of a job in a snapshot, see scheduler.Job.
type plannedBounds struct{ n, min, max, pool int }

func newPhase(k wire.Kind) phase {
	return phase{index: phaseOf(k), kind: k, nextPlanAt: never, requestedAt: -minPlanGap}
}

// dropPlan drops the plan. The answer to a pending Allocate will be ignored.
func (l *leader) dropPlan(p *phase) {
	p.planning, p.surveying = false, nil
	p.seq++
	l.assign.DropPlan(p.index)
	p.plan = scheduler.Plan{}
}

// planNow requests a plan at the end of the Step, for example when a job has its first tasks of
// the phase.
func (p *phase) planNow(now time.Duration) { p.nextPlanAt = min(p.nextPlanAt, now) }

// planSoon requests a plan soon: a slot is free, or a job needs fewer. During a survey the time of the
// last request is old, so the next one waits until this one is made.
func (p *phase) planSoon(now time.Duration) {
	if p.surveying != nil {
		p.planAgain = true
		return
	}
	p.nextPlanAt = min(p.nextPlanAt, max(now, p.requestedAt+max(minPlanGap, planTimeFactor*p.planTime)))
}

// isDue reports whether a plan is to be requested now.
func (l *leader) isDue(p *phase) bool {
	return !p.planning && p.surveying == nil && l.now >= p.nextPlanAt
}

// allocate begins to make the snapshots for the plans that are due.
func (l *leader) allocate() {
	for i := range l.phases {
		p := &l.phases[i]
		if !l.isDue(p) || !l.mayPlan(i) {
			continue
		}
		p.nextPlanAt, p.planAgain = never, false
		p.surveying = l.newSurvey(i)
		p.surveying.round.Request()
		l.works.Add(p.surveying)
	}
}

// requestPlan requests a plan for a snapshot.
func (l *leader) requestPlan(p *phase, s scheduler.Snapshot) {
	p.surveying = nil
	if len(s.Jobs) == 0 && len(s.Transfers) == 0 {
		p.noPlanReason = ""
		if l.assign.ForgetPlan(p.index) {
			p.plan = scheduler.Plan{}
			l.samplePlan(p)
			l.recordPlan(p)
		}
		return
	}
	p.seq++
	p.snapshotJobs, p.snapshotPools = p.snapshotJobs[:0], s.Pools
	for i := range s.Jobs {
		x := &s.Jobs[i]
		p.snapshotJobs = append(p.snapshotJobs, plannedBounds{x.ID.N, x.Min, x.Max, x.Pool})
	}
	p.planning, p.requestedAt, p.nextPlanAt = true, l.now, min(p.nextPlanAt, l.now+l.c.cfg.PlanPeriod)
	l.c.emit(Allocate{Epoch: l.epoch, Seq: p.seq, Phase: p.kind, Policy: l.sharing.Policy, Snapshot: s})
}

// allocated puts a new plan into force. After an error the old plan stays.
func (l *leader) allocated(r Allocated) {
	p := &l.phases[phaseOf(r.Phase)]
	if r.Epoch != l.epoch || r.Seq != p.seq || !p.planning {
		return
	}
	p.planning, p.planTime = false, l.now-p.requestedAt
	p.noPlanReason = ""
	if r.Err != nil {
		p.noPlanReason = r.Err.Error()
		return
	}
	p.plan, p.plannedAt = r.Plan, p.requestedAt
	l.charge(len(r.Plan.Targets) / 4)
	targets := make([]assign.Target, len(r.Plan.Targets))
	for i, t := range r.Plan.Targets {
		targets[i].Slots = t.Slots
		if j := l.job(t.Job); j != nil {
			targets[i].Job = &j.assign
			if j.partitions.homeless.Len() > 0 {
				l.touch(j) // its homes may wait for this, see awaitsRanking
			}
		}
	}
	l.assign.SetPlan(p.index, r.Seq, targets, l.queuesFor(p))
	l.samplePlan(p)
	l.recordPlan(p)
	if l.hasManyJobs() {
		l.recentForecast(l.now, statusForecastAge) // the next status should not get an old one
	}
}
