// Package tasktracker runs attempts on one machine. It passes events to tasktracker/core and
// carries out the core's commands. It starts worker processes and talks to them over pipes,
// fetches and merges map outputs for its homes, serves map outputs to other trackers, keeps
// the local directory, and has a stream to the leader.
//
// It decides nothing itself: the core decides what runs and how often it is retried. It runs
// no user code in this process, unless its workers.Starter does.
//
// # Packages below
//
//	core        decides: events in, commands out
//	disks       which disks are good, free space, leftover files of an earlier process
//	program     executables of submissions, copied once
//	workers     messages to and from workers
//	process     workers as processes: groups, limits, leftover processes
//	attemptlog  logs of attempts: written, read, served, expired
//	gather      fetches, look-ups and merges for this tracker's homes
//	token       jobs' tokens, for requests and for a later process
//	credentials workers' tokens for HDFS
//	isolation   what workers see of the machine
//	account     the accounts as which they run
//	healthscript  the operator's script that checks the machine
//
// They do not import this package. This package starts them in order. It has the loop, with
// a call for each command (do), the stream to the job tracker, and the HTTP server. It also
// does work that needs two packages, such as removing unneeded logs and tokens.
//
// # Concurrency
//
// One goroutine, the loop, owns the core. Work that may wait for a disk, a pipe or a network
// runs on other goroutines, which post their results to the loop. The loop never waits for
// them.
//
// # Files
//
// In the tracker's directory, in addition to the files of tasktracker/core:
//
//	lock       locked while a tracker uses the directory, see package datadir
//	quern-tasktracker
//	           the marker of package datadir
//	cluster    id of its cluster; the tracker serves no other cluster
//	staging    URL of the staging directory; submissions elsewhere are refused
//	programs/  executables of submissions with jobs here, see package program
//	workers, cgroup
//	           processes to kill after a crash, see package process
//	tokens/    tokens of the jobs with files here, see package token
//
// Each disk, which may be the directory itself, has a lock, a marker, and the files of
// package disks.
//
// A start first kills the workers of an earlier process and removes its files. Logs stay for
// some time. Finished map outputs with reports stay too: they are verified in the background
// and offered to the leader. With Config.Temporary nothing is kept.
//
// # HTTP
//
//	GET /shuffle/...                            see package shuffle
//	GET /logs/<job>/<attempt>/<stdout|stderr>   an attempt's log, with ranges;
//	                                            ?tail=BYTES: its last bytes
//	GET /healthz                                {"id": its id, "led": it is registered}
//	GET /metrics                                metrics for Prometheus
//	GET /debug/pprof/...                        profiles of this process, for administrators
//
// Requests and each piece of an answer have a timeout, which closes the connection.
package tasktracker

import (
	"cmp"
	"context"
	"crypto/rand"
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
	"sync/atomic"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/tasktracker/credentials"
	"github.com/quernmr/quern/tasktracker/disks"
	"github.com/quernmr/quern/tasktracker/gather"
	"github.com/quernmr/quern/tasktracker/isolation"
	"github.com/quernmr/quern/tasktracker/process"
	"github.com/quernmr/quern/tasktracker/program"
	"github.com/quernmr/quern/tasktracker/sidedirs"
	"github.com/quernmr/quern/tasktracker/token"
	"github.com/quernmr/quern/tasktracker/workers"
	"github.com/quernmr/quern/wire"
)

// Config configures a tracker.
type Config struct {
	ID          string
	Host        string // this machine's name in the file system; empty: its host name
	Rack        string // like "/dc1/r7"; empty: unknown
	Service     Service
	MapSlots    int
	ReduceSlots int
	Memory      int64    // bytes offered to attempts in slots; 0: slots alone count
	Cores       int      // offered to them; 0: slots alone count
	Dir         string   // for local files of this tracker alone
	Disks       []string // one directory per disk, for jobs' data of this tracker alone; empty: Dir
	FS          dfs.FS
	Staging     string  // URL of the cluster's staging directory; empty: the first job tracker names it
	Embedded    bool    // the job tracker is in this process and is trusted, see core.Config
	ShuffleRate float64 // limit of all fetches from other trackers, in bytes a second; 0: none
	Temporary   bool    // nothing in Dir is kept for a later process; logs are removed with their job, unless KeepLogs is set
	KeepLogs    bool    // with Temporary: logs stay until Dir is removed
	KeepFiles   bool    // for debugging: no file of an attempt or job is removed
	AttemptDisk int64   // limit of the bytes in each attempt's working directory; 0: none
	Logs        Logs
	Health      Health
	HDFS        HDFS
	Workers     workers.Starter                     // nil: processes of the job's program
	StopGrace   time.Duration                       // time between SIGTERM and SIGKILL for an ended attempt; 0: [DefaultStopGrace]
	Check       func(f *os.File, name string) error // checks the copy of an executable, before it is run; nil: no check
	Variables   []string                            // of the environment that workers get too, see process.Config
	Isolation   Isolation
	Maximum     process.Maximum   // of each attempt
	Ready       func(addr string) // called when the HTTP server listens; nil: not called
	Logger      *slog.Logger      // nil: silent

	hooks hooks
}

