package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/cmd/internal/hadooplog"
	"github.com/quernmr/quern/cmd/internal/ui"
	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/wire"
)

// failures has the failed attempts of jobs, and their logs.
type failures interface {
	failed(ctx context.Context, id wire.JobID) ([]hadooplog.Attempt, error)
	read(ctx context.Context, id wire.AttemptID, stream string) (io.ReadCloser, error)
}

// failed lists the failed attempts of a job of an embedded cluster.
func (e embeddedLogs) failed(ctx context.Context, id wire.JobID) (list []hadooplog.Attempt, err error) {
	ctx, done := context.WithCancel(ctx)
	defer done() // see open
	after := wire.AttemptID{}
	for {
		page, err := e.Attempts(ctx, core.Caller{}, id, after)
		if err != nil {
			return list, err
		}
		for i := range page.Attempts {
			list = appendFailed(list, &page.Attempts[i])
		}
		if after = page.Next; after.IsZero() {
			return list, nil
		}
	}
}

func (e embeddedLogs) read(ctx context.Context, id wire.AttemptID, stream string) (io.ReadCloser, error) {
	return e.open(ctx, id, stream, ui.Part{Tail: savedBytes})
}

func appendFailed(list []hadooplog.Attempt, a *wire.AttemptStatus) []hadooplog.Attempt {
	if a.State != wire.AttemptFailed || !a.Attempt.Task.Kind.Slotted() { // Hadoop has no other tasks
		return list
	}
	return append(list, hadooplog.Attempt{ID: a.Attempt, Error: a.Error, Ended: time.UnixMilli(a.Began + a.Took)})
}

// remoteFailures are those of a cluster. Its task trackers serve the logs to the owner of the job.
type remoteFailures struct {
	*query
	reader   *logReader
	attempts map[wire.AttemptID]web.Attempt
}

func (t *tool) clusterFailures(c *web.Client, self *identity.Identity) failures {
	q := &query{tool: t, cluster: c, identity: self}
	return &remoteFailures{q, q.newLogReader(""), make(map[wire.AttemptID]web.Attempt)}
}

func (r *remoteFailures) failed(ctx context.Context, id wire.JobID) (list []hadooplog.Attempt, err error) {
	all, err := r.query.attempts(ctx, id, wire.AttemptFailed.String())
	if err != nil {
		return nil, err
	}
	r.reader.token = all.Token
	for i := range all.Items {
		a, err := all.Items[i].Status()
		if err != nil {
			return list, err
		}
		r.attempts[a.Attempt] = all.Items[i]
		list = appendFailed(list, &a)
	}
	return list, nil
}

func (r *remoteFailures) read(ctx context.Context, id wire.AttemptID, stream string) (io.ReadCloser, error) {
	a, ok := r.attempts[id]
	if !ok {
		return nil, fmt.Errorf("%v: %w", id, os.ErrNotExist)
	}
	body, _, err := r.reader.open(ctx, &a, stream, logPart{tail: savedBytes})
	return body, err
}

// Limits of the logs that are saved for a failed job.
const (
	savedBytes = 1 << 20  // the last ones of each log
	savedTotal = 64 << 20 // of all logs
	savedLeast = 4 << 10  // that a log counts, because each is a file
)

// logDir returns the directory where tools look for logs of Hadoop; empty: none is known.
func (t *tool) logDir() string {
	for _, name := range []string{"HADOOP_LOG_DIR", "YARN_LOG_DIR"} {
		if dir := t.getenv(name); dir != "" {
			return dir
		}
	}
	if home := hadoopHome(startedAs(), t.getenv); home != "" {
		return filepath.Join(home, "logs")
	}
	return ""
}

// saveLogs writes the logs of failed attempts where mrjob looks for them: userlogs/APPLICATION/ATTEMPT/stdout, stderr and
// syslog, until they have most bytes. An error is only reported, because the job has failed already.
func (r *hadoopRun) saveLogs(ctx context.Context, attempts []hadooplog.Attempt, from failures, most int64) {
	dir := r.logDir()
	if dir == "" || len(attempts) == 0 {
		return
	}
	userlogs := filepath.Join(dir, "userlogs")
	if err := os.MkdirAll(userlogs, 0o755); err != nil {
		r.log.Write("WARN", hadooplog.JobLogger, fmt.Sprintf("the logs are not saved: %v", err))
		return
	}
	room := most
	for i, a := range attempts {
		if room <= 0 {
			r.log.Write("WARN", hadooplog.JobLogger, fmt.Sprintf("the logs of %s are not saved in %s: those of the first %d have %s", countText(len(attempts)-i, "failed attempt"), dir, i, client.Size(most)))
			return
		}
		size, err := saveLog(ctx, userlogs, a, from)
		if err != nil {
			r.log.Write("WARN", hadooplog.JobLogger, fmt.Sprintf("the logs of %v are not saved in %s: %v", a.ID, dir, err))
		}
		room -= size
	}
}

// saveLog writes the logs of an attempt, and returns their size.
func saveLog(ctx context.Context, dir string, a hadooplog.Attempt, from failures) (size int64, err error) {
	dir = filepath.Join(dir, hadooplog.Application(a.ID.Task.Job), a.ID.String())
	if err := os.MkdirAll(dir, 0o700); err != nil { // logs are for the job's owner
		return 0, err
	}
	f, err := createLog(filepath.Join(dir, "syslog"))
	if err != nil {
		return 0, err
	}
	hadooplog.Syslog(f, a)
	size, err = savedLeast, f.Close()
	for _, stream := range streams() {
		n, streamErr := saveStream(ctx, filepath.Join(dir, stream), a.ID, stream, from)
		size, err = size+max(n, savedLeast), errors.Join(err, streamErr)
	}
	return size, err
}

// createLog makes a new file. The directory may be shared with other users, who could have planted a link.
func createLog(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

func saveStream(ctx context.Context, name string, id wire.AttemptID, stream string, from failures) (size int64, err error) {
	body, err := from.read(ctx, id, stream)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	f, err := createLog(name)
	if err != nil {
		return 0, err
	}
	size, err = io.Copy(f, io.LimitReader(body, savedBytes))
	return size, errors.Join(err, f.Close())
}
