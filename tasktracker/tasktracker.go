// Package tasktracker runs attempts on one machine: it drives tasktracker/core
// with what happens here and carries out what the core decides. It starts worker
// processes and talks to them over pipes, fetches and merges map outputs for the
// partitions that are at home here, serves map outputs to other trackers, keeps
// the local directory, and holds a stream to the leading job tracker.
//
// It decides nothing itself: not what runs, not where, not how often something
// is tried. It does not run the author's code in this process, unless the
// workers.Starter it was given does.
//
// # Packages below
//
//	core        decides: events in, commands out
//	disks       which directories can be used, room on them, what an earlier process left
//	program     executables of submissions, copied once
//	workers     what is said to workers, and what they say
//	process     workers as processes: groups, limits, survivors
//	attemptlog  logs of attempts: written, read, served, expired
//	gather      fetches, look-ups and merges for the partitions at home here
//	token       jobs' tokens, for requests and for a later process
//
// None of them knows the loop. What is here joins them: the start and its order, the loop
// with a command for each call (do), the stream to the job tracker, the HTTP server, and
// what needs two of them, as the search for logs and tokens that nobody needs any more.
//
// # Concurrency
//
// One goroutine, the loop, owns the core. Everything that may wait for a disk, a
// pipe or a network is done by other goroutines, which post what came of it to
// the loop. The loop never waits for any of them.
//
// # Files
//
// Below the tracker's directory, beside those that tasktracker/core names:
//
//	lock       locked as long as a tracker uses the directory, see package datadir
//	quern-tasktracker
//	           the marker of that package
//	cluster    id of the cluster it belongs to; a tracker serves no other one
//	staging    URL of the staging directory, of which alone it reads and runs anything
//	programs/  executables of submissions with jobs here, see package program
//	workers, cgroup
//	           what a successor is to kill, see package process
//	tokens/    of the jobs of which something is here, see package token
//
// and on each disk, which may be the directory itself, a lock, a marker, and what package
// disks names.
//
// What a predecessor left is removed first, processes and files, but logs, which
// are kept for some time, and finished map outputs with their reports: these are
// verified in the background and offered to the leader. A tracker whose directory
// is for one run alone leaves and keeps nothing.
//
// # HTTP
//
//	GET /shuffle/...                            see package shuffle
//	GET /logs/<job>/<attempt>/<stdout|stderr>   an attempt's log, with ranges; the
//	                                            last bytes of it by ?tail=BYTES
//	GET /healthz                                {"id": own, "led": it is registered}
//
// Whoever asks has some time for it, whoever is answered for each piece of the answer;
// then the connection is closed.
package tasktracker

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/tasktracker/disks"
	"github.com/quernmr/quern/tasktracker/gather"
	"github.com/quernmr/quern/tasktracker/process"
	"github.com/quernmr/quern/tasktracker/program"
	"github.com/quernmr/quern/tasktracker/token"
	"github.com/quernmr/quern/tasktracker/workers"
	"github.com/quernmr/quern/wire"
)

// Config says what a tracker is and where it keeps its files.
type Config struct {
	ID          string
	Host        string // the name by which the file system knows this machine; empty: its host name
	Rack        string // where the machine stands, like "/dc1/r7"; empty: not known
	Service     Service
	MapSlots    int
	ReduceSlots int
	Dir         string   // for local files, this tracker's alone
	Disks       []string // directories for the data of jobs, each on a disk of its own, this tracker's alone; empty: Dir
	FS          dfs.FS
	Staging     string  // URL of the cluster's staging directory; empty: that which the first job tracker names
	Embedded    bool    // the job tracker is in this process: it is believed, see core.Config
	ShuffleRate float64 // bytes a second that it fetches from other trackers at most; 0: any
	Temporary   bool    // Dir is for this run alone: nothing in it is kept for the next, and logs go with their job
	Logs        Logs
	Workers     workers.Starter         // nil: processes of the job's program
	Check       func(path string) error // of an executable, each time before a process is started; nil: none
	Ready       func(addr string)       // called once others can reach the shuffle service; nil: none
	Logger      *slog.Logger            // nil: silent

	hooks hooks
}