// Health is the operator's script that checks this machine, see package healthscript. While it says
// that the machine is unhealthy, the tracker gets no new work.
type Health struct {
	Script   string        // its path; empty: none
	Interval time.Duration // from the end of a run to the next one
	Timeout  time.Duration // of a run
}

// Logs bounds the logs of attempts.
type Logs struct {
	Age     time.Duration // how long logs of ended jobs are kept; 0: [DefaultLogAge]
	Bytes   int64         // limit of all logs of ended jobs; 0: [DefaultLogBytes]
	Attempt int64         // limit of the logs of one attempt; 0: [DefaultAttemptLogs]
}

// hooks are for tests.
type hooks struct {
	fetchStall    time.Duration                   // see gather.Config; 0: the default
	noLeaderAfter time.Duration                   // see connect; 0: the default
	probeAgain    time.Duration                   // see core.Config; 0: the default
	free          func(dir string) (int64, error) // see disks.Config; nil: ask the system
}

// Default limits of the logs of ended jobs.
const (
	DefaultLogAge   = 7 * 24 * time.Hour
	DefaultLogBytes = 1 << 30
)

// Limits of an attempt's stdout and stderr together. A longer log keeps its first and its
// last part.
const (
	DefaultAttemptLogs = 32 << 20
	MinAttemptLogs     = 64 << 10
)

// Time that an ended attempt has for its deferred functions. It keeps its slot so long.
const (
	DefaultStopGrace = time.Second
	MaxStopGrace     = 10 * time.Minute
)

// MinShuffleRate is the lowest limit for the rate of fetches.
const MinShuffleRate = 64 << 10

// Tracker is a task tracker. Make one with [New].
type Tracker struct {
	cfg     Config
	running atomic.Pointer[loop] // nil before Run has begun to serve
}

// New checks the configuration. It opens no files.
func New(cfg Config) (*Tracker, error) {
	switch {
	case cfg.ID == "":
		return nil, errors.New("task tracker: its id must not be empty")
	case cfg.MapSlots < 0 || cfg.ReduceSlots < 0:
		return nil, fmt.Errorf("task tracker %s: slots must not be negative, got %d map and %d reduce slots", cfg.ID, cfg.MapSlots, cfg.ReduceSlots)
	case cfg.ShuffleRate != 0 && !(cfg.ShuffleRate >= MinShuffleRate):
		return nil, fmt.Errorf("task tracker %s: the shuffle rate must be at least %d bytes a second, got %v", cfg.ID, MinShuffleRate, cfg.ShuffleRate)
	case cfg.Logs.Attempt != 0 && cfg.Logs.Attempt < MinAttemptLogs:
		return nil, fmt.Errorf("task tracker %s: the limit of an attempt's logs must be at least %d bytes, got %d", cfg.ID, MinAttemptLogs, cfg.Logs.Attempt)
	case cfg.AttemptDisk < 0:
		return nil, fmt.Errorf("task tracker %s: the limit of an attempt's files must not be negative, got %d", cfg.ID, cfg.AttemptDisk)
	case cfg.StopGrace < 0 || cfg.StopGrace > MaxStopGrace:
		return nil, fmt.Errorf("task tracker %s: the time between SIGTERM and SIGKILL must be from 0 to %v, got %v", cfg.ID, MaxStopGrace, cfg.StopGrace)
	case cfg.Health.Script != "" && (cfg.Health.Interval <= 0 || cfg.Health.Timeout <= 0):
		return nil, fmt.Errorf("task tracker %s: interval and timeout of the health script must be positive, got %v and %v", cfg.ID, cfg.Health.Interval, cfg.Health.Timeout)
	case cfg.Dir == "" || cfg.FS == nil || cfg.Service.Listen == "":
		return nil, fmt.Errorf("task tracker %s: it needs a directory, a file system and an address", cfg.ID)
	}
	if err := checkMaximum(&cfg.Maximum); err != nil {
		return nil, fmt.Errorf("task tracker %s: %w", cfg.ID, err)
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
	cfg.StopGrace = cmp.Or(cfg.StopGrace, DefaultStopGrace)
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
		cfg.Workers = process.New(process.Config{Dir: dir, Logs: cfg.Logs.Attempt, Groups: !cfg.Temporary, Contain: !cfg.Embedded, Variables: cfg.Variables, AsOwner: cfg.HDFS.AsOwner, Maximum: cfg.Maximum})
	}
	return &Tracker{cfg: cfg}, nil
}

