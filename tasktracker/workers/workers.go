// Package workers connects the tracker with its workers: it starts them through a [Starter],
// sends them the core's messages, and passes their messages and their end to the core. With
// the Starter of package process, a worker is a process of a submission's program. In an
// embedded run it may be a goroutine.
//
// # Optional methods
//
// A Worker may have the methods of leftoverChecker, loggedWorker, limitedWorker and
// politeWorker. A worker without them leaves no processes, writes its attempts' logs itself,
// has no limits, and learns of its end by Kill.
//
// # Invariants
//
//	W1  Each Start leads to one core.WorkerExited, even if the worker could not start.
//	    It is the last event of the worker.
//	W2  The directories of an attempt exist, and its limits hold, before the worker gets
//	    its Run.
//	W3  All output of an attempt is in its logs before the core gets its success.
//	W4  Start, Send, Limit, End and Kill never wait for a disk or a worker.
//	W5  A killed worker is over only when its processes are: the kernel may keep one in a system call, as on a dead
//	    NFS server, and it may still write then. Its attempt, its tokens and its files wait so long. The log says so.
//
// # Concurrency
//
// Any goroutine may call any method of a Set. Each worker has three goroutines: one receives
// its messages, one sends, one waits for its end. [Set.Run] starts all workers on one thread,
// because the kernel kills a worker when the thread that started it ends.
package workers

import (
	"io"
	"log/slog"
	"maps"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/quernmr/quern/tasktracker/account"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// Starter starts workers: processes or goroutines.
type Starter interface {
	// Start starts a worker of a program. It does not close the executable. The worker has the
	// directory for itself: outside of attempts, its stderr goes to the file stderr there. Calls
	// come one at a time and should be quick.
	Start(p *Program, dir string) (Worker, error)
}

// Program is what a worker runs.
type Program struct {
	Submission *wire.Submission
	Executable *os.File         // open; nil: start it from Submission.Program.Path
	Jobs       []string         // directories of the submission's jobs, on all disks
	Shared     []Shared         // copies of archives that its jobs share with others
	Results    string           // directory in the session of the driver that made the submission, which its jobs may use; empty: none, or not local
	Account    *account.Account // of the worker, see package isolation; nil: the tracker's
	Planned    any              // what Plan of the Starter has found out; nil: nothing
}

// Shared is a directory for the copy of a side file.
type Shared struct {
	Job  int    // index of the job in the submission
	Name string // of the side file
	Dir  string
}

// planner is a Starter that first looks at files which the submission names. This may take any time, as on a dead NFS server,
// so each worker's goroutine does it. Plan sets Program.Planned for the next Start; release gives it up.
type planner interface {
	Plan(p *Program, dir string) (release func(), err error)
}

// Worker is a started worker.
type Worker interface {
	// Conn is the pipe to the worker. It must end with the worker. The tracker closes it
	// after Wait.
	Conn() *wire.Conn

	// Kill kills the worker and its children, at once and from any goroutine.
	Kill()

	// Wait waits until all processes of the worker have ended. It returns an error unless
	// the exit status is 0. It is called once.
	Wait() error
}

// leftoverChecker is a Worker that may leave processes, and reports whether there are none.
type leftoverChecker interface{ NoLeftovers() bool }

// loggedWorker is a Worker with logs that this process writes. Before each attempt, Capture
// gets the directory of its logs, and returns the directory of pipes for wire.Run. It calls
// failed if a log cannot be written. Drain writes pending output to the logs.
type loggedWorker interface {
	Capture(logs string, failed func(error)) (string, error)
	Drain()
}

// limitedWorker is a Worker with limits. Limit may block, and may be called after the end
// of the worker. Another goroutine calls exceeded, once, before it kills the worker.
type limitedWorker interface {
	Limit(limit core.Limit, exceeded func(reason string))
}

// politeWorker is a Worker that can be asked to end. Dump asks it for its goroutines first; it
// may end then. Both return at once, and do nothing after the end of the worker.
type politeWorker interface {
	Terminate()
	Dump()
}

// EndGrace is the time in which a worker must end after its pipe is closed, and in which its
// last messages must arrive after its end.
const EndGrace = 2 * time.Second

// Config configures a Set.
type Config struct {
	Starter Starter          // Stop closes it if it is an io.Closer
	OnEvent func(core.Event) // gets messages and ends of workers
	LogDir  string           // directory of attempts' logs, for errors
	Grace   time.Duration    // time between Terminate and Kill; 0: workers are killed at once
	Logger  *slog.Logger     // nil: silent
}

// Set has the workers of a tracker, by the core's numbers. Make one with [New].
type Set struct {
	cfg     Config
	starts  chan func() // see Run
	running sync.WaitGroup
	helpers sync.WaitGroup // other goroutines

	mu      sync.Mutex
	handles map[int]*handle
}

// New returns a set without workers.
func New(cfg Config) *Set {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Set{cfg: cfg, starts: make(chan func()), handles: make(map[int]*handle)}
}

// Run starts workers, on one thread that lives until Stop.
func (s *Set) Run() {
	runtime.LockOSThread()
	for start := range s.starts {
		start()
	}
}

// Prepare returns a program, with an executable that the caller closes.
type Prepare = func() (*Program, error)

// Start starts a worker in a directory, for the program that prepare returns.
func (s *Set) Start(worker int, dir string, prepare Prepare) {
	h := newHandle(s, worker, prepare)
	s.mu.Lock()
	s.handles[worker] = h
	s.mu.Unlock()
	s.running.Go(func() { h.run(dir) })
}

// Send sends a message to a worker, unless it has ended.
func (s *Set) Send(worker int, m wire.Message) {
	if h := s.find(worker); h != nil {
		h.out.Put(m)
	}
}

// Limit sets the limit of a worker's next attempt.
func (s *Set) Limit(limit core.Limit) {
	if h := s.find(limit.Worker); h != nil {
		h.limit(limit)
	}
}

// Kill kills a worker.
func (s *Set) Kill(worker int) {
	if h := s.find(worker); h != nil {
		h.kill()
	}
}

// End asks a worker to end, after a dump of its goroutines if dump is set, and kills it if it
// has not ended after Config.Grace.
func (s *Set) End(worker int, dump bool) {
	if h := s.find(worker); h != nil {
		h.end(dump)
	}
}

func (s *Set) find(worker int) *handle {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.handles[worker]
}

func (s *Set) remove(worker int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.handles, worker)
}

// Stop ends all workers and waits for their end. Start must not be called afterwards.
func (s *Set) Stop() (err error) {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.handles))
	s.mu.Unlock()
	for _, h := range all {
		h.end(false)
	}
	s.running.Wait()
	close(s.starts)
	if c, ok := s.cfg.Starter.(io.Closer); ok {
		err = c.Close()
	}
	s.helpers.Wait()
	return err
}
