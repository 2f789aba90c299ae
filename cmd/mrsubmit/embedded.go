package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"slices"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/cmd/internal/ui"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/embedded"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/pages"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/tasktracker/attemptlog"
	"github.com/quernmr/quern/wire"
)

// startCluster starts a cluster for one submission. For its pages, it keeps the attempts of ended jobs.
type startCluster func(ctx context.Context, sub *wire.Submission, pages bool) (*cluster, error)

// cluster is a running cluster with its file systems and staging directory.
type cluster struct {
	client.Cluster
	files   dfs.FS
	staging string       // URL
	pages   http.Handler // of the cluster, with the API
	log     ui.OpenLog
	close   func() error
	prints  bool // what attempts print, so that a display must not erase lines

	failures failures
}

// embeddedCluster starts a cluster in this process, configured by the submission's properties.
func embeddedCluster(_ context.Context, sub *wire.Submission, shown bool) (*cluster, error) {
	cfg, err := embedded.FromProperties(sub.Plan.Jobs[0].Properties, nil)
	if err != nil {
		return nil, err
	}
	cfg.History = shown
	c, err := embedded.Start(cfg)
	if err != nil {
		return nil, err
	}
	if err := c.KeepProgram(sub); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &cluster{
		Cluster: c, files: c.FS(), staging: c.Staging(), close: c.Close, prints: cfg.Output,
		pages: pages.Mount(web.New(web.Config{ID: "embedded", Server: c.Server})), log: embeddedLogs{c}.open,
		failures: embeddedLogs{c},
	}, nil
}

// embeddedLogs opens logs of an embedded cluster: its task trackers do not serve them.
type embeddedLogs struct{ *embedded.Cluster }

func (e embeddedLogs) open(ctx context.Context, id wire.AttemptID, stream string, part ui.Part) (*ui.Log, error) {
	ctx, done := context.WithCancel(ctx)
	defer done() // or the job tracker counts a reader of histories for as long as the caller runs
	some, err := e.Attempts(ctx, core.Caller{}, id.Task.Job, wire.AttemptID{Task: id.Task})
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(some.Attempts, func(a wire.AttemptStatus) bool { return a.Attempt == id })
	if i < 0 {
		return nil, fmt.Errorf("%v has no %v: %w", id.Task.Job, id, fs.ErrNotExist)
	}
	state := some.Attempts[i].State
	text, err := e.OpenLog(some.Attempts[i].Tracker, id, stream)
	if err != nil {
		return nil, err
	}
	from := text.Find(part.From)
	if part.Tail > 0 {
		from = max(0, text.Size()-part.Tail)
	}
	return &ui.Log{
		ReadCloser: embeddedLog{io.NewSectionReader(text, from, text.Size()-from), text},
		End:        text.End(), Ended: state != wire.AttemptRunning && state != wire.AttemptReady,
	}, nil
}

// embeddedLog is a part of a log in a file.
type embeddedLog struct {
	io.Reader
	text *attemptlog.Text
}

func (l embeddedLog) Close() error {
	l.text.Close()
	return nil
}
