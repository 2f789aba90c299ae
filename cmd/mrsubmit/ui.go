package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/quernmr/quern/cmd/internal/ui"
	"github.com/quernmr/quern/identity"
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
	p, err := ui.Listen(q.port, ui.Config{Leader: q.leader, Transport: transport, Secure: secure != nil, Log: q.attemptLog})
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
	if !q.noBrowser {
		remove, err := ui.OpenBrowser(p.URL())
		if err != nil {
			fmt.Fprintf(q.stderr, "mrsubmit ui: no browser was opened (%v): open the address above\n", err)
		} else {
			defer remove()
		}
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-served:
		return err
	}
}

// leader returns the address of the leader's API.
func (q *query) leader(ctx context.Context) (string, error) {
	c, err := q.cluster.Cluster(ctx)
	if err != nil {
		return "", err
	}
	return c.Addr, nil
}

// logBytes limits a log in the browser: mrsubmit logs has all of it.
const logBytes = 1 << 20

// attemptLog opens the last bytes of an attempt's log.
func (q *query) attemptLog(ctx context.Context, job, attempt, stream string) (io.ReadCloser, error) {
	id, err := wire.ParseJobID(job)
	if err != nil {
		return nil, err
	}
	all, err := q.attempts(ctx, id)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all.Items, func(a web.Attempt) bool { return a.ID == attempt })
	if i < 0 {
		return nil, fmt.Errorf("%s has no %s", job, attempt)
	}
	r := q.newLogReader(all.Token)
	body, _, err := r.open(ctx, &all.Items[i], stream, logPart{tail: logBytes})
	if err != nil {
		r.http.CloseIdleConnections()
		return nil, err
	}
	return &log{body, r.http}, nil
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
