package tasktracker

import (
	"errors"
	"strings"
	"testing"

	"github.com/quernmr/quern/tasktracker/process"
	"github.com/quernmr/quern/tasktracker/workers"
	"github.com/quernmr/quern/wire"
)

// failingLogs starts workers with logs that a test can fail.
type failingLogs struct {
	workers.Starter
	failed  chan func(error) // the failed argument of each Capture
	atDrain chan error       // error for the next Drain
}

type failingWorker struct {
	workers.Worker
	logs    *failingLogs
	onError func(error)
}

func (s *failingLogs) Start(p *workers.Program, dir string) (workers.Worker, error) {
	w, err := s.Starter.Start(p, dir)
	if err != nil {
		return nil, err
	}
	return &failingWorker{Worker: w, logs: s}, nil
}

func (w *failingWorker) Capture(logs string, failed func(error)) (string, error) {
	w.onError = failed
	w.logs.failed <- failed
	return w.Worker.(interface {
		Capture(string, func(error)) (string, error)
	}).Capture(logs, failed)
}

func (w *failingWorker) Drain() {
	select {
	case err := <-w.logs.atDrain:
		w.onError(err)
	default:
	}
}

// TestLogFails: if a log cannot be written, its attempt fails, but no later attempt of the
// same worker.
func TestLogFails(t *testing.T) {
	dir := trackerDir(t)
	logs := &failingLogs{
		Starter: process.New(process.Config{Dir: dir, Logs: DefaultAttemptLogs}),
		failed:  make(chan func(error), 10), atDrain: make(chan error, 1),
	}
	l := startUnregistered(t, Config{ID: "t1", Dir: dir, Workers: logs})
	l.connect(1)
	full := errors.New("no room")
	waiting := func(n int) (wire.AttemptID, func(error)) {
		id := l.launch(wire.Map, n, doCommit)
		await(l, func(r *wire.Report) bool { return r.Attempt == id && r.State == wire.AttemptReady })
		return id, receive(t, logs.failed, "the attempt's logs")
	}
	first := l.succeed(wire.Map, 0, doSucceed)
	firstFailed := receive(t, logs.failed, "the attempt's logs")
	second, _ := waiting(1)
	firstFailed(full)
	l.send(&wire.Grant{Epoch: 1, Attempt: second})
	if a, b := first.Counters.Get("pid", "self"), l.final(second, wire.AttemptSucceeded).Counters.Get("pid", "self"); a != b {
		t.Errorf("the second attempt ran in process %d, the first in %d", b, a)
	}

	third, thirdFailed := waiting(2)
	thirdFailed(full)
	if r := l.final(third, wire.AttemptFailed); !strings.Contains(r.Error, "cannot write its log on disk "+dir+": no room") {
		t.Errorf("the third attempt's error is %q", r.Error)
	}

	// An error after a success ends only the worker.
	logs.atDrain <- full
	fourth, fifth := l.succeed(wire.Map, 3, doSucceed), l.succeed(wire.Map, 4, doSucceed)
	if a, b := fourth.Counters.Get("pid", "self"), fifth.Counters.Get("pid", "self"); a == b {
		t.Errorf("process %d was used again", a)
	}
}
