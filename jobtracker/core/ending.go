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
	stopProposed    bool // its stop is proposed
	cleanupError    string
	endFact         *facts.Ended // set once all is done: its history is being written, or it is proposed
	historyFailures int
}

// end begins a job's end, once: its history is written, then the end goes into the log.
func (l *Live) end(j *job, outcome wire.State, text string) {
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

func (l *Live) writeHistory(j *job) {
	sub := j.facts.Submission()
	now := l.wall()
	r := &history.Record{
		Plan: *j.spec.plan, Owner: sub.Owner(), Submitted: sub.At(), Ended: now, Attempts: l.allAttempts(j), PlanLog: j.planned.plans.Bytes(),
		Token: j.spec.token, Omitted: j.ended.Unkept(),
	}
	r.PlansSince, r.PlansSinceReason = l.plansMissing(j)
	for i := range r.Attempts {
		// Attempts that run on after a late report of another one end with the job.
		if a := &r.Attempts[i]; !a.State.Final() {
			a.State, a.Took, a.Error = wire.AttemptKilled, now-a.Began, "the job has ended"
		}
	}
	r.Job = l.c.statusOf(j.facts, l.now)
	r.Job.State, r.Job.WaitReason = j.finish.endFact.Outcome, ""
	endedStatus(*j.finish.endFact, &r.Job)
	l.c.emit(WriteHistory{
		Epoch: l.epoch, Job: j.id, Record: r, After: faults.RetryDelay(j.finish.historyFailures),
		Name: history.Name(l.facts.Boot().Staging, time.UnixMilli(now), j.id),
	})
}

// historyWritten proposes the job's end. After some failures it does so without a history.
func (l *Live) historyWritten(r HistoryWritten) {
	j := l.job(r.Job)
	if j == nil || r.Epoch != l.epoch || j.finish.endFact == nil {
		return
	}
	if r.Err != nil {
		if j.finish.historyFailures++; j.finish.historyFailures < settings.ServiceAttempts {
			l.writeHistory(j)
			return
		}
		j.faults.Trouble(fmt.Sprintf("its history could not be written: %v", r.Err))
		j.finish.endFact.Troubles = j.faults.Troubles()
	}
	l.propose(j.finish.endFact)
}

// endFactOf makes the fact that ends j.
func (l *Live) endFactOf(j *job, outcome wire.State, text string) *facts.Ended {
	x := &facts.Ended{
		Job: j.facts.N(), Outcome: outcome, Error: wire.Bounded(text, 2*faults.MaxReason),
		Troubles: j.faults.Troubles(),
		Elapsed:  (l.now - j.spec.arrived).Milliseconds(), Read: j.tally.read, Shuffled: j.outputs.bytes,
		Maps: j.mapsDone(),
	}
	if outcome == wire.Succeeded {
		x.Maps = len(j.maps)
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

// jobEnded forgets a job and tells the trackers to drop it.
func (l *Live) jobEnded(j *job) {
	l.noteEnd(j.facts)
	l.keepProfile(j)
	if j.service.commitSince > 0 && j.facts.End().Outcome == wire.Succeeded {
		l.overheads.Closed(l.now - j.service.commitSince)
	}
	l.clearTasks(j)
	for _, a := range sortedAttempts(j.attempts.all()) {
		l.remove(j, a.tracker, a)
	}
	delete(l.jobs, j.facts.N())
	l.assign.DropJob(&j.assign)
	for _, list := range []*[]*job{&l.order, &l.todo.noHomeFound} {
		*list = slices.DeleteFunc(*list, func(x *job) bool { return x == j })
	}
	drop := &wire.DropJob{Epoch: l.epoch, Job: j.id, Done: l.facts.StagingIfEnded(j.facts.Submission())}
	for _, t := range l.fleet.byIndex {
		if t != nil {
			l.send(t, drop)
		}
	}
	l.answerKills(j.facts)
	l.touchFlow(j.facts)
	l.sweep(j.facts.Submission())
	l.dropChanges(j.facts.Submission())
}
