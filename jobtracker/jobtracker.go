// Package jobtracker runs a job tracker: it owns a [core.Core], feeds it events from the log, the
// trackers' streams, clients and effects, and executes its commands. The core makes all decisions.
// The log is a [Log], and a tracker's stream is a [wire.Conn]: this package imports neither raft
// nor gossip, and does not listen.
//
// # Concurrency
//
// The goroutine of [Server.Run] owns the core and everything in Server that is not a channel. Other
// goroutines send it functions through the inbox. It never waits for a goroutine that waits for it:
//
//	stream readers ─┐                      ┌─ stream queues ── writers
//	clients         ├─ inbox ── Run/core ──┼─ Log
//	effects, policy ┘     Log ─┘           └─ effects, policy (a goroutine each,
//	                                          maxFileEffects on files at once)
//
// Work that takes long is not done there. Snapshots of the facts and histories are made from views
// by other goroutines. Lists are pages. Which job tracker leads is an atomic. Clients that wait for
// jobs share one status of each job, which is made after a change of that job (watchers.go).
//
// A stream's queue has a limit. If it is full, the server closes the stream, and the tracker
// registers again.
package jobtracker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/menu"
	"github.com/quernmr/quern/wire"
)

// ErrStopped is the error of calls to a stopped Server.
var ErrStopped = errors.New("the job tracker has stopped")

// Config configures a Server. Log and FS must be set.
type Config struct {
	ID      string // of this job tracker; default "jobtracker"
	Addr    string // host:port of its API, which followers name while it leads
	Staging string // URL of the cluster's staging directory; empty: any
	Cluster string // id of the cluster, if this job tracker bootstraps it
	Nonce   string // secret in the staging directory, which proves that trackers share it; set with Cluster

	Log Log
	FS  dfs.FS // for splits, histories and the staging directory

	// AsOwner: use the files of submissions as the owner of their jobs, if FS knows users there. Needs
	// ShareStaging before.
	AsOwner bool

	Scheduling wire.Scheduling // until a client changes it; default fifo, sum-response, none
	Pools      string          // URL of the allocation file; empty: the pools stay as the log has them
	PoolsEvery time.Duration   // how often the file is read; default 3 s
	// PoolsIgnore lists elements of the file that may have no effect, see pool.Parse.
	PoolsIgnore []string
	Groups      bool        // requests have the groups of users: else groups in the file have no effect
	Preemption  bool        // pools that starve take slots from others
	Limits      core.Limits // of jobs, and of what a job may ask
	ViewACL     string      // of jobs without one; empty: no user

	Lease          time.Duration // silence after which a tracker is lost; default 5 s
	Period         time.Duration // between plans; default 500 ms
	PolicyDeadline time.Duration // for one Plan, and for all predictions of WhatIf; default 2 s
	Logger         *slog.Logger  // nil: silent

	// History: write histories of ended jobs below Staging, and remove old histories,
	// programs and directories of submissions that never arrived.
	History   bool
	Keep      time.Duration // how long to keep histories; default 7 days
	KeepBytes int64         // keep at most this much of histories, the newest; default 1 GiB

	// Policies finds a policy by its name; default menu.Policy.
	Policies func(name string) (scheduler.Policy, error)

	// ReadSplits reads the splits that a setup attempt staged, and their hash; default runtime.ReadSplits.
	ReadSplits func(fs dfs.FS, staging string, job wire.JobID) ([]core.Split, uint64, error)
}

// Server is a job tracker.
type Server struct {
	cfg   Config
	core  *core.Core
	start time.Time
	inbox chan func()
	done  chan struct{} // closed when inbox is no longer read

	inventories  chan struct{} // a value for each page that waits, see pass
	historyReads chan struct{} // a value for each request that reads histories, see readInTurn

	streams   map[core.Stream]*stream
	lastID    core.Stream
	backlog   []core.Event // events that commands have caused
	replies   map[core.Token]func(core.Reply)
	lastToken core.Token
	watchers  *watchers
	feed      feed
	queries   []*query
	halted    error
	ticking   bool // a Tick is in the inbox

	refused map[string]time.Duration // by reason: when a refusal was last logged
	meters  meters

	leadership atomic.Pointer[core.Leadership]
	elected    chan struct{} // has a value after an election
	policies   sync.Map      // see policySlot
	files      gate          // for effects on files
	encodings  gate          // for snapshots of the facts, one after the other
	effects    sync.WaitGroup
	writers    sync.WaitGroup
}

