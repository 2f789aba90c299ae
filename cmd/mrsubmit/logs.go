package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/listen"
	"github.com/quernmr/quern/tasktracker/attemptlog"
	"github.com/quernmr/quern/wire"
)

// defaultTail is the default of -tail.
const defaultTail = 64 << 10

// logWait limits the time to connect to a tracker, and the time until its answer begins.
const logWait = 10 * time.Second

const logsHelp = `TASK is the id of a task or of one attempt. Without TASK: the logs of failed attempts or,
if none failed, of all.

With -f: goes on with what attempts write, until the job has ended. Without TASK these are the
attempts that run, and those that begin later. A new leader and the loss of a task tracker do not
end it. Ctrl-C does, and leaves the job alone.`

func logFlags(q *query) {
	q.flags.Int64Var(&q.tail, "tail", defaultTail, "print the last `bytes` of each log; 0: all")
	q.flags.IntVar(&q.lines, "n", -1, "print the last `lines` of these bytes; -1: all")
	q.flags.BoolVar(&q.follow, "f", false, "go on with what attempts write, until the job has ended")
}

// logs prints the logs of a job, or of each job of a flow; see logsHelp.
func (q *query) logs(ctx context.Context) error {
	switch {
	case q.tail < 0:
		return usagef("-tail must be a number of bytes or 0 for all, got %d", q.tail)
	case q.follow && q.json:
		return usagef("give -f or -json, not both")
	}
	ids, _, err := q.firstIDs(ctx)
	if err != nil {
		return err
	}
	filter, err := q.attemptFilter(ids)
	if err != nil {
		return err
	}
	if q.follow {
		ended, err := q.allEnded(ctx, ids)
		if err != nil {
			return err
		}
		if !ended {
			if len(q.args) == 1 {
				filter = func(all []web.Attempt) []web.Attempt { return all }
			}
			return q.followLogs(ctx, ids, filter)
		}
	}
	list, attempts := []loggedAttempt{}, 0
	all := make([]*web.Attempts, len(ids))
	for i, id := range ids {
		if all[i], err = q.attempts(ctx, id); err != nil {
			return err
		}
		all[i].Items = filter(all[i].Items)
		attempts += len(all[i].Items)
		list = append(list, q.logList(all[i].Items, all[i].Token)...)
	}
	if q.json {
		return q.printJSON(list)
	}
	for i, job := range all {
		if job.Token == "" {
			return noToken(ids[i])
		}
	}
	if attempts == 0 {
		return fmt.Errorf("%s: no such attempt", q.args[0])
	}
	r := q.newLogReader("")
	defer r.http.CloseIdleConnections()
	for _, job := range all {
		r.token = job.Token
		for i := range job.Items {
			if err := r.printLogs(ctx, &job.Items[i]); err != nil {
				return err
			}
		}
	}
	switch {
	case r.read == 0 && r.failed > 0:
		return errReported
	case r.failed > 0 || r.printed:
	case attempts == 1:
		fmt.Fprintf(q.stderr, "%s has written nothing\n", list[0].ID)
	default:
		fmt.Fprintf(q.stderr, "%d attempts have written nothing\n", attempts)
	}
	return nil
}

// allEnded reports whether jobs have ended.
func (q *query) allEnded(ctx context.Context, ids []wire.JobID) (bool, error) {
	for _, id := range ids {
		if job, err := q.job(ctx, id); err != nil || !job.State.Ended() {
			return false, err
		}
	}
	return true, nil
}

// logScheme returns the scheme of trackers' URLs.
func (q *query) logScheme() string {
	if q.identity != nil {
		return "https"
	}
	return "http"
}

