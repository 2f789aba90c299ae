package tasktracker

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// learn takes the token in that comes with a message of the leader's.
func (l *loop) learnToken(m wire.Message) {
	job, token := jobOf(m)
	if !l.tokens.Learn(job, token) {
		return
	}
	l.chores.Put(func() {
		if err := l.tokens.Keep(job); err != nil {
			l.cfg.Logger.Warn("what a job leaves here will not be served by a later process", "job", job, "error", err)
		}
	})
}

// jobOf is the job that a message begins or ends here, if it does, and its token.
func jobOf(m wire.Message) (job wire.JobID, token string) {
	switch m := m.(type) {
	case *wire.Launch:
		return m.Attempt.Task.Job, m.Token
	case *wire.SetHome:
		return m.Job, m.Token
	case *wire.DropJob:
		return m.Job, ""
	}
	return wire.JobID{}, ""
}

// dropped lets the token of a job go that is not here any more, but for its logs.
func (l *loop) jobDropped(job wire.JobID) {
	if l.core.Has(job) {
		return // it was an older leader's wish
	}
	learned := l.tokens.End(job)
	l.chores.Put(func() {
		if l.cfg.Temporary || !exists(filepath.Join(l.cfg.Dir, core.LogsDir, job.String())) {
			l.forgetToken(job, learned)
		}
	})
}

func (l *loop) forgetToken(job wire.JobID, learned int) {
	if err := l.tokens.Forget(job, learned); err != nil {
		l.cfg.Logger.Warn("cannot remove a token", "job", job, "error", err)
	}
}

// sweepTokens forgets those of the tokens known that are of jobs of which nothing is
// here: no logs, no outputs, and nothing that runs. Which jobs are live was asked
// after which tokens are known.
func (l *loop) sweepTokens(known map[wire.JobID]int, live map[wire.JobID]bool) {
	for job, learned := range known {
		if !live[job] && !l.hasFiles(job) {
			l.chores.Put(func() { l.forgetToken(job, learned) })
		}
	}
}

// leaves says whether files of a job are here.
func (l *loop) hasFiles(job wire.JobID) bool {
	if exists(filepath.Join(l.cfg.Dir, core.LogsDir, job.String())) {
		return true
	}
	for _, disk := range l.cfg.Disks {
		if exists(filepath.Join(disk, core.JobsDir, job.String())) {
			return true
		}
	}
	return false
}

// exists says whether a file may be there: a disk that fails says nothing.
func exists(name string) bool {
	_, err := os.Lstat(name)
	return !errors.Is(err, fs.ErrNotExist)
}
