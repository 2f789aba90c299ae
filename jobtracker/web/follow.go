package web

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
)

// maxSilence is how long a watch waits for an event or beat before it looks for another leader.
const maxSilence = 6 * beat

var (
	errSilent    = errors.New("it has fallen silent")
	errMalformed = errors.New("malformed event")
)

// Watch implements client.Cluster. After the loss of a leader it continues with the next one.
func (c *Client) Watch(ctx context.Context, jobs []wire.JobID) iter.Seq2[[]wire.JobStatus, error] {
	return func(yield func([]wire.JobStatus, error) bool) {
		f := &clientWatch{c: c, ids: jobs, yield: yield, lastLine: time.Now(), known: make(map[wire.JobID]wire.JobStatus)}
		if err := f.run(ctx); err != nil && !f.stopped {
			yield(nil, fmt.Errorf("watch: %w", err))
		}
	}
}

// Follow yields all jobs, and then those that change, as the list has them. After the loss of a leader it
// continues with the next one, from which it yields all jobs again.
func (c *Client) Follow(ctx context.Context) iter.Seq2[[]Job, error] {
	return func(yield func([]Job, error) bool) {
		f := &clientWatch{c: c, all: func(jobs []Job) bool { return yield(jobs, nil) }, lastLine: time.Now()}
		if err := f.run(ctx); err != nil && !f.stopped {
			yield(nil, fmt.Errorf("watch: %w", err))
		}
	}
}

// clientWatch is a watch that continues with the next leader.
type clientWatch struct {
	c         *Client
	ids       []wire.JobID
	all       func([]Job) bool // gets all jobs; nil: only those of ids are watched
	yield     func([]wire.JobStatus, error) bool
	known     map[wire.JobID]wire.JobStatus // the last states
	stopped   bool                          // the caller wants no more states
	leader    string                        // id of the last one; empty before the first
	epoch     uint64                        // of the last leader
	lastLine  time.Time
	slowNoted bool // a note was given that the search takes long
}

// run yields the jobs' states, and returns nil when all jobs have ended.
func (f *clientWatch) run(ctx context.Context) error {
	s, busy := f.c.known.Search(f.c.Patience), busyWaiter{c: f.c}
	for {
		addr, limit, err := s.Next(ctx)
		if err != nil {
			return err
		}
		began := time.Now()
		ended, err := f.listen(ctx, addr, limit)
		if ended || f.stopped || ctx.Err() != nil {
			return err
		}
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		if again, failed := busy.again(ctx, err); failed != nil {
			return failed
		} else if again {
			s = f.c.known.Search(f.c.Patience)
			continue
		}
		if !retryable(err) || errors.Is(err, errMalformed) {
			return err
		}
		if f.lastLine.After(began) { // it has sent a line as leader
			// A leader that is lost at once does not renew the patience, or run might never end.
			if f.lastLine.Sub(began) >= beat {
				s = f.c.known.Search(f.c.WatchPatience)
			}
			s.Lost(addr, f.c.WatchPatience)
		}
		f.c.failed(s, addr, err)
		f.slowNoted = f.slowNoted || s.SlowReported()
	}
}

