package core

import (
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/jobtracker/core/faults"
	"github.com/quernmr/quern/jobtracker/core/settings"
)

// firstTidy is the delay before a new leader tidies the staging directory.
const firstTidy = time.Minute

// tidy emits a Tidy if it is time.
func (l *leader) tidy() {
	if l.now < l.timers.tidy {
		return
	}
	l.timers.tidy = never
	t := Tidy{
		Epoch: l.epoch, Cluster: l.facts.Boot().Cluster,
		Submissions: make(map[string]bool), Programs: make(map[string]bool), Sessions: make(map[string]bool),
	}
	for f := range l.facts.Jobs() {
		s := f.Submission()
		if f.N() != s.First() {
			continue
		}
		t.Submissions[s.Key()] = true
		if program := s.Program(); program != "" {
			t.Programs[program] = true
		}
		if body := s.Body(); body != nil && body.Program.Step != nil {
			if session := body.Program.Step.Session(); session != "" {
				t.Sessions[session] = true
			}
		}
	}
	l.effect(t)
}

func (l *leader) tidied(r Tidied) {
	if r.Epoch == l.epoch {
		l.timers.tidy = l.now + l.c.cfg.TidyPeriod
	}
}

// removeStaging emits the removal of a submission's staging directory, after all jobs have ended.
func (l *leader) removeStaging(s *facts.Submission) {
	if !s.Open() && !s.Swept() {
		l.effect(RemoveStaging{
			Epoch: l.epoch, Key: s.Key(), URL: s.Staging(), Owner: s.Owner(), Delay: faults.RetryDelay(l.timers.failedRemovals[s.Key()]),
		})
	}
}

// stagingRemoved records the removal of a staging directory in the log. After ServiceAttempts
// failures it does so too, since Facts keep the submission until then.
func (l *leader) stagingRemoved(r StagingRemoved) {
	s := l.facts.Submission(r.Key)
	if r.Epoch != l.epoch || s == nil {
		return
	}
	if r.Err != nil {
		l.timers.failedRemovals[r.Key]++
		if l.timers.failedRemovals[r.Key] < settings.ServiceAttempts {
			l.removeStaging(s)
			return
		}
	}
	l.propose(&facts.Swept{Key: r.Key})
}
