// Package workers is the tracker's side of its workers: it has them started, tells them
// what tasktracker/core says, and tells the core what they say and how they end. A worker
// is a process of a submission's program, or something that behaves like one: what a
// [Starter] starts. How a process is kept apart from others, held to limits and killed is
// package process's; in an embedded run workers are goroutines.
//
// # What a worker may do besides
//
// A Worker may have the methods of loner, captured and limited. One that lacks them leaves
// no processes behind, writes its attempts' logs itself, and has no limits.
//
// # Invariants
//
//	W1  Each worker that is started, or cannot be, ends in one core.WorkerExited, the last
//	    event of that worker.
//	W2  The directories of an attempt are there, and its limits hold, before the worker hears
//	    of it.
//	W3  What an attempt wrote is in its logs when the core hears that it has ended well.
//	W4  Start, Say, Limit and Kill do not wait, for a disk or for a worker that is being limited.
//
// # Concurrency
//
// All methods of a Set may be called by any goroutine. Each worker has three: one listens
// to it, one writes to it, one waits for its end. [Set.Run] starts all of them on one
// thread: the kernel ends a worker with the thread that started it.
package workers

import (
	"io"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// Starter starts workers: processes, or something that behaves like one.
type Starter interface {
	// Start starts a worker of a submission's program. The directory is its own:
	// what it writes to stderr outside of attempts goes to the file stderr there.
	// Calls come one at a time and should be quick.
	Start(sub *wire.Submission, dir string) (Worker, error)
}

// Worker is a started worker.
type Worker interface {
	// Conn is the pipe to it. The tracker closes it once Wait has returned; the
	// pipe must end when the worker does.
	Conn() *wire.Conn

	// Kill ends it with all it has started, at once and from any goroutine.
	Kill()

	// Wait waits until nothing of it runs any more, and says how it ended: nil is
	// exit status 0. It is called once.
	Wait() error
}

// loner is a Worker that can tell whether it has left processes behind. One that
// cannot has none.
type loner interface{ Alone() bool }

// captured is a Worker whose attempts' logs pass through this process. Capture is called
// before each attempt, with the directory of its logs, and says which it is told of.
// Failed is called when a log cannot be written. Drain has what was written so far in
// the logs.
type captured interface {
	Capture(logs string, failed func(error)) (string, error)
	Drain()
}

// limited is a Worker that can be held to a limit, which may take a while and may
// come after its end. Exceeded is called, once, by another goroutine before the
// worker is killed for it; it may wait.
type limited interface {
	Limit(most core.Limit, exceeded func(reason string))
}

// EndGrace is how long a worker may take to end by itself once its pipe is
// closed, and what it has said may take to arrive once it has ended.
const EndGrace = 2 * time.Second

// Config says what a Set needs.
type Config struct {
	Starter Starter          // closed by Stop if it is an io.Closer
	Tell    func(core.Event) // is told what workers say and how they end
	LogDir  string           // where attempts' logs are, for errors that name the disk
}

// Set has the workers of a tracker, by the core's numbers. Make one with [New].
type Set struct {
	cfg    Config
	starts chan func() // see Run
	lives  sync.WaitGroup
	others sync.WaitGroup // goroutines besides

	mu sync.Mutex
	by map[int]*handle
}

// New makes a set without workers.
func New(cfg Config) *Set {
	return &Set{cfg: cfg, starts: make(chan func()), by: make(map[int]*handle)}
}

// Run starts workers, on one thread that lives until Stop.
func (s *Set) Run() {
	runtime.LockOSThread()
	for start := range s.starts {
		start()
	}
}

// Start starts a worker of the submission that prepare gets, in a directory of its own.
func (s *Set) Start(worker int, dir string, prepare func() (*wire.Submission, error)) {
	h := newHandle(s, worker, prepare)
	s.mu.Lock()
	s.by[worker] = h
	s.mu.Unlock()
	s.lives.Go(func() { h.live(dir) })
}

// Say sends a message to a worker, unless it has ended.
func (s *Set) Say(worker int, m wire.Message) {
	if h := s.at(worker); h != nil {
		h.out.Put(m)
	}
}

// Limit says what the next attempt of a worker may take.
func (s *Set) Limit(most core.Limit) {
	if h := s.at(most.Worker); h != nil {
		h.limit(most)
	}
}

// Kill ends a worker.
func (s *Set) Kill(worker int) {
	if h := s.at(worker); h != nil {
		h.kill()
	}
}

func (s *Set) at(worker int) *handle {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by[worker]
}

func (s *Set) remove(worker int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.by, worker)
}

// Stop kills all workers and waits for their end. None is started afterwards.
func (s *Set) Stop() (err error) {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.by))
	s.mu.Unlock()
	for _, h := range all {
		h.kill()
	}
	s.lives.Wait()
	close(s.starts)
	if c, ok := s.cfg.Starter.(io.Closer); ok {
		err = c.Close()
	}
	s.others.Wait()
	return err
}
