package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/wire"
)

// followPause is the pause between two looks at the logs. If a look takes long, as for a job with very
// many attempts, the pause is some times as long.
const (
	followPause = time.Second
	maxShare    = 4 // the pause is at least this many times as long as the look before it
)

// silentLooks is the number of looks that leave out a task tracker after it did not answer.
const silentLooks = 10

// follower prints what the attempts of some jobs write, until these jobs end.
type follower struct {
	*logReader
	jobs     []wire.JobID
	choose   func([]web.Attempt) []web.Attempt
	known    map[string]*followed // by attempt
	out      *lineEnder
	current  string // log that was printed last: attempt and stream
	looks    int
	trouble  string          // why the last look failed, as printed
	reported map[string]bool // attempts with a log that could not be read, as printed
}

// followed is an attempt, and how much of its logs was printed.
type followed struct {
	began map[string]int64 // by stream: the offset of what comes next
	done  bool
}

// followLogs prints logs until the jobs end.
func (q *query) followLogs(ctx context.Context, ids []wire.JobID, choose func([]web.Attempt) []web.Attempt) error {
	f := &follower{
		logReader: q.newLogReader(""), jobs: ids, choose: choose, known: make(map[string]*followed),
		out: &lineEnder{to: q.stdout}, reported: make(map[string]bool),
	}
	defer f.http.CloseIdleConnections()
	for {
		began := time.Now()
		ended, err := f.look(ctx)
		switch {
		case ctx.Err() != nil:
			return f.out.endLine() // an interrupt is the usual end
		case isOutputClosed(err), errors.Is(err, admission.ErrUnknownJob), errors.Is(err, admission.ErrNotAllowed), errors.Is(err, errNoToken):
			return err
		case err != nil && err.Error() != f.trouble:
			f.trouble = err.Error()
			fmt.Fprintf(f.stderr, "mrsubmit logs: %s; trying again\n", errorText(err))
		case err == nil && ended:
			return f.out.endLine()
		case err == nil:
			f.trouble = ""
		}
		pause := time.NewTimer(max(cmp.Or(q.poll, followPause), maxShare*time.Since(began)))
		select {
		case <-pause.C:
		case <-ctx.Done():
		case <-q.signals.HangUp:
			pause.Stop()
			return errHungUp
		}
		pause.Stop()
	}
}

// look prints what attempts have written since the last look. It reports whether all jobs have ended.
func (f *follower) look(ctx context.Context) (ended bool, err error) {
	if ended, err = f.allEnded(ctx, f.jobs); err != nil { // before their attempts: those of ended jobs are complete
		return false, err
	}
	if ended || f.looks%silentLooks == 0 {
		clear(f.unreachable)
	}
	first := f.looks == 0
	f.looks++
	for _, id := range f.jobs {
		all, err := f.attempts(ctx, id)
		if err != nil {
			return false, err
		}
		if f.token = all.Token; f.token == "" {
			return false, noToken(id)
		}
		for _, a := range f.choose(all.Items) {
			known := f.known[a.ID]
			if known == nil {
				known = &followed{began: make(map[string]int64)}
				known.done = first && len(f.args) == 1 && !attemptRuns(&a)
				f.known[a.ID] = known
			}
			if !known.done {
				if err := f.printNew(ctx, &a, known); err != nil {
					return false, err
				}
			}
		}
	}
	return ended, nil
}

// printNew prints what an attempt has written since the last look. It returns only errors of our own output.
func (f *follower) printNew(ctx context.Context, a *web.Attempt, known *followed) error {
	ended, silent := !attemptRuns(a), false
	for _, stream := range streams() {
		part := logPart{tail: f.tail}
		if from, began := known.began[stream]; began {
			part = logPart{from: from}
		}
		body, end, err := f.open(ctx, a, stream, part)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errNoLog) && !ended:
			continue // it has just begun
		case err != nil:
			silent = silent || !errors.Is(err, errNoLog) // a later look may read it
			if !f.reported[a.ID] {
				f.reported[a.ID] = true
				fmt.Fprintf(f.stderr, "mrsubmit logs: %s %s: %v\n", a.ID, stream, errorText(err))
			}
			continue
		}
		err = f.print(a, stream, body, part.from == 0)
		body.Close()
		if err != nil {
			return err
		}
		if known.began[stream], err = strconv.ParseInt(end, 10, 64); err != nil {
			fmt.Fprintf(f.stderr, "mrsubmit logs: tracker %s is of an older version, and its logs cannot be followed\n", client.OneLine(a.Tracker))
			known.done = true
		}
	}
	known.done = known.done || ended && !silent
	return nil
}

// print prints a part of a log, after a line that names the log if another one was printed before.
func (f *follower) print(a *web.Attempt, stream string, body io.Reader, first bool) error {
	if first && f.lines >= 0 {
		body = bytes.NewReader(lastLines(body, f.lines))
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			if name := a.ID + " " + stream; name != f.current {
				if err := f.out.endLine(); err != nil {
					return err
				}
				f.current = name
				fmt.Fprintf(f.out, "==> %s on %s <==\n", name, client.OneLine(a.Tracker))
			}
			if _, err := f.out.Write(buf[:n]); err != nil {
				return err
			}
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			fmt.Fprintf(f.stderr, "mrsubmit logs: %s %s is incomplete: %v\n", a.ID, stream, errorText(err))
			return nil
		}
	}
}

// lastLines returns the last lines of a text, or what could be read of it.
func lastLines(body io.Reader, n int) []byte {
	text, _ := io.ReadAll(body)
	at := len(text)
	for range n {
		end := max(at-1, 0) // the line before may end here
		if at = bytes.LastIndexByte(text[:end], '\n') + 1; at == 0 {
			break
		}
	}
	return text[at:]
}

var (
	// errNoLog reports that a task tracker has no log of an attempt.
	errNoLog = errors.New("no such log")
	// errNoToken reports that the logs of a job cannot be read.
	errNoToken = errors.New("it has no token, which its logs require: an older version ran it")
)

func noToken(id wire.JobID) error { return fmt.Errorf("%v: %w", id, errNoToken) }
