package tasktracker

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// serveLog answers with an attempt's stdout or stderr. Nothing of the request but
// ids in their one spelling becomes part of a path.
func (l *loop) serveLog(w http.ResponseWriter, r *http.Request) {
	job, errJob := wire.ParseJobID(r.PathValue("job"))
	attempt, errAttempt := wire.ParseAttemptID(r.PathValue("attempt"))
	stream := r.PathValue("stream")
	err := errors.Join(errJob, errAttempt)
	switch {
	case err != nil:
	case attempt.Task.Job != job:
		err = fmt.Errorf("%v is no attempt of %v", attempt, job)
	case stream != "stdout" && stream != "stderr":
		err = fmt.Errorf("an attempt has stdout and stderr, no %q", stream)
	}
	tail := int64(-1)
	if text := r.URL.Query().Get("tail"); err == nil && text != "" {
		if tail, err = strconv.ParseInt(text, 10, 64); err == nil && tail < 0 {
			err = fmt.Errorf("tail of %d bytes", tail)
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	serveText(w, r, filepath.Join(core.LogPath(l.cfg.Dir, attempt), stream), tail)
}

// serveText answers with a log that may be growing: what it has now, for as long as
// the reader goes on taking some of it.
func serveText(w http.ResponseWriter, r *http.Request, file string, tail int64) {
	text, err := openLog(file)
	if errors.Is(err, fs.ErrNotExist) {
		http.Error(w, "no such log here", http.StatusNotFound)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer text.Close()
	from, size := int64(0), text.size
	if tail >= 0 {
		from = max(size-tail, 0)
	}
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	http.ServeContent(patient{w, http.NewResponseController(w)}, r, "", time.Time{}, io.NewSectionReader(text, from, size-from))
}

// patient gives whoever reads an answer the time of a whole one for each piece of it,
// of which there are many in a file.
type patient struct {
	http.ResponseWriter
	control *http.ResponseController
}

// Write implements io.Writer.
func (p patient) Write(b []byte) (int, error) {
	_ = p.control.SetWriteDeadline(time.Now().Add(answerWait)) // a writer that knows none does without
	return p.ResponseWriter.Write(b)
}

// logsEvery is how often the logs of ended jobs are looked through.
const logsEvery = 10 * time.Minute

// keepLogs removes the logs of ended jobs as they get too old or too many.
func (l *loop) keepLogs() {
	tick := time.NewTicker(logsEvery)
	defer tick.Stop()
	for {
		l.sweepLogs(time.Now())
		select {
		case <-tick.C:
		case <-l.ctx.Done():
			return
		}
	}
}

func (l *loop) sweepLogs(now time.Time) {
	logs, err := findLogs(filepath.Join(l.cfg.Dir, core.LogsDir))
	if err != nil {
		l.cfg.Logger.Warn("cannot look through logs", "error", err)
		return
	}
	tokens := l.tokens.Known()
	live := make(chan map[wire.JobID]bool, 1)
	l.post(func() { live <- l.core.Live() })
	select {
	case jobs := <-live:
		for _, dir := range expiredLogs(logs, jobs, now.Add(-l.cfg.LogAge), l.cfg.LogBytes) {
			l.remove(dir)
		}
		l.sweepTokens(tokens, jobs)
	case <-l.done:
	}
}

// jobLogs is the directory of a job's logs.
type jobLogs struct {
	job   wire.JobID
	dir   string
	bytes int64
	last  time.Time // something was written
}

func findLogs(dir string) ([]jobLogs, error) {
	entries, err := readDir(dir)
	if err != nil {
		return nil, err
	}
	var all []jobLogs
	for _, e := range entries {
		logs := jobLogs{dir: filepath.Join(dir, e.Name())}
		if logs.job, err = wire.ParseJobID(e.Name()); err != nil {
			continue
		}
		err := filepath.WalkDir(logs.dir, func(_ string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			if !d.IsDir() {
				logs.bytes += info.Size()
			}
			if info.ModTime().After(logs.last) {
				logs.last = info.ModTime()
			}
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // something is being removed just now
			return nil, err
		}
		all = append(all, logs)
	}
	return all, nil
}

// expiredLogs lists what is to go: of jobs that are not live, what was last written
// to before that time, and of the rest the oldest, until all are few enough.
func expiredLogs(all []jobLogs, live map[wire.JobID]bool, oldest time.Time, most int64) (dirs []string) {
	slices.SortStableFunc(all, func(a, b jobLogs) int { return a.last.Compare(b.last) })
	sum := int64(0)
	for i := range all {
		sum += all[i].bytes
	}
	for i := range all {
		logs := &all[i]
		if !live[logs.job] && (logs.last.Before(oldest) || sum > most) {
			dirs = append(dirs, logs.dir)
			sum -= logs.bytes
		}
	}
	return dirs
}
