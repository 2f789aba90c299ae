package core

import (
	"fmt"
	"reflect"

	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/jobtracker/core/faults"
	"github.com/quernmr/quern/wire"
)

// requests are the accepted requests of clients that wait for an entry of the log, by what
// they ask for, oldest first: "submit KEY", "kill N", "change KEY", "schedule", "drain".
// Submits of one key have one answer, and so have kills of one job. The others become entries
// one after the other: the first one is proposed, see [Live.askInTurn].
type requests map[string][]waiting

func submitOf(key string) string { return "submit " + key }
func changeOf(key string) string { return "change " + key }
func killOf(f *facts.Job) string { return fmt.Sprintf("kill %d", f.N()) }

// waiting is one of them.
type waiting struct {
	request
	proposed facts.Fact // the last time; nil for submits, kills and those that are not first
}

// add notes a request. first says that no other asks for the same.
func (q requests) add(what string, r request) (first bool) {
	q[what] = append(q[what], waiting{request: r})
	return len(q[what]) == 1
}

// reply answers a request that need not wait.
func (l *Live) reply(r request, err error) { l.c.emit(Reply{Token: r.token(), Err: err}) }

// replyAll answers all requests that ask for the same.
func (l *Live) replyAll(what string, answer Reply) {
	for _, w := range l.requests[what] {
		answer.Token = w.token()
		l.c.emit(answer)
	}
	delete(l.requests, what)
}

// askInTurn proposes what a request asks for, after the earlier ones for the same.
func (l *Live) askInTurn(what string, r request) {
	if l.requests.add(what, r) {
		l.proposeFirst(what)
	}
}

// appliedInTurn follows an entry of the kind that such requests ask for: it answers the first
// one if that is what the entry says, and proposes the next. The entry may be of an earlier
// leader; then the first one is proposed again, on top of it.
func (l *Live) appliedInTurn(what string, x facts.Fact, fitted bool) {
	if list := l.requests[what]; len(list) > 0 && fitted && list[0].says(x) {
		l.reply(list[0], nil)
		if l.requests[what] = list[1:]; len(list) == 1 {
			delete(l.requests, what)
		}
	}
	l.proposeFirst(what)
}

func (l *Live) proposeFirst(what string) {
	if list := l.requests[what]; len(list) > 0 {
		list[0].proposed = l.factOf(list[0].request)
		l.propose(list[0].proposed)
	}
}

// factOf is the fact that a request asks for by now.
func (l *Live) factOf(r request) facts.Fact {
	switch r := r.(type) {
	case Change:
		return admission.Changed(l.facts.Find(r.Job).Submission(), r.Change, l.wall())
	case Schedule:
		now := l.facts.Scheduled()
		return &facts.Scheduled{N: now.N + 1, Scheduling: r.Scheduling.Over(now.Scheduling)}
	case Drain:
		return &facts.Drain{N: l.facts.Drains() + 1, Tracker: r.Tracker, Undo: r.Undo}
	}
	panic(fmt.Sprintf("core: unexpected request %T", r))
}

// says whether an entry does what a request asks for. An entry of an earlier leader may share
// slots in a way that differs only in what a Schedule leaves open.
func (w *waiting) says(x facts.Fact) bool {
	if r, ok := w.request.(Schedule); ok {
		now := x.(*facts.Scheduled).Scheduling
		return now == r.Scheduling.Over(now)
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
		l.requests.add(submitOf(sub.Key), r)
		l.propose(&facts.Submitted{At: r.Wall, Submission: sub, Secret: r.Secret})
	}
}

// submitted starts the jobs of a submission and answers the requests that wait for its ids.
func (l *Live) submitted(x *facts.Submitted, fitted bool) {
	s := l.facts.Submission(x.Submission.Key)
	if s == nil {
		return
	}
	for i := 0; fitted && i < s.Jobs(); i++ {
		j := l.addJob(l.facts.Job(s.First()+i), l.now)
		l.noteJob(j.facts, "submitted", "owner", s.Owner(), "pool", poolName(s), "jobs", s.Jobs())
	}
	l.replyAll(submitOf(s.Key()), Reply{Jobs: l.facts.IDs(s)})
}

func (l *Live) killJob(r Kill) {
	f := l.facts.Find(r.Job)
	if settled, err := admission.Kill(r.Job, f, r.By); settled {
		l.reply(r, err)
		return
	}
	l.requests.add(killOf(f), r)
	reason := r.Reason
	if reason == "" {
		reason = "killed"
	}
	if j := l.jobs[f.N()]; !j.finish.stopping {
		j.finish.stopping = true
		l.move(j)
		l.propose(&facts.Stopped{Job: f.N(), Outcome: wire.Killed, Reason: wire.Bounded(reason, faults.MaxReason)})
	}
}

// answerKills answers the kills of a job once they are settled.
func (l *Live) answerKills(f *facts.Job) {
	if settled, err := admission.Killed(l.facts.ID(f.N()), f); settled {
		l.replyAll(killOf(f), Reply{Err: err})
	}
}

// change asks for other settings of a submission, or for it to be suspended or resumed.
func (l *Live) change(r Change) {
	s, err := admission.Change(l.facts, r.Job, r.Change, r.By, l.wall())
	if err != nil {
		l.reply(r, err)
		return
	}
	l.askInTurn(changeOf(s.Key()), r)
}

func (l *Live) changeApplied(x *facts.Changed, fitted bool) {
	s := l.facts.Submission(x.Key)
	if s == nil {
		return
	}
	for i := range s.Jobs() {
		if j := l.jobs[s.First()+i]; fitted && j != nil {
			l.touch(j)
			l.move(j)
			if s.Suspended() {
				l.letGoAll(j)
			}
		}
	}
	if fitted {
		for i := range l.phases {
			l.phases[i].begun(l.now)
		}
	}
	l.appliedInTurn(changeOf(x.Key), x, fitted)
}

// dropChanges answers the changes of a submission that has ended meanwhile.
func (l *Live) dropChanges(s *facts.Submission) {
	if s.Open() {
		return
	}
	what := changeOf(s.Key())
	for _, w := range l.requests[what] {
		l.reply(w, fmt.Errorf("%v: %w", w.request.(Change).Job, admission.ErrJobEnded))
	}
	delete(l.requests, what)
}
