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

// finishing is how a job comes to its end.
type finishing struct {
	stopping      bool // its stop is proposed
	cleanupError  string
	closing       *facts.Ended // once all is done: its history is written, or it is proposed
	historyFailed int
}

// end closes a job's life, once: its history is written, then the log is told.
func (l *Live) end(j *job, outcome wire.State, text string) {
	if j.finish.closing != nil {
		return
	}
	j.finish.closing = l.ending(j, outcome, text)
	if !l.c.cfg.History {
		l.propose(j.finish.closing)
		return
	}
	l.writeHistory(j)
}

func (l *Live) writeHistory(j *job) {
	sub := j.facts.Submission()
	now := l.wall()
	r := &history.Record{
		Plan: *j.spec.plan, Owner: sub.Owner(), Submitted: sub.At(), Ended: now, Attempts: l.allAttempts(j), PlanLog: j.planned.plans.Bytes(),
		Token: j.spec.token, Unkept: j.ended.Unkept(),
	}
	r.PlansSince, r.PlansLack = l.plansLack(j)
	for i := range r.Attempts {
		// What an earlier attempt's late report has made needless is dropped with the job.
		if a := &r.Attempts[i]; !a.State.Final() {
			a.State, a.Took, a.Error = wire.AttemptKilled, now-a.Began, "the job has ended"
		}
	}
	r.Job = l.c.statusOf(j.facts, l.now)
	r.Job.State, r.Job.Waits = j.finish.closing.Outcome, ""
	endedStatus(*j.finish.closing, &r.Job)
	l.c.emit(WriteHistory{
		Epoch: l.epoch, Job: j.id, Record: r, After: faults.RetryDelay(j.finish.historyFailed),
		Name: history.Name(l.facts.Boot().Staging, time.UnixMilli(now), j.id),
	})
}

// historyWritten lets a job end. Without a history it ends after a few failures too.
func (l *Live) historyWritten(r HistoryWritten) {
	j := l.job(r.Job)
	if j == nil || r.Epoch != l.epoch || j.finish.closing == nil {
		return
	}
	if r.Err != nil {
		if j.finish.historyFailed++; j.finish.historyFailed < settings.ServiceAttempts {
			l.writeHistory(j)
			return
		}
		j.faults.Trouble(fmt.Sprintf("its history could not be written: %v", r.Err))
		j.finish.closing.Troubles = j.faults.Troubles()
	}
	l.propose(j.finish.closing)
}

// ending is the fact that closes j's life.
func (l *Live) ending(j *job, outcome wire.State, text string) *facts.Ended {
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

// ended forgets a job and lets the trackers do so.
func (l *Live) ended(j *job) {
	l.noteEnd(j.facts)
	l.remember(j)
	if j.service.committing > 0 && j.facts.End().Outcome == wire.Succeeded {
		l.overheads.Closed(l.now - j.service.committing)
	}
	l.clearTasks(j)
	for _, a := range sortedAttempts(j.attempts.all()) {
		l.remove(j, a.tracker, a)
	}
	delete(l.jobs, j.facts.N())
	l.assign.DropJob(&j.assign)
	for _, list := range []*[]*job{&l.order, &l.todo.unhoused} {
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
