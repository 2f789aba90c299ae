package core

import (
	"fmt"
	"reflect"

	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/jobtracker/core/faults"
	"github.com/quernmr/quern/wire"
)

// requests are the requests of clients that wait for a log entry, oldest first. The keys are
// "submit KEY", "kill N", "change KEY", "schedule", "drain" and "exclude". Submits of one user with the same key
// get the same answer, and so do kills of one job. Others are proposed one by one, see proposeInOrder.
type requests map[string][]waitingRequest

func submitKey(key string) string { return "submit " + key }
func changeKey(key string) string { return "change " + key }
func killKey(f *facts.Job) string { return fmt.Sprintf("kill %d", f.N()) }

// waitingRequest is a request and its proposal.
type waitingRequest struct {
	request
	proposed facts.Fact // its last proposal; nil for submits, kills and requests that wait for others
}

// add adds a request. first is true if no other request with its key waits.
func (q requests) add(key string, r request) (first bool) {
	q[key] = append(q[key], waitingRequest{request: r})
	return len(q[key]) == 1
}

func (l *leader) reply(r request, err error) { l.c.emit(Reply{Token: r.token(), Err: err}) }

// replyAll answers all requests with a key.
func (l *leader) replyAll(key string, answer Reply) {
	for _, w := range l.requests[key] {
		answer.Token = w.token()
		l.c.emit(answer)
	}
	delete(l.requests, key)
}

// proposeInOrder proposes the fact for a request, after earlier requests with the same key.
func (l *leader) proposeInOrder(key string, r request) {
	if l.requests.add(key, r) {
		l.proposeFirst(key)
	}
}

// appliedInOrder handles an applied entry. If the entry carries out the first request, it answers
// the request and proposes the next one. Else, as after an entry of an earlier leader, it
// proposes the first request again.
func (l *leader) appliedInOrder(key string, x facts.Fact, changed bool) {
	if list := l.requests[key]; len(list) > 0 && changed && list[0].matches(x) {
		l.answerFirst(key, nil)
	}
	l.proposeFirst(key)
}

func (l *leader) answerFirst(key string, err error) {
	list := l.requests[key]
	l.reply(list[0], err)
	if l.requests[key] = list[1:]; len(list) == 1 {
		delete(l.requests, key)
	}
}

// proposeFirst proposes the fact for the first request that does not exceed a limit by now.
func (l *leader) proposeFirst(key string) {
	for len(l.requests[key]) > 0 {
		first := &l.requests[key][0]
		if r, ok := first.request.(Change); ok {
			if err := l.reserveMove(r); err != nil {
				l.answerFirst(key, err)
				continue
			}
		}
		first.proposed = l.factOf(first.request)
		l.propose(first.proposed)
		return
	}
}

// factOf makes the fact that carries out a request, which depends on the current Facts.
func (l *leader) factOf(r request) facts.Fact {
	switch r := r.(type) {
	case Change:
		return admission.ChangeFact(l.facts.Find(r.Job).Submission(), r.Change, l.wall())
	case Schedule:
		current := l.facts.Scheduled()
		return &facts.SchedulingChanged{N: current.N + 1, Scheduling: r.Scheduling.WithDefaults(current.Scheduling)}
	case Drain:
		return &facts.Drain{N: l.facts.Drains() + 1, Tracker: r.Tracker, Undo: r.Undo}
	case Exclude:
		return l.exclusionFactOf(r)
	}
	panic(fmt.Sprintf("core: unexpected request %T", r))
}

// matches reports whether an entry carries out the request. Empty fields of a Schedule match any
// value.
func (w *waitingRequest) matches(x facts.Fact) bool {
	if r, ok := w.request.(Schedule); ok {
		applied := x.(*facts.SchedulingChanged).Scheduling
		return applied == r.Scheduling.WithDefaults(applied)
	}
	return reflect.DeepEqual(x, w.proposed)
}

func (l *leader) submit(r Submit) {
	if l.submitsAgain(r) {
		l.requests.add(submitKey(r.Submission.Key), r)
		return
	}
	sub, existing, err := admission.Submit(l.facts, r.Submission, r.By, r.Wall)
	if err == nil && existing == nil {
		if err = l.c.cfg.Limits.Maximum.Check(&sub); err == nil {
			err = l.reserve(&sub)
		}
	}
	switch {
	case err != nil:
		l.reply(r, err)
	case existing != nil:
		l.c.emit(Reply{Token: r.Token, Jobs: l.facts.IDs(existing)})
	default:
		l.requests.add(submitKey(sub.Key), r)
		l.propose(admission.SubmittedFact(sub, r.Secret, r.Wall))
	}
}