// attempts lists a job's attempts, from the cluster or from its history.
func (q *query) attempts(ctx context.Context, id wire.JobID, states ...string) (*web.Attempts, error) {
	attempts, err := q.cluster.Attempts(ctx, id, states...)
	switch {
	case err == nil:
		return attempts, nil
	case errors.Is(err, fs.ErrNotExist): // the cluster has already looked for the history
		err = fmt.Errorf("%v has no history: %w", id, err)
	case errors.Is(err, admission.ErrUnknownJob):
		h, err := q.fromHistory(ctx, id, err)
		if err != nil {
			return nil, err
		}
		if len(states) > 0 {
			h.Attempts = slices.DeleteFunc(h.Attempts, func(a web.Attempt) bool { return !slices.Contains(states, a.State) })
		}
		return &web.Attempts{Items: h.Attempts, Owner: h.Owner, Token: h.Token}, nil
	}
	return nil, err
}

// attemptFilter returns a filter for the argument TASK.
func (q *query) attemptFilter(jobs []wire.JobID) (func([]web.Attempt) []web.Attempt, error) {
	if len(q.args) == 1 {
		return failedOrAll, nil
	}
	task, errTask := wire.ParseTaskID(q.args[1])
	attempt, errAttempt := wire.ParseAttemptID(q.args[1])
	switch {
	case errTask != nil && errAttempt != nil:
		return nil, usagef("%q is not the id of a task or attempt", q.args[1])
	case errTask != nil:
		task = attempt.Task
	}
	if !slices.Contains(jobs, task.Job) {
		return nil, usagef("%s does not belong to %s", q.args[1], q.args[0])
	}
	return func(all []web.Attempt) []web.Attempt {
		return slices.DeleteFunc(all, func(a web.Attempt) bool {
			id, err := wire.ParseAttemptID(a.ID)
			return err != nil || id.Task != task || errAttempt == nil && id != attempt
		})
	}, nil
}

func failedOrAll(all []web.Attempt) []web.Attempt {
	failed := slices.DeleteFunc(slices.Clone(all), func(a web.Attempt) bool { return a.State != wire.AttemptFailed.String() })
	if len(failed) > 0 {
		return failed
	}
	return all
}

// loggedAttempt is an attempt in JSON, with the URLs of its logs. Requests for them need
// the header "Authorization: Bearer TOKEN".
type loggedAttempt struct {
	web.Attempt
	Logs  map[string]string `json:"logs"`
	Token string            `json:"token,omitempty"`
}

func (q *query) logList(attempts []web.Attempt, token string) []loggedAttempt {
	list := make([]loggedAttempt, 0, len(attempts))
	for i := range attempts {
		logs := make(map[string]string)
		for _, stream := range streams() {
			logs[stream] = q.logURL(&attempts[i], stream, logPart{})
		}
		list = append(list, loggedAttempt{attempts[i], logs, token})
	}
	return list
}

// streams lists the logs of an attempt.
func streams() []string { return []string{"stdout", "stderr"} }

// logPart is the part of a log to read.
type logPart struct {
	tail int64 // last bytes; 0: all
	from int64 // without the first bytes that the attempt wrote
}

// logURL returns the URL of a part of a log; empty: it is not known.
func (q *query) logURL(a *web.Attempt, stream string, part logPart) string {
	id, err := wire.ParseAttemptID(a.ID)
	if err != nil || a.Addr == "" {
		return ""
	}
	u := url.URL{Scheme: q.logScheme(), Host: a.Addr, Path: fmt.Sprintf("/logs/%v/%v/%s", id.Task.Job, id, stream)}
	switch {
	case part.tail > 0:
		u.RawQuery = "tail=" + strconv.FormatInt(part.tail, 10)
	case part.from > 0:
		u.RawQuery = "from=" + strconv.FormatInt(part.from, 10)
	}
	return u.String()
}

// logReader reads and prints logs. It counts the logs that it could read, and the others.
type logReader struct {
	*query
	http         *http.Client
	token        string           // token of the current job
	unreachable  map[string]error // by address: why it gets no more requests, without a URL
	read, failed int
	printed      bool
}

