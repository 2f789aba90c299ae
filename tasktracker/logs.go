package tasktracker

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/quernmr/quern/listen"
	"github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/tasktracker/attemptlog"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// serveLog serves an attempt's stdout or stderr. Paths contain only parsed ids, so no
// request can leave the directory of logs.
func (l *loop) serveLog(w http.ResponseWriter, r *http.Request) {
	job, errJob := wire.ParseJobID(r.PathValue("job"))
	attempt, errAttempt := wire.ParseAttemptID(r.PathValue("attempt"))
	stream := r.PathValue("stream")
	err := errors.Join(errJob, errAttempt)
	switch {
	case err != nil:
	case attempt.Task.Job != job:
		err = fmt.Errorf("%v is not an attempt of %v", attempt, job)
	case stream != "stdout" && stream != "stderr":
		err = fmt.Errorf("an attempt has stdout and stderr, not %q", stream)
	}
	var part attemptlog.Part
	if err == nil {
		part, err = attemptlog.ParsePart(r.URL.Query())
	}
	if err != nil {
		listen.Fail(w, r, err.Error(), http.StatusBadRequest)
		return
	}
	attemptlog.Serve(w, r, filepath.Join(core.LogPath(l.cfg.Dir, attempt), stream), part, answerWait)
}

// logSweepPeriod is how often expired logs are removed.
const logSweepPeriod = 10 * time.Minute

// expireLogs periodically removes logs of ended jobs that are too old or take too much space.
func (l *loop) expireLogs() {
	tick := time.NewTicker(logSweepPeriod)
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
	logs, err := attemptlog.Find(filepath.Join(l.cfg.Dir, core.LogsDir))
	if err != nil {
		l.cfg.Logger.Warn("cannot list the logs", "error", err)
		return
	}
	tokens := l.tokens.Versions()
	live := make(chan map[wire.JobID]bool, 1)
	l.post(func() { live <- l.core.LiveJobs() })
	select {
	case jobs := <-live:
		for _, dir := range attemptlog.Expired(logs, jobs, now.Add(-l.cfg.Logs.Age), l.cfg.Logs.Bytes) {
			l.remove(dir)
		}
		l.sweepTokens(tokens, jobs)
	case <-l.done:
	}
}

// readLog reads the log for the report of a failed attempt: the last lines of stdout and stderr or, if its
// worker crashed, the crash message instead of stderr. After a timeout it is the goroutine of the job's code.
func (l *loop) readLog(c core.ReadLog) core.LogRead {
	ev := core.LogRead{Attempt: c.Attempt, Full: l.spaceGuard.FullDisk(c.NoSpace)}
	if c.Position != "" {
		ev.Record = runtime.ReadPosition(c.Position)
	}
	cause, text := "", ""
	if c.Dumped || c.Crashed {
		cause, text = attemptlog.FindCrash(c.Files)
	}
	switch {
	case c.Dumped && !strings.HasPrefix(cause, attemptlog.Dump):
		text = ""
	case c.Crashed && !c.Dumped:
		ev.Limits, ev.Cause = l.cfg.limitsInForce(c.Limit), cause
	}
	crash := text != ""
	if !crash {
		text = attemptlog.LastLines(c.Files, c.Reported)
	}
	ev.Text = attemptlog.WithOutput(attemptlog.LastLines([]string{c.Output}, ""), text, crash)
	return ev
}
