package workers

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// handle is the tracker's side of a worker.
type handle struct {
	set     *Set
	id      int
	prepare func() (*wire.Submission, error) // what it runs
	out     *wire.Queue[wire.Message]

	mu      sync.Mutex
	worker  Worker         // nil: not started yet
	running wire.AttemptID // zero: none
	killed  bool
	fault   error      // why the tracker gave it up
	bound   core.Limit // as of the next Run
}

func newHandle(s *Set, id int, prepare func() (*wire.Submission, error)) *handle {
	return &handle{set: s, id: id, prepare: prepare, out: wire.NewQueue[wire.Message](0)}
}

func (h *handle) limit(c core.Limit) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bound = c
}

// apply has the worker held to what its next attempt may take. That may wait, for
// which nobody who wants to kill it does.
func (h *handle) apply() {
	h.mu.Lock()
	worker, bound := h.worker, h.bound
	h.mu.Unlock()
	if w, ok := worker.(limited); ok {
		w.Limit(bound, func(reason string) { h.set.cfg.Tell(core.Exceeded{Worker: h.id, Reason: reason}) })
	}
}

func (h *handle) kill() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.killLocked()
}

func (h *handle) killLocked() {
	h.killed = true
	if h.worker != nil {
		h.worker.Kill()
	}
}

// giveUp kills the worker for a reason that becomes its attempt's.
func (h *handle) giveUp(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fault = cmp.Or(h.fault, err)
	h.killLocked()
}

// live starts the worker, listens to it until it ends, and says how it did.
func (h *handle) live(dir string) {
	reason := h.serve(dir)
	h.set.remove(h.id)
	h.set.cfg.Tell(core.WorkerExited{Worker: h.id, Reason: reason})
}

func (h *handle) serve(dir string) string {
	sub, err := h.prepare()
	if err != nil {
		return err.Error()
	}
	w, err := h.start(sub, dir)
	if err != nil {
		return err.Error()
	}
	h.set.others.Go(func() { h.write(w.Conn()) })
	exited := make(chan error, 1)
	h.set.others.Go(func() { exited <- w.Wait() })
	heard := h.listen(w)
	ended := time.AfterFunc(EndGrace, h.kill)
	err = <-exited
	ended.Stop()
	w.Conn().Close()
	h.out.Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.fault != nil:
		return h.fault.Error()
	case err == nil:
		err = errors.New("exit status 0")
	}
	if !heard {
		return fmt.Sprintf("%v before mapreduce.Main (%s)", err, runtime.WorkerEnvironment(sub, dir))
	}
	return err.Error()
}

func (h *handle) start(sub *wire.Submission, dir string) (Worker, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("make worker's directory: %w", err)
	}
	h.mu.Lock()
	killed := h.killed
	h.mu.Unlock()
	if killed {
		return nil, errors.New("killed before")
	}
	var w Worker
	var err error
	started := make(chan struct{})
	h.set.starts <- func() {
		w, err = h.set.cfg.Starter.Start(sub, dir)
		close(started)
	}
	<-started
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.worker = w
	if h.killed {
		w.Kill()
	}
	return w, nil
}

// write sends what is said to the worker. The directories of an attempt are made
// before it hears of it.
func (h *handle) write(conn *wire.Conn) {
	for m := range h.out.All() {
		if run, ok := m.(*wire.Run); ok {
			var err error
			if m, err = h.makeReady(run); err != nil {
				h.giveUp(err)
				return
			}
			h.apply()
		}
		if err := conn.Send(m); err != nil {
			return // its end tells more
		}
	}
}

// makeReady makes what an attempt finds when it begins.
func (h *handle) makeReady(run *wire.Run) (*wire.Run, error) {
	err := errors.Join(os.MkdirAll(core.WorkDir(run.Dir), 0o777), os.MkdirAll(run.Logs, 0o777))
	if err != nil {
		err = fmt.Errorf("make the attempt's directories: %w", err)
	}
	h.mu.Lock()
	worker := h.worker
	h.running = run.Attempt
	h.mu.Unlock()
	w, ok := worker.(captured)
	if err != nil || !ok {
		return run, err
	}
	told := *run
	told.Logs, err = w.Capture(run.Logs, func(err error) { h.logFailed(run.Attempt, err) })
	return &told, err
}

// logFailed gives the worker up for the log of an attempt, unless that is over: a process
// that it left behind may still write.
func (h *handle) logFailed(attempt wire.AttemptID, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running == attempt && attempt.Task.Kind.Slotted() { // others write little, and are needed to go on
		h.fault = cmp.Or(h.fault, fmt.Errorf("disk %s cannot take its log: %w", h.set.cfg.LogDir, err))
		h.killLocked()
	}
}

// over notes that the attempt is over, and says whether the worker may run another.
func (h *handle) over() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running = wire.AttemptID{}
	return h.fault == nil
}

// listen passes on what the worker says until its pipe ends. It tells whether it
// said anything, as mapreduce.Main does at once.
func (h *handle) listen(w Worker) (heard bool) {
	for ; ; heard = true {
		m, err := w.Conn().Receive()
		if err != nil {
			if garbled(err) {
				h.giveUp(fmt.Errorf("its worker sent what is no message: %w", err))
			}
			return heard
		}
		ev := core.FromWorker{Worker: h.id, Message: m}
		if done, ok := m.(*wire.WorkerDone); ok && done.Result.Error == "" {
			l, asked := w.(loner)
			ev.Alone = !asked || l.Alone()
			if w, ok := w.(captured); ok {
				w.Drain()
			}
			ev.Alone = h.over() && ev.Alone
		}
		h.set.cfg.Tell(ev)
	}
}

// garbled says whether a message was at fault, and not the end of the pipe.
func garbled(err error) bool {
	return !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, os.ErrClosed) &&
		!errors.Is(err, io.ErrClosedPipe) && !errors.Is(err, os.ErrDeadlineExceeded)
}
