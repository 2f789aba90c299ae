package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/shuffle"
	"github.com/quernmr/quern/wire"
)

// Options configures a worker.
type Options struct {
	// InProcess is for a worker that shares its process with others: an attempt does not
	// change the working directory, stdout, stderr or garbage collection.
	InProcess bool

	// Client fetches segments from other machines; nil: http.DefaultClient.
	Client *http.Client

	// Progress is the time between two WorkerProgress messages; 0: half a second.
	Progress time.Duration

	// Profile writes a CPU profile of this process until stop is called; nil: it has none. Package runtime/pprof
	// stays out of programs that only import this one.
	Profile func(to io.Writer) (stop func(), err error)

	// Collect replaces the sorted output of a map, in simulations: it is called after the map's code, which gets
	// no collector. nil: maps write segment files.
	Collect func(wire.AttemptID) (*wire.MapOutput, error)

	// Clock measures parts of attempts; nil: time.Now.
	Clock func() time.Time
}

// endGrace limits the wait of a worker with InProcess for its attempt's code.
const endGrace = 2 * time.Second

// keepMemory is how long an idle worker keeps a map's memory for the next map.
const keepMemory = time.Second

// Serve runs attempts, one at a time, for the tracker at the other end of conn. It closes
// conn. When the tracker closes its end, Serve returns nil at once, even if the job's code
// still runs: a worker process must then exit. When ctx ends, Serve waits for that code; the
// tracker kills a worker process that takes too long.
func Serve(ctx context.Context, conn *wire.Conn, load Load, fs dfs.FS, opts Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer conn.Close()
	if opts.Progress <= 0 {
		opts.Progress = 500 * time.Millisecond
	}
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	w := &worker{conn: conn, load: load, fs: fs, opts: opts,
		granted: make(chan struct{}, 1), done: make(chan wire.Result, 1)}
	if !opts.InProcess {
		w.gc, w.savedOutput, w.sortMemory = newGCTuner(), keepOutput(), new(shuffle.Memory)
	}
	if err := conn.Send(&wire.WorkerHello{Protocol: wire.WorkerProtocol}); err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	err := w.loop(ctx)
	asked := ctx.Err() != nil
	cancel()
	conn.Close()
	if w.running && (asked || opts.InProcess) {
		var limit <-chan time.Time
		if opts.InProcess {
			limit = time.After(endGrace)
		}
		select {
		case <-w.done:
		case <-limit:
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) {
		return nil
	}
	return err
}

// worker is the state of Serve; its loop's goroutine owns it.
type worker struct {
	conn        *wire.Conn
	load        Load
	fs          dfs.FS
	opts        Options
	gc          *gcTuner // nil with InProcess
	savedOutput []int    // stdout and stderr of the process outside of attempts; nil with InProcess

	// sortMemory is the memory of the last map, until another kind of attempt starts or the worker is idle for keepMemory.
	// The attempt that runs owns it. nil with InProcess: an attempt may go on there after the worker has ended.
	sortMemory *shuffle.Memory

	staged  *wire.Submission // the submission that was last read
	running bool
	granted chan struct{}
	done    chan wire.Result
}

func (w *worker) loop(ctx context.Context) error {
	messages, ended := make(chan wire.Message), make(chan error, 1)
	go func() {
		for {
			m, err := w.conn.Receive()
			if err != nil {
				ended <- err
				return
			}
			select {
			case messages <- m:
			case <-ctx.Done():
				return
			}
		}
	}()
	var idle <-chan time.Time
	for {
		select {
		case m := <-messages:
			idle = nil
			if err := w.handle(ctx, m); err != nil {
				return fmt.Errorf("worker: %w", err)
			}
		case result := <-w.done:
			w.running = false
			if w.sortMemory != nil {
				idle = time.After(keepMemory)
			}
			if err := w.conn.Send(&wire.WorkerDone{Result: result}); err != nil {
				return fmt.Errorf("worker: %w", err)
			}
		case <-idle:
			w.sortMemory.Free()
		case err := <-ended:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (w *worker) handle(ctx context.Context, m wire.Message) error {
	switch m := m.(type) {
	case *wire.Run:
		if w.running {
			return fmt.Errorf("asked to run %s while another attempt runs", m.Attempt)
		}
		w.running = true
		select {
		case <-w.granted: // for an attempt that did not wait for it
		default:
		}
		go w.run(ctx, m)
		return nil
	case *wire.CommitGranted:
		select {
		case w.granted <- struct{}{}:
		default: // sent twice
		}
		return nil
	}
	return fmt.Errorf("unexpected message %T", m)
}

// run runs one attempt on its own goroutine, because code may end its goroutine.
func (w *worker) run(ctx context.Context, run *wire.Run) {
	a := newAttempt(ctx, w, run)
	stop := a.startReporting()
	result := wire.Result{Error: "the job's code has ended its goroutine (runtime.Goexit)"}
	defer func() {
		stop()
		a.task.cancel(nil)
		restoreOutput(w.savedOutput)
		w.done <- result
	}()
	if err := protect(a.run, nil); err != nil {
		result = a.failed(err)
		if errors.Is(err, ErrPanic) && !w.opts.InProcess {
			fmt.Fprintln(os.Stderr, wire.Truncate(err.Error(), wire.MaxText)) // for the log, as Go prints it
		}
	} else {
		result = a.result
	}
}

// startReporting sends progress until stop is called. stop waits for the last message.
func (a *attempt) startReporting() (stop func()) {
	quit := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		tick := time.NewTicker(a.worker.opts.Progress)
		defer tick.Stop()
		var sent *wire.Hot
		for {
			select {
			case <-tick.C:
			case <-quit:
				return
			}
			if a.worker.gc != nil {
				a.worker.gc.adjust()
			}
			if a.isKeptAlive() {
				a.task.pulse.beat()
			}
			m := &wire.WorkerProgress{Bytes: a.progress(), Activity: a.task.pulse.ask()}
			if hot := a.hot.Load(); hot != sent {
				m.Hot, sent = hot, hot
			}
			// If the stream is lost, the reading side ends the worker.
			_ = a.worker.conn.Send(m)
		}
	})
	return func() {
		close(quit)
		wait.Wait()
	}
}

// submission reads the staged submission with a digest for an attempt of this kind, and caches
// it: a worker serves only one submission. Only cleanup and commit attempts may read a stopped
// submission.
func (w *worker) submission(staging string, digest []byte, kind wire.Kind) (*wire.Submission, error) {
	if w.staged != nil && w.staged.Staging == staging {
		return w.staged, nil
	}
	f, err := w.fs.Open(dfs.Join(staging, wire.StagedSubmission))
	if missing(err) && (kind == wire.Cleanup || kind == wire.Commit) {
		f, err = w.fs.Open(dfs.Join(staging, wire.StagedStopped))
	}
	if err != nil {
		return nil, fmt.Errorf("read submission: %w", err)
	}
	defer f.Close()
	sub, err := wire.ReadStaged(f, f.Info().Name, digest)
	if _, changed := errors.AsType[*wire.DigestError](err); changed {
		return nil, Fatal(err)
	}
	if err != nil {
		return nil, err
	}
	sub.Staging = staging
	w.staged = sub
	return sub, nil
}
