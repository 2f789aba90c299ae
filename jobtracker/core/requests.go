package core

import (
	"fmt"
	"reflect"

	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/jobtracker/core/faults"
	"github.com/quernmr/quern/wire"
)

// requests are clients' requests that wait for a log entry, oldest first. Keys say what is
// asked for: "submit KEY", "kill N", "change KEY", "schedule", "drain". Submits with one key
// share their answer, and so do kills of one job.
// Other requests with the same key are proposed one by one: see [Live.proposeInOrder].
type requests map[string][]waitingRequest

func submitKey(key string) string { return "submit " + key }
func changeKey(key string) string { return "change " + key }
func killKey(f *facts.Job) string { return fmt.Sprintf("kill %d", f.N()) }

// waitingRequest is a request and its proposal.
type waitingRequest struct {
	request
	proposed facts.Fact // last proposal; nil for submits, kills and requests behind others
}

// add queues a request; first is true if no other with its key waits.
func (q requests) add(key string, r request) (first bool) {
	q[key] = append(q[key], waitingRequest{request: r})
	return len(q[key]) == 1
}

// reply answers a request that need not wait.
func (l *Live) reply(r request, err error) { l.c.emit(Reply{Token: r.token(), Err: err}) }

// replyAll answers all requests with a key.
func (l *Live) replyAll(key string, answer Reply) {
	for _, w := range l.requests[key] {
		answer.Token = w.token()
		l.c.emit(answer)
	}
	delete(l.requests, key)
}

// proposeInOrder proposes what a request asks for, after earlier requests with the same key.
func (l *Live) proposeInOrder(key string, r request) {
	if l.requests.add(key, r) {
		l.proposeFirst(key)
	}
}

// appliedInOrder handles an applied entry: it answers the first request if the entry carries it
// out, and proposes the next. After an earlier leader's entry it proposes the first request
// again.
func (l *Live) appliedInOrder(key string, x facts.Fact, fitted bool) {
	if list := l.requests[key]; len(list) > 0 && fitted && list[0].matches(x) {
		l.reply(list[0], nil)
		if l.requests[key] = list[1:]; len(list) == 1 {
			delete(l.requests, key)
		}
	}
	l.proposeFirst(key)
}

func (l *Live) proposeFirst(key string) {
	if list := l.requests[key]; len(list) > 0 {
		list[0].proposed = l.factOf(list[0].request)
		l.propose(list[0].proposed)
	}
}

// factOf is the fact that a request asks for, given the current Facts.
func (l *Live) factOf(r request) facts.Fact {
	switch r := r.(type) {
	case Change:
		return admission.Changed(l.facts.Find(r.Job).Submission(), r.Change, l.wall())
	case Schedule:
		now := l.facts.Scheduled()
		return &facts.SchedulingChanged{N: now.N + 1, Scheduling: r.Scheduling.WithDefaults(now.Scheduling)}
	case Drain:
		return &facts.Drain{N: l.facts.Drains() + 1, Tracker: r.Tracker, Undo: r.Undo}
	}
	panic(fmt.Sprintf("core: unexpected request %T", r))
}

// matches says whether an entry carries the request out. For a Schedule, fields that it leaves
// empty may differ.
func (w *waitingRequest) matches(x facts.Fact) bool {
	if r, ok := w.request.(Schedule); ok {
		now := x.(*facts.SchedulingChanged).Scheduling
		return now == r.Scheduling.WithDefaults(now)
	}
	return reflect.DeepEqual(x, w.proposed)
}

func (l *Live) submit(r Submit) {
	sub, known, err := admission.Submit(l.facts, r.Submission, r.By, r.Wall)
	switch {
	case err != nil:
		l.reply(r, err)
	case known != nil:
		l.c.emit(Reply{Token: r.Token, Jobs: l.facts.IDs(known)})
	default:
		l.requests.add(submitKey(sub.Key), r)
		l.propose(&facts.Submitted{At: r.Wall, Submission: sub, Secret: r.Secret})
	}
}

// submitted starts the jobs of a submission and answers its requests.
func (l *Live) submitted(x *facts.Submitted, fitted bool) {
	s := l.facts.Submission(x.Submission.Key)
	if s == nil {
		return
	}
	for i := 0; fitted && i < s.Jobs(); i++ {
		j := l.addJob(l.facts.Job(s.First()+i), l.now)
		l.noteJob(j.facts, "submitted", "owner", s.Owner(), "pool", poolName(s), "jobs", s.Jobs())
	}
	l.replyAll(submitKey(s.Key()), Reply{Jobs: l.facts.IDs(s)})
}

func (l *Live) killJob(r Kill) {
	f := l.facts.Find(r.Job)
	if settled, err := admission.Kill(r.Job, f, r.By); settled {
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

// answerKills answers a job's kill requests once the outcome is known.
func (l *Live) answerKills(f *facts.Job) {
	if settled, err := admission.Killed(l.facts.ID(f.N()), f); settled {
		l.replyAll(killKey(f), Reply{Err: err})
	}
}

// change handles a request for other settings of a submission, or to suspend or resume it.
func (l *Live) change(r Change) {
	s, err := admission.Change(l.facts, r.Job, r.Change, r.By, l.wall())
	if err != nil {
		l.reply(r, err)
		return
	}
	l.proposeInOrder(changeKey(s.Key()), r)
}

func (l *Live) changeApplied(x *facts.SettingsChanged, fitted bool) {
	s := l.facts.Submission(x.Key)
	if s == nil {
		return
	}
	for i := range s.Jobs() {
		if j := l.jobs[s.First()+i]; fitted && j != nil {
			l.touch(j)
			l.updateLines(j)
			if s.Suspended() {
				l.dropReservations(j)
			}
		}
	}
	if fitted {
		for i := range l.phases {
			l.phases[i].planNow(l.now)
		}
	}
	l.appliedInOrder(changeKey(x.Key), x, fitted)
}

// dropChanges answers pending changes of a submission that has ended.
func (l *Live) dropChanges(s *facts.Submission) {
	if s.Open() {
		return
	}
	key := changeKey(s.Key())
	for _, w := range l.requests[key] {
		l.reply(w, fmt.Errorf("%v: %w", w.request.(Change).Job, admission.ErrJobEnded))
	}
	delete(l.requests, key)
}