// New makes a Server. It does nothing before Run.
func New(cfg Config) *Server {
	if cfg.ID == "" {
		cfg.ID = "jobtracker"
	}
	if cfg.PolicyDeadline <= 0 {
		cfg.PolicyDeadline = 2 * time.Second
	}
	if cfg.PoolsEvery <= 0 {
		cfg.PoolsEvery = 3 * time.Second
	}
	if cfg.Keep <= 0 {
		cfg.Keep = 7 * 24 * time.Hour
	}
	if cfg.KeepBytes <= 0 {
		cfg.KeepBytes = 1 << 30
	}
	tidy := time.Duration(0)
	if cfg.History {
		tidy = time.Hour
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Policies == nil {
		cfg.Policies = menu.Policy
	}
	if cfg.ReadSplits == nil {
		cfg.ReadSplits = readSplits
	}
	s := &Server{
		cfg: cfg,
		core: core.New(core.Config{
			ID: cfg.ID, Addr: cfg.Addr, Staging: cfg.Staging, Cluster: cfg.Cluster, Nonce: cfg.Nonce,
			Lease: cfg.Lease, PlanPeriod: cfg.Period, Scheduling: cfg.Scheduling, Preemption: cfg.Preemption, History: cfg.History, TidyPeriod: tidy,
			Limits: cfg.Limits, ViewACL: cfg.ViewACL,
		}),
		start:     time.Now(),
		files:     gate{limit: maxFileEffects},
		encodings: gate{limit: 1},
		inbox:     make(chan func(), 64),
		done:      make(chan struct{}),

		inventories:  make(chan struct{}, maxInventories),
		historyReads: make(chan struct{}, maxHistoryReads),
		streams:      make(map[core.Stream]*stream),
		refused:      make(map[string]time.Duration),
		replies:      make(map[core.Token]func(core.Reply)),
		elected:      make(chan struct{}, 1),
		meters:       newMeters(),
	}
	s.leadership.Store(new(core.Leadership))
	s.watchers = newWatchers(s.core)
	return s
}

// Run serves until ctx is done or the job tracker must stop. Then it sends queued messages to the
// task trackers, closes their streams and waits up to stopWait for running effects. It returns nil
// if ctx is done. Call it once.
func (s *Server) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	if s.cfg.Pools != "" {
		s.effects.Go(s.watchPools)
	}
	s.takeLog()
	for s.halted == nil && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case do := <-s.inbox:
			do()
		case <-s.cfg.Log.Ready():
			s.takeLog()
		case <-timer.C:
			s.tick()
		}
		s.watchers.publishDue(s.now())
		s.answerQueries()
		timer.Reset(s.untilWake())
	}
	s.stop()
	return s.halted
}

// tick sends the core a Tick, after the messages that wait in the inbox: these may renew leases
// that would expire. At most one Tick waits: the timer also wakes Run for watches, at once while
// more of them are due than a pass serves.
func (s *Server) tick() {
	if s.ticking {
		return
	}
	if len(s.inbox) == 0 {
		s.step(core.Tick{})
		return
	}
	s.ticking = true
	at := s.now()
	go s.post(func() {
		s.ticking = false
		s.step(core.Tick{ReadUntil: at})
	})
}

// untilWake returns how long Run may wait for the next event.
func (s *Server) untilWake() time.Duration {
	wait := time.Hour
	if at, ok := s.core.Wake(); ok && !s.ticking {
		wait = at - s.now()
	}
	if at, ok := s.watchers.next(); ok {
		wait = min(wait, at-s.now())
	}
	return max(wait, 0)
}

func (s *Server) now() time.Duration { return time.Since(s.start) }

