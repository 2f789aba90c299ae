package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"strconv"

	"github.com/quernmr/quern/cmd/internal/ui"
	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/wire"
)

const uiHelp = `mrsubmit serves the pages at a loopback address, with your certificate, until it is interrupted.
It prints the address, which works for one browser.`

func uiFlags(q *query) {
	q.flags.IntVar(&q.port, "port", 0, "serve at this loopback `port`; 0: any free one")
	q.flags.BoolVar(&q.noBrowser, "no-browser", false, "only print the address")
}

// showUI serves the cluster's pages to a browser on this machine.
func (q *query) showUI(ctx context.Context) error {
	transport := new(http.Transport)
	secure := q.identity.Dialer(identity.JobTracker)
	if secure != nil {
		identity.Secure(transport, secure)
	}
	p, err := ui.Listen(q.port, ui.Config{Pages: ui.Forward(ui.Cluster{Leader: q.leader, Transport: transport, Secure: secure != nil}), Log: q.attemptLog})
	if err != nil {
		return err
	}
	defer p.Close()
	if _, err := q.leader(ctx); err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- p.Serve() }()
	if _, err := fmt.Fprintln(q.stdout, p.URL()); err != nil {
		return err
	}
	defer q.openBrowser("ui", p.URL(), q.noBrowser)()
	select {
	case <-ctx.Done():
		return nil
	case err := <-served:
		return err
	}
}

// openBrowser opens a browser with an address, unless it only is to be printed. Call remove at the end.
func (t *tool) openBrowser(command, url string, onlyPrint bool) (remove func()) {
	if onlyPrint {
		return func() {}
	}
	remove, err := ui.OpenBrowser(url)
	if err != nil {
		fmt.Fprintf(t.stderr, "mrsubmit %s: no browser was opened (%v): open the address above\n", command, err)
		return func() {}
	}
	return remove
}

// leader returns the address of the leader's API.
func (q *query) leader(ctx context.Context) (string, error) {
	c, err := q.cluster.Cluster(ctx)
	if err != nil {
		return "", err
	}
	return c.Addr, nil
}

// attemptLog opens a part of an attempt's log.
func (q *query) attemptLog(ctx context.Context, id wire.AttemptID, stream string, part ui.Part) (*ui.Log, error) {
	a, token, err := q.findAttempt(ctx, id)
	if err != nil {
		return nil, err
	}
	r := q.newLogReader(token)
	body, end, err := r.open(ctx, a, stream, logPart{tail: part.Tail, from: part.From})
	if err != nil {
		r.http.CloseIdleConnections()
		return nil, err
	}
	l := &ui.Log{ReadCloser: &log{body, r.http}, Ended: !attemptRuns(a)}
	if l.End, err = strconv.ParseInt(end, 10, 64); err != nil {
		l.End = -1 // an older task tracker does not say it
	}
	return l, nil
}

// findAttempt returns an attempt, from the cluster or from a history, and the token for its logs.
func (q *query) findAttempt(ctx context.Context, id wire.AttemptID) (*web.Attempt, string, error) {
	a, token, err := q.cluster.Attempt(ctx, id)
	if !errors.Is(err, admission.ErrUnknownJob) {
		return a, token, err
	}
	all, err := q.attempts(ctx, id.Task.Job)
	if err != nil {
		return nil, "", err
	}
	if i := slices.IndexFunc(all.Items, func(a web.Attempt) bool { return a.ID == id.String() }); i >= 0 {
		return &all.Items[i], all.Token, nil
	}
	return nil, "", fmt.Errorf("%v has no %v: %w", id.Task.Job, id, fs.ErrNotExist)
}

// log is the answer of a task tracker. Its connection is not used again.
type log struct {
	io.ReadCloser
	from *http.Client
}

func (l *log) Close() error {
	err := l.ReadCloser.Close()
	l.from.CloseIdleConnections()
	return err
}