// tokensDir returns the directory of tokens; empty: tokens are not written.
func (cfg *Config) tokensDir() string {
	if cfg.Temporary {
		return ""
	}
	return filepath.Join(cfg.Dir, token.Dir)
}

// Dial opens a stream to a job tracker, preferably the leader. The argument leader is its
// host:port, if the last job tracker named one.
type Dial = func(ctx context.Context, leader string) (*wire.Conn, error)

// ErrDrained is the result of Run when a drain is complete.
var ErrDrained = errors.New("drained")

// Run serves until ctx ends, then ends all workers and returns nil. It dials again when a
// stream ends. It returns ErrDrained after a drain, and another error if the directory or
// the address is unusable, or the HTTP server fails.
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
	outputs, err := removeLeftovers(&t.cfg, dirs)
	if err != nil {
		return fmt.Errorf("remove files of an earlier process: %w", err)
	}
	level, notIsolated, err := t.cfg.isolate()
	if err != nil {
		return err
	}
	coreCfg := core.Config{Restore: len(outputs) > 0, NotIsolated: notIsolated, Isolation: string(level)}
	if coreCfg.Cluster, err = readLine(t.cfg.Dir, clusterName); err != nil {
		return err
	}
	if coreCfg.Staging, err = t.staging(); err != nil {
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
	if coreCfg.Limits, err = t.cfg.openGroups(); err != nil {
		return errors.Join(err, listener.Close())
	}
	l := newLoop(t.cfg, listener, dirs, tokens, coreCfg)
	l.isolation = level
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	defer l.cancel(nil)
	t.running.Store(l)
	l.serve(listener)
	l.wait.Go(l.workers.Run)
	l.wait.Go(l.gather.LookUps)
	l.wait.Go(l.runDiskWork)
	l.wait.Go(func() { l.restore(outputs) })
	l.wait.Go(l.reportDisks)
	if t.cfg.Health.Script != "" {
		l.wait.Go(l.watchHealth)
	}
	l.wait.Go(l.watchMachine)
	for i, disk := range t.cfg.Disks {
		l.detached(func() { l.spaceGuard.Watch(l.ctx, i, disk) })
		l.detached(func() { l.spaceGuard.WatchAttempts(l.ctx, i) })
	}
	if !t.cfg.Temporary {
		l.wait.Go(l.expireLogs)
	}
	l.wait.Go(func() { l.connect(dial) })
	if t.cfg.Ready != nil {
		t.cfg.Ready(listener.Addr().String())
	}
	l.loop()
	if ctx.Err() != nil {
		l.farewell()
	}
	l.stop()
	if err := context.Cause(l.ctx); ctx.Err() == nil {
		return err
	}
	return nil
}

// staging returns the configured staging directory, and stores it for later starts. If none
// is configured, it returns the stored one; empty: none.
func (t *Tracker) staging() (string, error) {
	if t.cfg.Staging == "" {
		return readLine(t.cfg.Dir, stagingName)
	}
	return t.cfg.Staging, writeLine(t.cfg.Dir, stagingName, t.cfg.Staging)
}