// post makes the goroutine of Run call do. It returns false if Run has ended.
func (s *Server) post(do func()) bool {
	select {
	case <-s.done:
		return false
	default:
	}
	select {
	case s.inbox <- do:
		return true
	case <-s.done:
		return false
	}
}

// step feeds an event to the core, and then the events that its commands cause.
func (s *Server) step(ev core.Event) {
	s.backlog = append(s.backlog, ev)
	for len(s.backlog) > 0 && s.halted == nil {
		ev := s.backlog[0]
		s.backlog = s.backlog[1:]
		commands := s.timeStep(ev)
		s.noteLeadership()
		s.watchers.noteChanges(s.core.Changed(), s.now())
		s.feed.note(s.core.Changed())
		for _, c := range commands {
			s.execute(c)
		}
	}
}

// Leadership says which job tracker leads, as far as this one knows. It never waits for the goroutine
// of Run.
func (s *Server) Leadership() core.Leadership { return *s.leadership.Load() }

// leads reports whether this job tracker leads in an epoch.
func (s *Server) leads(epoch uint64) bool {
	l := s.leadership.Load()
	return l.Leads && l.Epoch == epoch
}

// leadingEpoch returns the epoch in which this job tracker leads; 0: it does not.
func (s *Server) leadingEpoch() uint64 {
	if l := s.leadership.Load(); l.Leads {
		return l.Epoch
	}
	return 0
}

// noteLeadership publishes a change of the leader, and tells the watches.
func (s *Server) noteLeadership() {
	was, l := s.leadership.Load(), s.core.Leadership()
	if l == *was {
		return
	}
	s.leadership.Store(&l)
	s.watchers.leadershipChanged(s.now())
	if l.Leads {
		select {
		case s.elected <- struct{}{}:
		default:
		}
		s.cfg.Logger.Info("became leader", "epoch", l.Epoch)
	} else if was.Leads {
		s.cfg.Logger.Info("no longer leader", "epoch", was.Epoch)
	}
}

func (s *Server) execute(c core.Command) {
	switch c := c.(type) {
	case core.Propose:
		s.cfg.Logger.Debug("propose", "fact", c.Key)
		s.cfg.Log.Propose(c.Key, c.Data)
	case core.Send:
		s.send(c)
	case core.CloseStream:
		s.closeStream(c.Stream)
	case core.Reply:
		if answer := s.replies[c.Token]; answer != nil {
			delete(s.replies, c.Token)
			answer(c)
		}
	case core.LogLine:
		level := slog.LevelInfo
		if c.Warn {
			level = slog.LevelWarn
		}
		s.cfg.Logger.Log(context.Background(), level, c.Text, c.Args...)
	case core.Halt:
		s.cfg.Logger.Error("the job tracker must stop", "error", c.Err)
		s.halted = c.Err
	default:
		s.startEffect(c)
	}
}

// stopWait limits how long Run waits at its end for writers and effects.
const stopWait = 3 * time.Second

// stop ends streams, effects and the log.
func (s *Server) stop() {
	close(s.done)
	for id := range s.streams {
		s.closeStream(id)
	}
	idle := make(chan struct{})
	go func() {
		s.writers.Wait()
		s.effects.Wait()
		close(idle)
	}()
	select {
	case <-idle:
	case <-time.After(stopWait):
		s.cfg.Logger.Warn("stopped before all writers and effects have ended")
	}
	if err := s.closeLog(); err != nil {
		s.cfg.Logger.Warn("cannot close the log", "error", err)
	}
}

// closeLog closes the log. Until it is closed, it answers requests for a last snapshot.
func (s *Server) closeLog() error {
	closed := make(chan error, 1)
	go func() { closed <- s.cfg.Log.Close() }()
	step := func(ev core.Event) {
		for _, c := range s.core.Step(s.now(), ev) { // of the commands only Halt counts
			if halt, ok := c.(core.Halt); ok {
				s.halted = halt.Err
			}
		}
	}
	for {
		select {
		case <-s.cfg.Log.Ready():
			for _, ev := range s.cfg.Log.Take() {
				if ev.Snapshot != nil {
					s.snapshot(ev, step)
					continue
				}
				step(ev.Event)
			}
		case err := <-closed:
			return err
		}
	}
}
