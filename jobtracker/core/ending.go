package core

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/jobtracker/core/faults"
	"github.com/quernmr/quern/jobtracker/core/settings"
	"github.com/quernmr/quern/wire"
)

// finishing is the progress of a job's end.
type finishing struct {
	stopProposed    bool         // facts.Stopped is proposed
	cleanupError    string       // why the cleanup failed
	endFact         *facts.Ended // set once the job's attempts are done; then comes the history
	historyFailures int          // failed attempts to write the history
}

// endJob ends a job after all its attempts, once. First its history is written, then endFact is
// proposed.
func (l *leader) endJob(j *job, outcome wire.State, text string) {
	if j.finish.endFact != nil {
		return
	}
	j.finish.endFact = l.endFactOf(j, outcome, text)
	if !l.c.cfg.History {
		l.propose(j.finish.endFact)
		return
	}
	l.writeHistory(j)
}

func (l *leader) writeHistory(j *job) {
	sub := j.facts.Submission()
	now := l.wall()
	r := &history.Record{
		Plan: *j.spec.plan, Owner: sub.Owner(), Submitted: sub.At(), Ended: now, PlanLog: j.planned.plans.Bytes(),
		Token: j.spec.token, Omitted: j.ended.Omitted(), Usual: l.usual(j), View: sub.View(), HasView: true, Modify: sub.Modify(),
		Program: &sub.Body().Program,
	}
	l.addPoint(j)
	r.Curve = j.tally.curve.Points()
	r.PlansSince, r.PlansSinceReason = l.plansMissing(j)
	r.Job = l.c.statusOf(j.facts, l.now)
	l.detail(j, &r.Job, l.now)
	r.Job.State, r.Job.WaitReason = j.finish.endFact.Outcome, ""
	endedStatus(*j.finish.endFact, &r.Job)
	l.effect(WriteHistory{
		Epoch: l.epoch, Job: j.id, record: r, attempts: l.freezeAttempts(j), Delay: faults.RetryDelay(j.finish.historyFailures),
		URL: history.Name(l.facts.Boot().Staging, time.UnixMilli(now), j.id),
	})
}

// Record makes the job's history. Any goroutine may call it: it takes long for a large job.
func (c *WriteHistory) Record() *history.Record {
	r := *c.record
	r.Attempts = c.attempts.Statuses()
	for i := range r.Attempts {
		// After a late report of another attempt, an attempt may still run. It ends with the job.
		if a := &r.Attempts[i]; !a.State.Final() {
			a.State, a.Took, a.Error = wire.AttemptKilled, r.Ended-a.Began, "the job has ended"
		}
	}
	return &r
}

// historyWritten proposes the job's end. After ServiceAttempts failures it proposes the end
// without a history.
func (l *leader) historyWritten(r HistoryWritten) {
	j := l.job(r.Job)
	if j == nil || r.Epoch != l.epoch || j.finish.endFact == nil {
		return
	}
	if r.Err != nil {
		if j.finish.historyFailures++; j.finish.historyFailures < settings.ServiceAttempts {
			l.writeHistory(j)
			return
		}
		j.faults.AddTrouble(fmt.Sprintf("its history could not be written: %v", r.Err))
		j.finish.endFact.Troubles = j.faults.Troubles()
		l.c.noteChange(j.id)
	}
	l.propose(j.finish.endFact)
}

func (l *leader) endFactOf(j *job, outcome wire.State, text string) *facts.Ended {
	x := &facts.Ended{
		Job: j.facts.N(), Outcome: outcome, Error: wire.Truncate(text, 2*faults.MaxReason),
		Troubles: j.faults.Troubles(),
		Elapsed:  (l.now - j.spec.arrived).Milliseconds(), Read: j.tally.read, Shuffled: j.outputs.bytes,
		Maps: j.mapsDone(),
	}
	if outcome == wire.Succeeded {
		x.Maps = len(j.maps) - j.facts.GivenUpTasks(wire.Map).Len()
	}
	if stop := j.facts.Stop(); j.facts.Stopping() {
		x.With = stop.With
	}
	total := l.totals(j)
	for group, names := range total {
		for name, value := range names {
			x.Counters = append(x.Counters, facts.Counter{Group: group, Name: name, Value: value})
		}
	}
	slices.SortFunc(x.Counters, func(a, b facts.Counter) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Name, b.Name))
	})
	return x
}

// jobEnded removes an ended job, and tells the trackers to drop it.
func (l *leader) jobEnded(j *job) {
	l.logJobEnd(j.facts)
	l.c.counts.Ended[j.facts.End().Outcome].Add(1)
	l.countForecastError(j)
	l.keepProfile(j)
	if j.service.commitBegan > 0 && j.facts.End().Outcome == wire.Succeeded {
		l.overheads.AddClose(l.now - j.service.commitBegan)
	}
	l.clearTasks(j)
	for _, a := range sortedAttempts(j.attempts.all()) {
		l.removeAttempt(j, a.tracker, a)
		l.answerEnds(a, wire.AttemptKilled, false)
	}
	l.placeFreed()
	delete(l.jobs, j.facts.N())
	l.rememberEnded(j)
	l.limited.quota.Remove(j.facts.N())
	l.assign.DropJob(&j.assign)
	for _, list := range []*[]*job{&l.order, &l.todo.noHomeFound} {
		*list = slices.DeleteFunc(*list, func(x *job) bool { return x == j })
	}
	drop := &wire.DropJob{Epoch: l.epoch, Job: j.id, EndedStaging: l.facts.StagingIfEnded(j.facts.Submission())}
	for _, t := range l.fleet.byIndex {
		if t != nil {
			l.send(t, drop)
		}
	}
	l.answerKills(j.facts)
	l.touchFlow(j.facts)
	l.removeStaging(j.facts.Submission())
	l.dropChanges(j.facts.Submission())
}
