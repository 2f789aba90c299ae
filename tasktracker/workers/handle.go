package workers

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/shuffle"
	"github.com/quernmr/quern/tasktracker/account"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/tasktracker/credentials"
	"github.com/quernmr/quern/tasktracker/isolation"
	"github.com/quernmr/quern/wire"
)

// handle is the tracker's end of a worker.
type handle struct {
	set     *Set
	id      int
	prepare Prepare
	out     *wire.Queue[wire.Message]

	mu         sync.Mutex
	worker     Worker         // nil: not started yet
	shared     []Shared       // of its program
	running    wire.AttemptID // zero: none
	killed     bool           // or asked to end
	ending     *time.Timer    // the next step of end; nil: none
	hanging    *time.Timer    // of logHanging; nil: it was not killed
	hung, over bool           // logHanging has logged; the worker has ended
	overran    time.Duration  // it was killed so long after Terminate; 0: it was not
	killReason error          // of a kill by fail; nil: none
	nextLimit  core.Limit     // holds from the next Run on
}

func newHandle(s *Set, id int, prepare Prepare) *handle {
	return &handle{set: s, id: id, prepare: prepare, out: wire.NewQueue[wire.Message](0)}
}

func (h *handle) limit(c core.Limit) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.nextLimit = c
}

// applyLimit limits the worker for its next attempt. It may block, but without the lock, so
// that kill never waits.
func (h *handle) applyLimit() {
	h.mu.Lock()
	worker, limit := h.worker, h.nextLimit
	h.mu.Unlock()
	if w, ok := worker.(limitedWorker); ok {
		w.Limit(limit, func(reason string) { h.set.cfg.OnEvent(core.Exceeded{Worker: h.id, Reason: reason}) })
	}
}

func (h *handle) kill() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.killLocked()
}

func (h *handle) killLocked() {
	h.killed = true
	if h.hanging == nil && !h.over {
		h.hanging = time.AfterFunc(hangTime, h.logHanging)
	}
	if h.worker != nil {
		h.worker.Kill()
	}
}

// hangTime is how long a killed worker may take to end before the log says that it hangs.
const hangTime = 30 * time.Second

// logHanging logs that a killed worker is not over, see W5.
func (h *handle) logHanging() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return
	}
	h.hung = true
	h.set.cfg.Logger.Warn("a killed worker has not ended: a system call hangs, and its attempt and submission wait for it", "worker", h.id, "attempt", h.running, "for", hangTime)
}

// ended records the end of the worker.
func (h *handle) ended() (overran time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	if h.hanging != nil {
		h.hanging.Stop()
	}
	if h.hung {
		h.set.cfg.Logger.Info("a worker that hung has ended", "worker", h.id)
	}
	return h.overran
}

// dumpTime is the time for a dump of goroutines.
const dumpTime = time.Second

// end asks the worker to end, see Set.End.
func (h *handle) end(dump bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w, ok := h.worker.(politeWorker)
	switch {
	case !ok || h.set.cfg.Grace <= 0:
		h.killLocked()
	case h.killed:
	case dump:
		h.killed = true
		w.Dump()
		h.ending = time.AfterFunc(min(dumpTime, h.set.cfg.Grace), func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.terminateLocked(w)
		})
	default:
		h.killed = true
		h.terminateLocked(w)
	}
}

func (h *handle) terminateLocked(w politeWorker) {
	w.Terminate()
	h.ending = time.AfterFunc(h.set.cfg.Grace, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.overran = h.set.cfg.Grace
		h.killLocked()
	})
}

// fail kills the worker. Its attempt reports the error.
func (h *handle) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.killReason = cmp.Or(h.killReason, err)
	h.killLocked()
}

// run starts the worker, receives its messages until it ends, and reports its end.
func (h *handle) run(dir string) {
	exited := core.WorkerExited{Worker: h.id}
	if sub, w, err := h.start(dir); err != nil {
		_, changed := errors.AsType[*wire.DigestError](err)
		_, refused := errors.AsType[*credentials.RefusedError](err)
		_, stranger := errors.AsType[*account.RefusedError](err)
		_, outside := errors.AsType[*isolation.RefusedError](err)
		exited.Fatal = changed || refused || stranger || outside // every tracker would find the same
		exited.Reason = err.Error()
	} else {
		exited.Reason = h.serve(sub, w, dir)
	}
	h.set.remove(h.id)
	exited.Overran = h.ended()
	h.set.cfg.OnEvent(exited)
}

func (h *handle) serve(sub *wire.Submission, w Worker, dir string) string {
	h.set.helpers.Go(func() { h.write(w.Conn()) })
	exited := make(chan error, 1)
	h.set.helpers.Go(func() { exited <- w.Wait() })
	received := h.listen(w)
	ended := time.AfterFunc(max(EndGrace, h.set.cfg.Grace), h.kill)
	err := <-exited
	ended.Stop()
	w.Conn().Close()
	h.out.Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ending != nil {
		h.ending.Stop()
	}
	switch {
	case h.killReason != nil:
		return h.killReason.Error()
	case err == nil:
		err = errors.New("exit status 0")
	}
	if err.Error() != "signal: killed" { // its worker has ended, and only its children were slow
		h.overran = 0
	}
	if !received {
		return fmt.Sprintf("%v before mapreduce.Main (%s)", err, runtime.WorkerEnvironment(sub, dir))
	}
	return err.Error()
}

