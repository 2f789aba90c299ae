package runtime

import (
	"time"

	"github.com/quernmr/quern/dfs"
)

// syncPatience bounds how long an attempt counts as alive in one call that makes something
// durable. Such a call is silent, and takes as long as the disk does. The bound is
// the default of mapreduce.task.timeout, which begins when this time is over.
const syncPatience = 10 * time.Minute

// grantPatience is for ever: a job tracker may be away for any time.
const grantPatience = 100 * 365 * 24 * time.Hour

// quiet has the attempt count as alive until end is called, for some time at most.
func (a *attempt) quiet(most time.Duration) (end func()) {
	until := time.Now().Add(most)
	a.quietUntil.Store(&until)
	return func() { a.quietUntil.Store(nil) }
}

// mayBeQuiet is called from another goroutine.
func (a *attempt) mayBeQuiet() bool {
	until := a.quietUntil.Load()
	return until != nil && time.Now().Before(*until)
}

// patientFS is a file system that an attempt writes to: while it closes files and syncs
// directories, the attempt counts as alive.
type patientFS struct {
	dfs.FS
	attempt *attempt
}

func (f patientFS) Create(name string) (dfs.Writer, error) {
	w, err := f.FS.Create(name)
	if err != nil {
		return nil, err
	}
	return patientWriter{w, f.attempt}, nil
}

func (f patientFS) SyncDir(name string) error {
	defer f.attempt.quiet(syncPatience)()
	return f.FS.SyncDir(name)
}

// MkdirAll syncs the directories that it makes.
func (f patientFS) MkdirAll(name string) error {
	defer f.attempt.quiet(syncPatience)()
	return f.FS.MkdirAll(name)
}

type patientWriter struct {
	dfs.Writer
	attempt *attempt
}

func (w patientWriter) Close() error {
	defer w.attempt.quiet(syncPatience)()
	return w.Writer.Close()
}
