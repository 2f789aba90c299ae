package core

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/wire"
)

// requests is what clients wait for, and what they wish.
type requests struct {
	submits map[string][]Token // by submission key
	kills   map[int][]Token    // by job number
	sweeps  map[string]int     // failed removals of staging directories, by submission key
	wishes  wishes
}

func newRequests() requests {
	return requests{
		submits: make(map[string][]Token), kills: make(map[int][]Token), sweeps: make(map[string]int),
		wishes: wishes{changes: make(map[string]*inTurn[Change]), proposed: make(map[string]*facts.Changed)},
	}
}

// maxTasks bounds the maps and the reduces of one job.
const maxTasks = wire.MaxTasks

// checkNew says why a submission cannot be proposed.
func checkNew(s *wire.Submission, staging string) error {
	err := facts.CheckSubmission(s)
	if err == nil {
		err = s.Bound()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBadSubmission, err)
	}
	return checkPlace(s, staging)
}

// checkPlace says why the directory that a submission names cannot be its own: it is
// removed with its jobs, by this job tracker's rights.
func checkPlace(s *wire.Submission, staging string) error {
	name, below := strings.CutPrefix(s.Staging, strings.TrimRight(staging, "/")+"/")
	reserved := []string{"", ".", "..", wire.StagingClusters, wire.StagingPrograms, wire.StagingHistory}
	if staging != "" && (!below || strings.Contains(name, "/") || slices.Contains(reserved, name)) {
		return fmt.Errorf("%w: %q is no directory for a submission below %s", ErrBadSubmission, s.Staging, staging)
	}
	return nil
}

// checkOwnPlace refuses the directory of another submission whose files are there yet.
func (l *Live) checkOwnPlace(s *wire.Submission) error {
	for other := range l.facts.Submissions() {
		if l.facts.Boot().Staging != "" && !other.Swept() && other.Staging() == s.Staging {
			return fmt.Errorf("%w: the directory %q is another submission's", ErrBadSubmission, s.Staging)
		}
	}
	return nil
}

func (l *Live) submit(r Submit) {
	err := checkNew(r.Submission, l.facts.Boot().Staging)
	if err != nil {
		l.c.emit(Reply{Token: r.Token, Err: err})
		return
	}
	sub := *r.Submission
	if r.By.Known() {
		sub.Owner = r.By.Name // whatever it says
	}
	if known := l.facts.Submission(sub.Key); known != nil {
		answer := Reply{Token: r.Token, Jobs: l.facts.IDs(known)}
		if err := r.By.may("submit again", answer.Jobs[0], known.Who()); err != nil {
			answer = Reply{Token: r.Token, Err: err}
		}
		l.c.emit(answer)
		return
	}
	if sub.Due != 0 {
		sub.Terms.Deadline = cmp.Or(time.UnixMilli(sub.Due).Sub(time.UnixMilli(r.Wall)), -1) // 0 is none
		sub.Due = 0
	}
	err = checkTerms(sub.Terms)
	if err == nil {
		err = l.checkOwnPlace(&sub)
	}
	if err == nil {
		err = l.checkPool(sub.Terms.Pool, sub.Owner, r.By)
	}
	if err != nil {
		l.c.emit(Reply{Token: r.Token, Err: err})
		return
	}
	l.requests.submits[sub.Key] = append(l.requests.submits[sub.Key], r.Token)
	l.propose(&facts.Submitted{At: r.Wall, Submission: sub, Secret: r.Secret})
}

// submitted starts the jobs of a submission and answers those who wait for its ids.
func (l *Live) submitted(x *facts.Submitted, fitted bool) {
	s := l.facts.Submission(x.Submission.Key)
	if s == nil {
		return
	}
	for i := 0; fitted && i < s.Jobs(); i++ {
		j := l.addJob(l.facts.Job(s.First()+i), l.now)
		l.noteJob(j.facts, "submitted", "owner", s.Who(), "pool", poolName(s), "jobs", s.Jobs())
	}
	for _, token := range l.requests.submits[s.Key()] {
		l.c.emit(Reply{Token: token, Jobs: l.facts.IDs(s)})
	}
	delete(l.requests.submits, s.Key())
}

func (l *Live) killJob(r Kill) {
	f := l.facts.Find(r.Job)
	done, err := killable(f)
	if f != nil && !f.Ended() {
		if no := r.By.may("kill", r.Job, f.Submission().Who()); no != nil {
			l.c.emit(Reply{Token: r.Token, Err: no})
			return
		}
	}
	if done {
		if err != nil {
			err = fmt.Errorf("%v: %w", r.Job, err)
		}
		l.c.emit(Reply{Token: r.Token, Err: err})
		return
	}
	l.requests.kills[f.N()] = append(l.requests.kills[f.N()], r.Token)
	reason := r.Reason
	if reason == "" {
		reason = "killed"
	}
	if j := l.jobs[f.N()]; !j.finish.stopping {
		j.finish.stopping = true
		l.move(j)
		l.propose(&facts.Stopped{Job: f.N(), Outcome: wire.Killed, Reason: bounded(reason, maxReason)})
	}
}

// killable says whether a kill of f has its answer already, and which.
func killable(f *facts.Job) (done bool, err error) {
	switch {
	case f == nil:
		return true, ErrUnknownJob
	case f.Ended():
		return true, ErrJobEnded
	case f.Stopping():
		return true, nil
	case f.Committing():
		return true, ErrJobCommitting
	}
	return false, nil
}

// answerKills answers the kills of a job whose fate is settled.
func (l *Live) answerKills(f *facts.Job) {
	if len(l.requests.kills[f.N()]) == 0 {
		return
	}
	done, err := killable(f)
	if !done {
		return
	}
	if err != nil {
		err = fmt.Errorf("%v: %w", l.facts.ID(f.N()), err)
	}
	for _, token := range l.requests.kills[f.N()] {
		l.c.emit(Reply{Token: token, Err: err})
	}
	delete(l.requests.kills, f.N())
}

// sweep has an ended submission's staging directory removed.
func (l *Live) sweep(s *facts.Submission) {
	if !s.Open() && !s.Swept() {
		l.c.emit(RemoveStaging{
			Epoch: l.epoch, Key: s.Key(), Name: s.Staging(), After: retryDelay(l.requests.sweeps[s.Key()]),
		})
	}
}

// stagingRemoved notes the removal in the log. After a few failures it is noted
// all the same, so that a broken directory does not keep its submission for ever.
func (l *Live) stagingRemoved(r StagingRemoved) {
	s := l.facts.Submission(r.Key)
	if r.Epoch != l.epoch || s == nil {
		return
	}
	if r.Err != nil {
		l.requests.sweeps[r.Key]++
		if l.requests.sweeps[r.Key] < serviceAttempts {
			l.sweep(s)
			return
		}
	}
	l.propose(&facts.Swept{Key: r.Key})
}