// submitsAgain reports whether a submission of the same user with the same key waits for its log entry. Both
// get its answer, though no other submission may be accepted by now.
func (l *leader) submitsAgain(r Submit) bool {
	if r.Submission == nil {
		return false
	}
	list := l.requests[submitKey(r.Submission.Key)]
	if len(list) == 0 {
		return false
	}
	first := list[0].request.(Submit)
	return first.By.Name == r.By.Name && first.Submission.Owner == r.Submission.Owner
}

// submitted starts the jobs of a submission and answers its requests.
func (l *leader) submitted(x *facts.Submitted, changed bool) {
	l.limited.quota.Release(x.Submission.Key)
	s := l.facts.Submission(x.Submission.Key)
	if s == nil {
		return
	}
	for i := 0; changed && i < s.Jobs(); i++ {
		j := l.addJob(l.facts.Job(s.First()+i), l.now)
		j.tally.awaitsFirst = true
		l.c.counts.Submitted.Add(1)
		l.logJob(j.facts, "job submitted", "owner", s.Owner(), "pool", poolName(s), "jobs", s.Jobs())
	}
	l.answerSubmits(s)
}

// answerSubmits answers the requests with the key of a known submission, as if they came now: another user may have
// sent the same key.
func (l *leader) answerSubmits(s *facts.Submission) {
	key := submitKey(s.Key())
	for _, w := range l.requests[key] {
		r := w.request.(Submit)
		if _, _, err := admission.Submit(l.facts, r.Submission, r.By, r.Wall); err != nil {
			l.reply(r, err)
			continue
		}
		l.c.emit(Reply{Token: r.Token, Jobs: l.facts.IDs(s)})
	}
	delete(l.requests, key)
}

func (l *leader) killJob(r Kill) {
	f := l.facts.Find(r.Job)
	if settled, err := admission.Kill(l.facts, r.Job, f, r.By); settled {
		l.reply(r, err)
		return
	}
	l.requests.add(killKey(f), r)
	reason := r.Reason
	if reason == "" {
		reason = "killed"
	}
	if j := l.jobs[f.N()]; !j.finish.stopProposed {
		j.finish.stopProposed = true
		l.updateLines(j)
		l.propose(&facts.Stopped{Job: f.N(), Outcome: wire.Killed, Reason: wire.Truncate(reason, faults.MaxReason)})
	}
}

// answerKills answers the kill requests for a job if their outcome is known.
func (l *leader) answerKills(f *facts.Job) {
	if settled, err := admission.KillResult(l.facts.ID(f.N()), f); settled {
		l.replyAll(killKey(f), Reply{Err: err})
	}
}

// change handles a request to change the settings of a submission, or to suspend or resume it.
func (l *leader) change(r Change) {
	s, err := admission.Change(l.facts, r.Job, r.Change, r.By, l.wall())
	if err != nil {
		l.reply(r, err)
		return
	}
	l.proposeInOrder(changeKey(s.Key()), r)
}

func (l *leader) changeApplied(x *facts.SettingsChanged, changed bool) {
	s := l.facts.Submission(x.Key)
	if s == nil {
		return
	}
	takeBack := changed && l.asksBack(x)
	l.limited.quota.ReleaseMove(x.Key)
	l.waitForPart(poolName(s))
	for i := range s.Jobs() {
		if j := l.jobs[s.First()+i]; changed && j != nil {
			l.touch(j)
			l.limited.quota.Change(j.facts.N(), quotaJob(s))
			l.assign.PoolChanged(&j.assign)
			j.limitsBy = nil
			if s.Suspended() {
				l.dropReservations(j)
			}
			if takeBack {
				l.takeBack(j)
			}
		}
	}
	if changed {
		for i := range l.phases {
			l.phases[i].planNow(l.now)
		}
	}
	l.appliedInOrder(changeKey(x.Key), x, changed)
}

// dropChanges answers pending changes of a submission that has ended.
func (l *leader) dropChanges(s *facts.Submission) {
	if s.Open() {
		return
	}
	key := changeKey(s.Key())
	for _, w := range l.requests[key] {
		l.reply(w, fmt.Errorf("%v: %w", w.request.(Change).Job, admission.ErrJobEnded))
	}
	delete(l.requests, key)
	l.limited.quota.ReleaseMove(s.Key())
}