// Service is where a tracker serves map outputs and logs, and how.
type Service struct {
	Listen    string // address; port 0 takes a free one
	Advertise string // host:port under which others reach it; empty: as it listens

	// Serve and Dial, when not nil, protect the service and the fetches from others'.
	Serve, Dial *tls.Config
}

// Logs bounds the logs of attempts.
type Logs struct {
	Age     time.Duration // how long those of ended jobs are kept; 0: [DefaultLogAge]
	Bytes   int64         // how many bytes of them; 0: [DefaultLogBytes]
	Attempt int64         // how many bytes the logs of one attempt may take; 0: [DefaultAttemptLogs]
}

// hooks are for tests.
type hooks struct {
	fetchStall    time.Duration                   // see gather.Config; 0: its own
	noLeaderAfter time.Duration                   // see connect; 0: its own
	free          func(dir string) (int64, error) // see disks.Config; nil: as the system says
}

// How long and how many of the logs of ended jobs are kept if nothing else is said.
const (
	DefaultLogAge   = 7 * 24 * time.Hour
	DefaultLogBytes = 1 << 30
)

// Of an attempt's stdout and stderr, the first and the last part of each are kept.
const (
	DefaultAttemptLogs = 32 << 20
	MinAttemptLogs     = 64 << 10
)

// MinShuffleRate is the least rate that fetches can be held to.
const MinShuffleRate = 64 << 10

// Tracker is a task tracker. Make one with [New].
type Tracker struct{ cfg Config }

// New checks the configuration and takes nothing yet.
func New(cfg Config) (*Tracker, error) {
	switch {
	case cfg.ID == "":
		return nil, errors.New("task tracker: it has no id")
	case cfg.MapSlots < 0 || cfg.ReduceSlots < 0:
		return nil, fmt.Errorf("task tracker %s: %d map and %d reduce slots", cfg.ID, cfg.MapSlots, cfg.ReduceSlots)
	case cfg.ShuffleRate != 0 && !(cfg.ShuffleRate >= MinShuffleRate):
		return nil, fmt.Errorf("task tracker %s: a shuffle rate of %v bytes a second, at least %d", cfg.ID, cfg.ShuffleRate, MinShuffleRate)
	case cfg.Logs.Attempt != 0 && cfg.Logs.Attempt < MinAttemptLogs:
		return nil, fmt.Errorf("task tracker %s: %d bytes for the logs of an attempt, at least %d", cfg.ID, cfg.Logs.Attempt, MinAttemptLogs)
	case cfg.Dir == "" || cfg.FS == nil || cfg.Service.Listen == "":
		return nil, fmt.Errorf("task tracker %s: it needs a directory, a file system and an address", cfg.ID)
	}
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("task tracker %s: %w", cfg.ID, err)
	}
	cfg.Dir = dir
	if len(cfg.Disks) == 0 {
		cfg.Disks = []string{dir}
	}
	cfg.Disks = slices.Clone(cfg.Disks)
	for i := range cfg.Disks {
		if cfg.Disks[i], err = filepath.Abs(cfg.Disks[i]); err != nil {
			return nil, fmt.Errorf("task tracker %s: %w", cfg.ID, err)
		}
	}
	if cfg.Staging != "" {
		if cfg.Staging, err = dfs.Clean(cfg.Staging); err != nil {
			return nil, fmt.Errorf("task tracker %s: staging directory: %w", cfg.ID, err)
		}
	}
	cfg.Logs.Age = cmp.Or(cfg.Logs.Age, DefaultLogAge)
	cfg.Logs.Bytes = cmp.Or(cfg.Logs.Bytes, DefaultLogBytes)
	cfg.Logs.Attempt = cmp.Or(cfg.Logs.Attempt, DefaultAttemptLogs)
	if cfg.Host == "" {
		if cfg.Host, err = os.Hostname(); err != nil {
			return nil, fmt.Errorf("task tracker %s: %w", cfg.ID, err)
		}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.Logger = cfg.Logger.With("tracker", cfg.ID)
	if cfg.Workers == nil {
		cfg.Workers = process.New(process.Config{Dir: dir, Check: cfg.Check, Logs: cfg.Logs.Attempt, Groups: !cfg.Temporary})
	}
	return &Tracker{cfg}, nil
}

