package tasktracker

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// storeToken stores the token of a leader's message.
func (l *loop) storeToken(m wire.Message) {
	job, token := jobOf(m)
	if !l.tokens.Set(job, token) {
		return
	}
	l.diskWork.Put(func() {
		if err := l.tokens.Save(job); err != nil {
			l.cfg.Logger.Warn("cannot keep a job's token for a later process", "job", job, "error", err)
		}
	})
}

// jobOf returns the job that a message starts or ends here, if any, and its token.
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

// jobDropped restricts the token of a dropped job to its logs, and forgets it if the job
// has no logs.
func (l *loop) jobDropped(job wire.JobID) {
	if l.core.HasJob(job) {
		return // the core ignored the message of an older leader
	}
	version := l.tokens.EndJob(job)
	l.diskWork.Put(func() {
		if l.cfg.Temporary || !exists(filepath.Join(l.cfg.Dir, core.LogsDir, job.String())) {
			l.forgetToken(job, version)
		}
	})
}

func (l *loop) forgetToken(job wire.JobID, version int) {
	if err := l.tokens.Forget(job, version); err != nil {
		l.cfg.Logger.Warn("cannot remove a token", "job", job, "error", err)
	}
}

// sweepTokens forgets tokens of jobs without logs, outputs and attempts here. The caller
// must get the versions of the tokens before the live jobs.
func (l *loop) sweepTokens(versions map[wire.JobID]int, live map[wire.JobID]bool) {
	for job, version := range versions {
		if !live[job] && !l.hasFiles(job) {
			l.diskWork.Put(func() { l.forgetToken(job, version) })
		}
	}
}

// hasFiles reports whether files of a job are here.
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

// exists reports whether a file may exist: an error of a bad disk counts as true.
func exists(name string) bool {
	_, err := os.Lstat(name)
	return !errors.Is(err, fs.ErrNotExist)
}