// listen yields the states that one job tracker sends. It returns ended if all jobs have ended.
func (f *clientWatch) listen(ctx context.Context, addr string, limit time.Duration) (ended bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(limit, func() { cancel(errSilent) })
	defer silence.Stop()
	query := url.Values{}
	for _, id := range f.ids {
		query.Add(jobParameter.name, id.String())
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, f.c.scheme+addr+eventsPath+"?"+query.Encode(), nil)
	if err != nil {
		return false, fmt.Errorf("%w: %w", errForeign, err)
	}
	r.Header.Set("Accept", eventsType)
	if f.epoch > 0 {
		r.Header.Set(lastEventID, strconv.FormatUint(f.epoch, 10))
	}
	resp, err := f.c.http.Do(r)
	if err != nil {
		if context.Cause(ctx) == errSilent {
			err = errSilent
		}
		return false, shortError(addr, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return false, answerError(addr, resp)
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != eventsType {
		return false, fmt.Errorf("%s answers with %q instead of events: %w", addr, kind, errForeign)
	}
	in := newEventReader(resp.Body, func(comment bool) {
		silence.Reset(maxSilence)
		if comment { // a beat
			f.lastLine = time.Now()
		}
	})
	for in.next() {
		if ended, err := f.handle(addr, in.name, in.data); ended || err != nil || f.stopped {
			return ended, err
		}
	}
	if context.Cause(ctx) == errSilent {
		return false, fmt.Errorf("%s: %w", addr, errSilent)
	}
	return false, in.err
}

// eventReader reads server-sent events.
type eventReader struct {
	lines *bufio.Scanner
	heard func(comment bool) // called for each line
	name  string
	data  []byte
	err   error // why there is no next event; nil: the stream has ended
}

func newEventReader(from io.Reader, heard func(comment bool)) *eventReader {
	r := &eventReader{lines: bufio.NewScanner(from), heard: heard}
	r.lines.Buffer(nil, maxAnswer)
	r.lines.Split(wholeLines)
	return r
}

// next reads an event with data. It drops comments, fields that it does not know, and an incomplete event at
// the end.
func (r *eventReader) next() bool {
	r.name, r.data = "", nil
	for r.lines.Scan() {
		line := r.lines.Bytes()
		r.heard(len(line) > 0 && line[0] == ':')
		if len(line) == 0 {
			if r.data != nil {
				return true
			}
			r.name = ""
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			r.name = string(value)
		case "data":
			if r.data == nil {
				r.data = []byte{} // an event with empty data is one
			} else {
				r.data = append(r.data, '\n')
			}
			if r.data = append(r.data, value...); len(r.data) > maxAnswer {
				r.err = bufio.ErrTooLong
				return false
			}
		}
	}
	r.err = r.lines.Err()
	return false
}

// wholeLines splits a stream into lines. It drops an incomplete last line.
func wholeLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, bytes.TrimSuffix(data[:i], []byte("\r")), nil
	}
	if atEOF {
		return len(data), nil, nil
	}
	return 0, nil, nil
}

// handle handles an event. It drops events with other names.
func (f *clientWatch) handle(addr, name string, data []byte) (ended bool, err error) {
	decode := func(v any) error {
		if err := json.Unmarshal(data, v); err != nil {
			return fmt.Errorf("%s: %w: %s: %w", addr, errMalformed, name, err)
		}
		return nil
	}
	switch name {
	case eventProblem:
		p := new(Error)
		if err := decode(p); err != nil {
			return false, err
		}
		return false, p
	case eventLeader:
		var leader LeaderEvent
		if err := decode(&leader); err != nil {
			return false, err
		}
		return false, f.foundLeader(addr, &leader)
	case eventEnd:
		return true, nil
	case eventJobs:
		var jobs JobsEvent
		err := decode(&jobs)
		if err == nil {
			err = f.changed(jobs.Items)
		}
		if err != nil {
			return false, fmt.Errorf("%s: %w: %w", addr, errMalformed, err)
		}
	}
	f.lastLine = time.Now()
	return false, nil
}

// changed yields the states of all jobs once they are known.
func (f *clientWatch) changed(jobs []Job) error {
	if f.all != nil {
		f.stopped = !f.all(jobs)
		return nil
	}
	for i := range jobs {
		s, err := jobs[i].Status()
		if err != nil {
			return err
		}
		f.known[s.ID] = s
	}
	statuses := make([]wire.JobStatus, 0, len(f.ids))
	for _, id := range f.ids {
		s, ok := f.known[id]
		if !ok {
			return fmt.Errorf("the event lacks %v", id)
		}
		statuses = append(statuses, s)
	}
	f.stopped = !f.yield(statuses, nil)
	return nil
}

// foundLeader records the leader of a watch. It refuses a leader of an earlier epoch, which may not
// know yet that it was replaced.
func (f *clientWatch) foundLeader(addr string, line *LeaderEvent) error {
	if line.Epoch < f.epoch {
		return &Error{Code: codeNotLeader, Text: fmt.Sprintf("%s leads epoch %d, but epoch %d has begun: %v", addr, line.Epoch, f.epoch, core.ErrNotLeader)}
	}
	f.c.known.SetLeader(addr)
	silent := time.Since(f.lastLine).Round(100 * time.Millisecond)
	switch {
	case f.leader == "":
	case f.leader != line.Leader:
		f.c.note("leader changed: %s at %s leads now, before it %s; no answer for %v", line.Leader, addr, f.leader, silent)
	case f.slowNoted || f.epoch != line.Epoch:
		f.c.note("job tracker %s at %s leads again; no answer for %v", line.Leader, addr, silent)
	}
	f.leader, f.epoch, f.slowNoted, f.lastLine = line.Leader, line.Epoch, false, time.Now()
	return nil
}