func (h *handle) start(dir string) (*wire.Submission, Worker, error) {
	p, err := h.prepare()
	if err != nil {
		return nil, nil, err
	}
	if p.Executable != nil {
		defer p.Executable.Close()
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, nil, fmt.Errorf("make worker's directory: %w", err)
	}
	if s, ok := h.set.cfg.Starter.(planner); ok {
		release, err := s.Plan(p, dir)
		if err != nil {
			return nil, nil, err
		}
		defer release()
	}
	h.mu.Lock()
	killed := h.killed
	h.mu.Unlock()
	if killed {
		return nil, nil, errors.New("killed before it started")
	}
	var w Worker
	started := make(chan struct{})
	h.set.starts <- func() {
		w, err = h.set.cfg.Starter.Start(p, dir)
		close(started)
	}
	<-started
	if err != nil {
		return nil, nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.worker, h.shared = w, p.Shared
	if h.killed {
		w.Kill()
	}
	return p.Submission, w, nil
}

// write sends messages to the worker. It makes the directories of an attempt before its
// Run.
func (h *handle) write(conn *wire.Conn) {
	for m := range h.out.All() {
		if run, ok := m.(*wire.Run); ok {
			var err error
			if m, err = h.prepareAttempt(run); err != nil {
				h.fail(err)
				return
			}
			h.applyLimit()
		}
		if err := conn.Send(m); err != nil {
			return // run reports the end of the worker
		}
	}
}

// prepareAttempt makes the directories and log pipes of an attempt.
func (h *handle) prepareAttempt(run *wire.Run) (*wire.Run, error) {
	job, work := filepath.Dir(run.Dir), core.WorkDir(filepath.Base(run.Dir))
	err := errors.Join(shuffle.MakeDir(job, work), os.MkdirAll(run.Logs, 0o777))
	if err != nil {
		err = fmt.Errorf("make the attempt's directories: %w", err)
	}
	h.mu.Lock()
	worker, shared := h.worker, h.shared
	h.running = run.Attempt
	h.mu.Unlock()
	if err == nil {
		err = linkShared(run, shared)
	}
	w, ok := worker.(loggedWorker)
	if err != nil || !ok {
		return run, err
	}
	sent := *run
	sent.Logs, err = w.Capture(run.Logs, func(err error) { h.logFailed(run.Attempt, err) })
	return &sent, err
}

// linkShared tells an attempt where its job shares copies with others: by links, which programs of older versions
// ignore.
func linkShared(run *wire.Run, shared []Shared) error {
	if len(shared) == 0 {
		return nil
	}
	job, err := os.OpenRoot(filepath.Dir(run.Dir))
	if err != nil {
		return err
	}
	defer job.Close()
	for _, s := range shared {
		if s.Job != run.Index {
			continue
		}
		if err := job.Symlink(s.Dir, filepath.Join(filepath.Base(run.Dir), runtime.SharedLink(s.Name))); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("link the shared directory of side file %q: %w", s.Name, err)
		}
	}
	return nil
}

// logFailed kills the worker if the log of its attempt cannot be written. It ignores the
// log of an earlier attempt, which a leftover process may still write.
func (h *handle) logFailed(attempt wire.AttemptID, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running == attempt && attempt.Task.Kind.Slotted() { // service attempts write little, and the job needs them
		h.killReason = cmp.Or(h.killReason, fmt.Errorf("cannot write its log on disk %s: %w", h.set.cfg.LogDir, err))
		h.killLocked()
	}
}

// attemptEnded records the end of the attempt, and reports whether the worker may run
// another.
func (h *handle) attemptEnded() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running = wire.AttemptID{}
	return h.killReason == nil
}

// listen passes on the worker's messages until its pipe ends. It reports whether it
// received any: mapreduce.Main sends one at once.
func (h *handle) listen(w Worker) (received bool) {
	for ; ; received = true {
		m, err := w.Conn().Receive()
		if err != nil {
			if isMalformed(err) {
				h.fail(fmt.Errorf("its worker sent a malformed message: %w", err))
			}
			return received
		}
		ev := core.FromWorker{Worker: h.id, Message: m}
		if done, ok := m.(*wire.WorkerDone); ok && done.Result.Error == "" {
			checker, ok := w.(leftoverChecker)
			ev.NoLeftovers = !ok || checker.NoLeftovers()
			if w, ok := w.(loggedWorker); ok {
				w.Drain()
			}
			ev.NoLeftovers = h.attemptEnded() && ev.NoLeftovers
		}
		h.set.cfg.OnEvent(ev)
	}
}

// isMalformed reports whether the error of a Receive means a malformed message, not the end of the pipe.
func isMalformed(err error) bool {
	return !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, os.ErrClosed) &&
		!errors.Is(err, io.ErrClosedPipe) && !errors.Is(err, os.ErrDeadlineExceeded)
}