// tokensDir is where tokens are kept; empty: nowhere.
func (cfg *Config) tokensDir() string {
	if cfg.Temporary {
		return ""
	}
	return filepath.Join(cfg.Dir, token.Dir)
}

// Dial opens a stream to the job tracker that leads, or may know who does. Leader
// is what the last one asked has said about that, host:port; empty: nothing.
type Dial = func(ctx context.Context, leader string) (*wire.Conn, error)

// ErrDrained ends a tracker that was to drain and has nothing left that is needed.
var ErrDrained = errors.New("drained")

// Run serves until ctx ends, then kills all workers and returns nil. A stream that
// ends is dialled again. It returns ErrDrained when the leader lets the tracker go,
// and an error when the directory or the address
// cannot be had, or the shuffle service fails.
func (t *Tracker) Run(ctx context.Context, dial Dial) error {
	if err := t.run(ctx, dial); err != nil {
		return fmt.Errorf("task tracker %s: %w", t.cfg.ID, err)
	}
	return nil
}

func (t *Tracker) run(ctx context.Context, dial Dial) error {
	dirs, err := disks.Claim(disks.Config{Dir: t.cfg.Dir, Disks: t.cfg.Disks, Layout: layout, Free: t.cfg.hooks.free})
	if err != nil {
		return err
	}
	defer dirs.Close()
	outputs, err := clean(&t.cfg, dirs)
	if err != nil {
		return fmt.Errorf("remove what an earlier run left: %w", err)
	}
	found := core.Config{Restore: len(outputs) > 0}
	if found.Cluster, err = readWord(t.cfg.Dir, clusterName); err != nil {
		return err
	}
	if found.Staging, err = t.staging(); err != nil {
		return err
	}
	tokens, err := token.Open(t.cfg.tokensDir(), t.cfg.Logger)
	if err != nil {
		return fmt.Errorf("read tokens: %w", err)
	}
	listener, err := net.Listen("tcp", t.cfg.Service.Listen)
	if err != nil {
		return fmt.Errorf("listen for fetches: %w", err)
	}
	l := newLoop(t.cfg, listener, dirs, tokens, found)
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	defer l.cancel(nil)
	l.serve(listener)
	l.wait.Go(l.workers.Run)
	l.wait.Go(l.gather.LookUps)
	l.wait.Go(l.runChores)
	l.wait.Go(func() { l.restore(outputs) })
	l.wait.Go(l.reportDisks)
	for i, disk := range t.cfg.Disks {
		l.detached(func() { l.room.Watch(l.ctx, i, disk) })
	}
	if !t.cfg.Temporary {
		l.wait.Go(l.keepLogs)
	}
	l.wait.Go(func() { l.connect(dial) })
	if t.cfg.Ready != nil {
		t.cfg.Ready(listener.Addr().String())
	}
	l.loop()
	l.stop()
	if err := context.Cause(l.ctx); ctx.Err() == nil {
		return err
	}
	return nil
}

// staging is the staging directory that is known from the start: as configured, which
// is kept for later starts, or as kept; empty: none.
func (t *Tracker) staging() (string, error) {
	if t.cfg.Staging == "" {
		return readWord(t.cfg.Dir, stagingName)
	}
	return t.cfg.Staging, writeWord(t.cfg.Dir, stagingName, t.cfg.Staging)
}