func (q *query) newLogReader(token string) *logReader {
	own := *q
	return &logReader{query: &own, token: token, unreachable: make(map[string]error), http: &http.Client{Transport: &http.Transport{
		DialContext: (&net.Dialer{Timeout: logWait}).DialContext, ResponseHeaderTimeout: logWait,
		TLSClientConfig: q.identity.Dialer(identity.TaskTracker),
	}}}
}

// printLogs prints both logs of an attempt, or the errors of reading them. It returns only errors
// of our own output, and interrupts.
func (r *logReader) printLogs(ctx context.Context, a *web.Attempt) error {
	for _, stream := range streams() {
		body, _, err := r.open(ctx, a, stream, logPart{tail: r.tail})
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			r.failed++
			fmt.Fprintf(r.stderr, "mrsubmit logs: %s %s: %v\n", a.ID, stream, errorText(err))
			continue
		}
		r.read++
		err = r.copyLog(a, stream, body)
		body.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// open opens a part of a log. end is the offset of what the attempt writes next, as a text.
func (r *logReader) open(ctx context.Context, a *web.Attempt, stream string, part logPart) (body logBody, end string, err error) {
	address := r.logURL(a, stream, part)
	switch {
	case address == "":
		return logBody{}, "", fmt.Errorf("the address of tracker %s is not known", a.Tracker)
	case r.unreachable[a.Addr] != nil:
		return logBody{}, "", silentError(a, r.unreachable[a.Addr])
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return logBody{}, "", err
	}
	req.Header.Set("Authorization", "Bearer "+r.token)
	resp, err := r.http.Do(req)
	if err != nil {
		if inURL := (*url.Error)(nil); errors.As(err, &inURL) {
			err = inURL.Err
		}
		r.unreachable[a.Addr] = err
		return logBody{}, "", silentError(a, err)
	}
	switch resp.StatusCode {
	case http.StatusOK:
		return logBody{resp.Body, resp.ContentLength}, resp.Header.Get(attemptlog.EndHeader), nil
	case http.StatusNotFound:
		err = fmt.Errorf("tracker %s at %s: %w: it is removed some time after the end of the job, see tasktracker -keep", a.Tracker, a.Addr, errNoLog)
	default:
		err = fmt.Errorf("tracker %s at %s answers %s: %s", a.Tracker, a.Addr, resp.Status, firstLine(listen.Failure(resp)))
	}
	resp.Body.Close()
	return logBody{}, "", err
}

// logBody is a log, or a part of one.
type logBody struct {
	io.ReadCloser
	size int64 // negative: not known
}

func silentError(a *web.Attempt, err error) error {
	return fmt.Errorf("tracker %s at %s does not answer: %w", a.Tracker, a.Addr, err)
}

// copyLog prints a log after a line that names it. For an empty log it prints nothing.
func (r *logReader) copyLog(a *web.Attempt, stream string, body io.Reader) error {
	w := &lineEnder{to: r.stdout}
	if r.lines >= 0 {
		body = bytes.NewReader(lastLines(body, r.lines))
	}
	head := fmt.Sprintf("==> %s %s on %s, %s <==\n", a.ID, stream, client.OneLine(a.Tracker), a.State)
	buf := make([]byte, 32<<10)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			if head != "" {
				fmt.Fprint(w, head)
				head, r.printed = "", true
			}
			if _, err := w.Write(buf[:n]); err != nil {
				return err
			}
		}
		switch {
		case err == io.EOF:
			return w.endLine()
		case err != nil:
			fmt.Fprintf(r.stderr, "mrsubmit logs: %s %s is incomplete: %v\n", a.ID, stream, errorText(err))
			return w.endLine()
		}
	}
}

// lineEnder is a writer that can complete the last line.
type lineEnder struct {
	to   io.Writer
	last byte
}

func (e *lineEnder) Write(p []byte) (int, error) {
	if len(p) > 0 {
		e.last = p[len(p)-1]
	}
	return e.to.Write(p)
}

func (e *lineEnder) endLine() error {
	if e.last == 0 || e.last == '\n' {
		return nil
	}
	_, err := e.Write([]byte{'\n'})
	return err
}
