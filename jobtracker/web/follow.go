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
	"net/http"
	"net/url"
	"time"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
)

// maxSilence is how long a watch waits for a line before it looks for another leader.
const maxSilence = 6 * beat

var (
	errSilent    = errors.New("it has fallen silent")
	errMalformed = errors.New("malformed line of a watch")
)

// Watch implements client.Cluster. After the loss of a leader it continues with the next one.
func (c *Client) Watch(ctx context.Context, jobs []wire.JobID) iter.Seq2[[]wire.JobStatus, error] {
	return func(yield func([]wire.JobStatus, error) bool) {
		f := &clientWatch{c: c, ids: jobs, yield: yield, lastLine: time.Now()}
		if err := f.run(ctx); err != nil && !f.stopped {
			yield(nil, fmt.Errorf("watch: %w", err))
		}
	}
}

// clientWatch is a watch that continues with the next leader.
type clientWatch struct {
	c         *Client
	ids       []wire.JobID
	yield     func([]wire.JobStatus, error) bool
	stopped   bool   // the caller wants no more states
	leader    string // id of the last one; empty before the first
	epoch     uint64 // of the last leader
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
		query.Add("job", id.String())
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, f.c.scheme+addr+"/v1/watch?"+query.Encode(), nil)
	if err != nil {
		return false, fmt.Errorf("%w: %w", errForeign, err)
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
	in := bufio.NewScanner(resp.Body)
	in.Buffer(nil, maxAnswer)
	in.Split(wholeLines)
	for in.Scan() {
		silence.Reset(maxSilence)
		line := new(watchLine)
		if err := json.Unmarshal(in.Bytes(), line); err != nil {
			return false, fmt.Errorf("%s: %w: %w", addr, errMalformed, err)
		}
		if ended, err := f.handleLine(addr, line); ended || err != nil || f.stopped {
			return ended, err
		}
	}
	if context.Cause(ctx) == errSilent {
		return false, fmt.Errorf("%s: %w", addr, errSilent)
	}
	return false, in.Err()
}

// wholeLines splits a watch into lines. It drops an incomplete last line.
func wholeLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF {
		return len(data), nil, nil
	}
	return 0, nil, nil
}

func (f *clientWatch) handleLine(addr string, line *watchLine) (ended bool, err error) {
	switch {
	case line.Error != nil:
		return false, line.Error
	case line.Leader != "":
		return false, f.foundLeader(addr, line)
	case line.End:
		return true, nil
	case line.Jobs != nil:
		statuses := make([]wire.JobStatus, 0, len(line.Jobs))
		for i := range line.Jobs {
			s, err := line.Jobs[i].Status()
			if err != nil {
				return false, fmt.Errorf("%s: %w: %w", addr, errMalformed, err)
			}
			statuses = append(statuses, s)
		}
		f.stopped = !f.yield(statuses, nil)
	}
	f.lastLine = time.Now()
	return false, nil
}

// foundLeader records the leader of a watch. It refuses a leader of an earlier epoch, which may not
// know yet that it was replaced.
func (f *clientWatch) foundLeader(addr string, line *watchLine) error {
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