// loop is a running tracker.
type loop struct {
	cfg          Config
	core         *core.Core
	link                       // to job trackers
	inbox        chan func()   // what to do on the loop's goroutine
	done         chan struct{} // closed when that has ended
	started      time.Time
	ctx          context.Context
	cancel       context.CancelCauseFunc
	wait         sync.WaitGroup
	detachedWork sync.WaitGroup // see detached

	// What carries out the core's commands.
	disks    *disks.Set
	room     *disks.Room
	programs *program.Store
	workers  *workers.Set
	gather   *gather.Gather
	tokens   *token.Store
	server   *http.Server
	chores   *wire.Queue[func()] // see doChores
}

func newLoop(cfg Config, listener net.Listener, dirs *disks.Set, tokens *token.Store, found core.Config) *loop {
	addr := cfg.Service.Advertise
	if addr == "" {
		addr = listener.Addr().String()
	}
	l := &loop{
		cfg: cfg, disks: dirs, inbox: make(chan func(), 64), done: make(chan struct{}), started: time.Now(),
		link:   link{hangupReasons: make(map[string]bool)},
		chores: wire.NewQueue[func()](0), programs: program.New(cfg.Dir, cfg.FS, cfg.Embedded),
		tokens: tokens,
	}
	l.room = &disks.Room{Disks: dirs, Tracker: cfg.ID, Running: l.running, End: l.exceeded}
	l.workers = workers.New(workers.Config{Starter: cfg.Workers, Tell: l.event, LogDir: cfg.Dir})
	l.gather = gather.New(gather.Config{
		Tell: l.event, Token: tokens.Get, Stall: cfg.hooks.fetchStall, Rate: cfg.ShuffleRate, Dial: cfg.Service.Dial, Log: cfg.Logger,
	})
	found.Tracker, found.Process, found.Host, found.Addr = cfg.ID, processNumber(), cfg.Host, addr
	found.Rack, found.FetchRate = cfg.Rack, cfg.ShuffleRate
	found.MapSlots, found.ReduceSlots = cfg.MapSlots, cfg.ReduceSlots
	found.Dir, found.Disks, found.Embedded = cfg.Dir, cfg.Disks, cfg.Embedded
	found.KeepLogs, found.Record = !cfg.Temporary, !cfg.Temporary
	l.core = core.New(found)
	return l
}

func processNumber() uint64 {
	var b [8]byte
	rand.Read(b[:]) // it never fails
	return binary.NativeEndian.Uint64(b[:]) | 1
}

// detached does what may hang for ever, as a look at a bad disk or a network file
// system. The end of the tracker waits for it a little.
func (l *loop) detached(do func()) { l.detachedWork.Go(do) }

// awaitDetached waits for what is detached, unless it hangs.
func (l *loop) awaitDetached() {
	ended := make(chan struct{})
	go func() {
		l.detachedWork.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(workers.EndGrace):
	}
}

// loop serves the inbox and the core's timer until the context ends.
func (l *loop) loop() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if at, ok := l.core.Wake(); ok {
			timer.Reset(max(at-time.Since(l.started), 0))
		} else {
			timer.Stop()
		}
		select {
		case do := <-l.inbox:
			do()
		case <-timer.C:
			l.step(core.Tick{})
		case <-l.ctx.Done():
			return
		}
	}
}

// post has something done on the loop's goroutine, unless the loop has ended.
func (l *loop) post(do func()) {
	select {
	case l.inbox <- do:
	case <-l.done:
	}
}

// event has the core told of an event.
func (l *loop) event(ev core.Event) { l.post(func() { l.step(ev) }) }

func (l *loop) step(ev core.Event) {
	for _, c := range l.core.Step(time.Since(l.started), ev) {
		l.do(c)
	}
}

// stop ends everything that the loop has begun and waits for it.
func (l *loop) stop() {
	close(l.done)
	l.server.Close()
	if err := l.workers.Stop(); err != nil {
		l.cfg.Logger.Warn("cannot remove control groups", "error", err)
	}
	l.gather.Stop()
	l.chores.Close()
	l.awaitDetached()
	l.wait.Wait()
}
