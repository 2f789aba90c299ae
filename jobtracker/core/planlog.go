package core

import (
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/jobtracker/core/pastplans"
	"github.com/quernmr/quern/scheduler"
)

// A history has each change of the plans for its job, so that a run can be replayed. It lacks the
// plans of earlier leaders: they are too many for the log.

// planRecord is what plans assigned to a job.
type planRecord struct {
	plans        history.PlanLog
	shuffleTurn  int            // rank among the jobs with a share of the shuffle, from 1
	shuffleShare float64        // the share that trackers were sent
	sampled      *pastplans.Job // in samples of plans; nil: it is in none
	plansSince   int64          // when this leader's term began, in Unix milliseconds; 0: the job was submitted later
}

// historyForecastAge is the maximum age of the forecast in a history.
const historyForecastAge = 100 * time.Millisecond

// recordPlan records what a new plan assigns to each job. Without a plan it assigns nothing.
func (l *leader) recordPlan(p *phase) {
	if !l.c.cfg.History {
		return
	}
	r := &l.works.recording[p.index]
	r.queues = queuesOf(p.plan.Queues)
	if l.hasManyJobs() {
		l.recentForecast(l.now, historyForecastAge)
	}
	r.round.Request()
	l.works.Add(r)
}

// planRecording is the work of recording a plan.
type planRecording struct {
	jobRound
	queues map[int][]history.Queued // in the plan, by job number
}

// Advance implements pieces.Work. It waits for the forecast that considers the plan.
func (r *planRecording) Advance(budget int) (spent int, done bool) {
	if r.l.forecasts.making {
		return 1, false
	}
	return r.jobRound.Advance(budget)
}

func (l *leader) makePlanRecording(phase int) {
	r := &l.works.recording[phase]
	r.jobRound = jobRound{l: l, cost: oneEntry, visit: func(j *job) {
		planned := l.plannedFor(j, &l.phases[phase])
		planned.Queues = r.queues[j.facts.N()]
		l.recordPlanned(j, planned)
	}}
}

// recordShare records the new share of a job's shuffle.
func (l *leader) recordShare(j *job) {
	if l.c.cfg.History {
		p := &l.phases[mapPhase]
		planned := l.plannedFor(j, p)
		planned.Queues = j.planned.plans.Last(p.kind).Queues
		l.recordPlanned(j, planned)
	}
}

// plannedFor returns what the plan in force assigns to a job, without queues.
func (l *leader) plannedFor(j *job, p *phase) history.Planned {
	planned := history.Planned{At: l.wall(), Phase: p.kind, Scheduling: l.sharing.Requested}
	if x, ok := l.assign.PlanShare(p.index, &j.assign); ok {
		planned.Target, planned.Place, planned.Places = x.Slots, x.Rank+1, len(p.plan.Targets)
	}
	if p.index == mapPhase {
		planned.Share, planned.ShareRank = j.planned.shuffleShare, j.planned.shuffleTurn
	}
	return planned
}

// recordPlanned adds an assignment to a job's plan log if it has changed, or if the predicted end
// in the log is old.
func (l *leader) recordPlanned(j *job, planned history.Planned) {
	last := j.planned.plans.Last(planned.Phase)
	switch inPlan := planned.Place > 0 || planned.ShareRank > 0; {
	case last.At == 0 && !inPlan:
		return // the job has not been in a plan yet
	case planned.Same(last):
		old := time.Duration(planned.At-last.At)*time.Millisecond > (l.now-j.spec.arrived)/64
		if !inPlan || !old {
			return
		}
	}
	all := l.forecasts.last // recordPlan has asked for it
	if !l.hasManyJobs() {
		all = l.recentForecast(l.now, historyForecastAge)
	}
	if o := all.Of(j.facts.N()); o != nil {
		planned.End = l.wallOf(o.End)
	}
	j.planned.plans.Add(planned)
}

// queuesOf returns the queued tasks of each job, by job number.
func queuesOf(queues []scheduler.Queue) map[int][]history.Queued {
	if len(queues) == 0 {
		return nil
	}
	all := make(map[int][]history.Queued)
	for _, q := range queues {
		after := 0
		for _, r := range q.Runs {
			all[r.Job.N] = append(all[r.Job.N], history.Queued{Tracker: q.Tracker, After: after, Tasks: r.Tasks})
			after += r.Tasks
		}
	}
	return all
}

// plansMissing returns the time from which a job's plan log is complete, and why earlier plans
// are missing; 0: none are.
func (l *leader) plansMissing(j *job) (since int64, reason string) {
	switch {
	case j.planned.plans.LostBefore > 0:
		return j.planned.plans.LostBefore, "there were too many, and the older ones are not kept"
	case j.planned.plansSince > 0:
		return j.planned.plansSince, "an earlier leader made them"
	}
	return 0, ""
}
