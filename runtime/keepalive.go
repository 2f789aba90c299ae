package runtime

import (
	"time"

	"github.com/quernmr/quern/dfs"
)

// maxSyncTime limits how long an attempt counts as alive during one call that makes data
// durable. Such a call shows no progress and can take long. The limit is the default of
// mapreduce.task.timeout; that timeout starts after it.
const maxSyncTime = 10 * time.Minute

// maxGrantWait is practically unlimited: the job tracker may be unreachable for any time.
const maxGrantWait = 100 * 365 * 24 * time.Hour

// keepAlive makes the attempt count as alive until end is called, at most for maxTime.
func (a *attempt) keepAlive(maxTime time.Duration) (end func()) {
	until := time.Now().Add(maxTime)
	a.aliveUntil.Store(&until)
	return func() { a.aliveUntil.Store(nil) }
}

// isKeptAlive may be called from another goroutine.
func (a *attempt) isKeptAlive() bool {
	until := a.aliveUntil.Load()
	return until != nil && time.Now().Before(*until)
}

// aliveFS is the file system that an attempt writes to. While it closes files and syncs
// directories, the attempt counts as alive.
type aliveFS struct {
	dfs.FS
	attempt *attempt
}

func (f aliveFS) Create(name string) (dfs.Writer, error) {
	w, err := f.FS.Create(name)
	if err != nil {
		return nil, err
	}
	return aliveWriter{w, f.attempt}, nil
}

func (f aliveFS) SyncDir(name string) error {
	defer f.attempt.keepAlive(maxSyncTime)()
	return f.FS.SyncDir(name)
}

// MkdirAll syncs the directories that it makes.
func (f aliveFS) MkdirAll(name string) error {
	defer f.attempt.keepAlive(maxSyncTime)()
	return f.FS.MkdirAll(name)
}

type aliveWriter struct {
	dfs.Writer
	attempt *attempt
}

func (w aliveWriter) Close() error {
	defer w.attempt.keepAlive(maxSyncTime)()
	return w.Writer.Close()
}