// loop is a running tracker.
type loop struct {
	cfg          Config
	core         *core.Core
	link                       // to job trackers
	inbox        chan func()   // functions to run on the loop's goroutine
	done         chan struct{} // closed when the loop has ended
	started      time.Time
	ctx          context.Context
	cancel       context.CancelCauseFunc
	wait         sync.WaitGroup
	detachedWork sync.WaitGroup // see detached

	// Parts that carry out the core's commands.
	disks       *disks.Set
	badDisks    map[string]string // by path: why the core does not use it
	spaceGuard  *disks.SpaceGuard
	programs    *program.Store
	workers     *workers.Set
	gather      *gather.Gather
	tokens      *token.Store
	credentials *credentials.Store
	server      *http.Server
	diskWork    *wire.Queue[func()] // see runDiskWork
	isolation   isolation.Level
	jobDirs     map[string][]string // by staging: made for isolated workers
	sideDirs    sidedirs.Store
	meters      meters
}

func newLoop(cfg Config, listener net.Listener, dirs *disks.Set, tokens *token.Store, coreCfg core.Config) *loop {
	addr := cfg.Service.Advertise
	if addr == "" {
		addr = listener.Addr().String()
	}
	l := &loop{
		cfg: cfg, disks: dirs, badDisks: make(map[string]string), inbox: make(chan func(), 64), done: make(chan struct{}), started: time.Now(),
		link:     link{hangupReasons: make(map[string]bool)},
		diskWork: wire.NewQueue[func()](0), programs: program.New(cfg.Dir, cfg.FS, cfg.Embedded, cfg.Check, process.PermitsExecution),
		tokens: tokens, credentials: credentials.New(cfg.HDFS.Delegate, cfg.Logger), jobDirs: make(map[string][]string),
		meters: newMeters(),
	}
	l.spaceGuard = &disks.SpaceGuard{Disks: dirs, Tracker: cfg.ID, Running: l.running, EndAttempt: l.endAttempt, LocalBytes: cfg.AttemptDisk}
	l.workers = workers.New(workers.Config{Starter: cfg.Workers, OnEvent: l.event, LogDir: cfg.Dir, Grace: cfg.StopGrace, Logger: cfg.Logger})
	l.gather = gather.New(gather.Config{
		OnEvent: l.event, Token: tokens.Get, Stall: cfg.hooks.fetchStall, Rate: cfg.ShuffleRate, Dial: cfg.Service.Dial, Log: cfg.Logger,
	})
	coreCfg.Tracker, coreCfg.Process, coreCfg.Host, coreCfg.Addr = cfg.ID, processNumber(), cfg.Host, addr
	coreCfg.Rack, coreCfg.FetchRate = cfg.Rack, cfg.ShuffleRate
	coreCfg.MapSlots, coreCfg.ReduceSlots = cfg.MapSlots, cfg.ReduceSlots
	coreCfg.Memory, coreCfg.Cores = cfg.Memory, cfg.Cores
	coreCfg.Dir, coreCfg.Disks, coreCfg.Embedded = cfg.Dir, cfg.Disks, cfg.Embedded
	if cfg.Health.Script != "" {
		coreCfg.Unhealthy = "its health script has not ended yet"
	}
	coreCfg.KeepLogs, coreCfg.Record = !cfg.Temporary || cfg.KeepLogs, !cfg.Temporary
	coreCfg.KeepDisks, coreCfg.ProbeAgain = cfg.Temporary, cfg.hooks.probeAgain
	l.core = core.New(coreCfg)
	return l
}

func processNumber() uint64 {
	var b [8]byte
	rand.Read(b[:]) // it never fails
	return binary.NativeEndian.Uint64(b[:]) | 1
}

// detached runs work that may hang for ever, such as a read from a bad disk or a network
// file system. A tracker that stops waits for it only for workers.EndGrace.
func (l *loop) detached(do func()) { l.detachedWork.Go(do) }

// awaitDetached waits for detached work, up to workers.EndGrace.
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

// post runs a function on the loop's goroutine, unless the loop has ended.
func (l *loop) post(do func()) {
	select {
	case l.inbox <- do:
	case <-l.done:
	}
}

// event passes an event to the core.
func (l *loop) event(ev core.Event) { l.post(func() { l.step(ev) }) }

func (l *loop) step(ev core.Event) {
	for _, c := range l.timeStep(ev) {
		l.do(c)
	}
	l.logDisks()
}

// stop ends all work that the loop started, and waits for it.
func (l *loop) stop() {
	close(l.done)
	l.server.Close()
	if err := l.workers.Stop(); err != nil {
		l.cfg.Logger.Warn("cannot remove control groups", "error", err)
	}
	for _, end := range l.credentials.Close() {
		l.detached(end)
	}
	l.gather.Stop()
	l.diskWork.Close()
	l.awaitDetached()
	l.wait.Wait()
}
