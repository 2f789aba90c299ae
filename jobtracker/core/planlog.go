package core

import (
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/scheduler"
)

// planRecord is what plans have had for a job.
type planRecord struct {
	plans        history.PlanLog
	shuffleTurn  int     // among those whose share of the shuffle trackers are told, from 1
	shuffleShare float64 // that they are told
	plansSince   int64   // Unix milliseconds since when plans are known, if an earlier leader had others
}

// Histories have what the plans in force had for their jobs whenever that changed, so
// that a run can be played again. What an earlier leader had planned nobody knows: plans
// are not in the log, for each would be there for good, and whoever leads next makes
// his own at once.

// forecastGap is the greatest age of the forecast in a history.
const historyForecastAge = 100 * time.Millisecond

// notePlan notes what the plan that is in force from now on, or that there is none, means
// for all jobs.
func (l *Live) notePlan(p *phase) {
	if !l.c.cfg.History {
		return
	}
	queues := queuesOf(p.plan.Queues)
	for _, j := range l.order {
		note := l.plannedFor(j, p)
		note.Queues = queues[j.facts.N()]
		l.note(j, note)
	}
}

// noteShare notes the share of a job's shuffle that trackers are told from now on.
func (l *Live) noteShare(j *job) {
	if l.c.cfg.History {
		p := &l.phases[mapPhase]
		note := l.plannedFor(j, p)
		note.Queues = j.planned.plans.Last(p.kind).Queues
		l.note(j, note)
	}
}

// noteOf is what the plan in force has for a job, but for queues.
func (l *Live) plannedFor(j *job, p *phase) history.Planned {
	note := history.Planned{At: l.wall(), Phase: p.kind, Scheduling: l.sharing.Asked}
	if x, ok := l.assign.Given(p.index, &j.assign); ok {
		note.Target, note.Place, note.Of = x.Slots, x.Rank+1, len(p.plan.Targets)
	}
	if p.index == mapPhase {
		note.Share, note.Turn = j.planned.shuffleShare, j.planned.shuffleTurn
	}
	return note
}

// note adds what is another than before, and the predicted end now and then.
func (l *Live) note(j *job, note history.Planned) {
	last := j.planned.plans.Last(note.Phase)
	switch named := note.Place > 0 || note.Turn > 0; {
	case last.At == 0 && !named:
		return // no plan has it yet
	case note.Same(last):
		old := time.Duration(note.At-last.At)*time.Millisecond > (l.now-j.spec.arrived)/64
		if !named || !old {
			return
		}
	}
	if o := l.recentForecast(l.now, historyForecastAge).Of(j.facts.N()); o != nil {
		note.End = l.wallOf(o.End)
	}
	j.planned.plans.Add(note)
}

// queuesOf is what stands in the queues of trackers, by the jobs' numbers.
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

// plansLack says since when all plans are known of a job, and why not those before; 0
// when all are.
func (l *Live) plansMissing(j *job) (since int64, why string) {
	switch {
	case j.planned.plans.Lost > 0:
		return j.planned.plans.Lost, "there were too many, and the older ones are not kept"
	case j.planned.plansSince > 0:
		return j.planned.plansSince, "they were an earlier leader's"
	}
	return 0, ""
}
