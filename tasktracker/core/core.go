// Package core is the task tracker's half of the control plane as a state
// machine: it decides which worker runs what, what each home fetches and merges,
// and what the leader is told. It does no I/O, reads no clock and starts no
// goroutine: [Core.Step] takes an [Event] and the time and returns the [Command]s
// to carry out, and [Core.Wake] says when to step again if nothing happens. The
// tracker's loop, the simulator and the tests drive this same machine.
//
// It never looks into map outputs, never reads a plan, and does not choose where
// anything runs: that is the job tracker's.
//
// # An attempt's life
//
//	waiting ──► starting ──► running ──► ready ──► committing ──► final
//	 (slot)      (worker)       │ (asks for    │ (granted)    ▲
//	                            │  the grant)  ▼              │
//	                            └────────► ending ──► reading ┘
//	                                    (worker dies)  (its log)
//
// A map output's attempt that is done is recording before it is final: its report
// is written beside the output, for a later process to find.
//
// A success is final when the worker says so, and the worker is used again. Any
// other end is final only when the worker's process is gone, so that nothing is
// written on the attempt's behalf after its final report.
//
// # Invariants
//
//	T1  A worker runs one attempt at a time, all of one submission.
//	T2  Attempts with a worker never exceed the slots of their kind.
//	T3  Every launched attempt gets one final state, whose report is kept and sent
//	    again with every inventory until its job is dropped. Exceptions are the
//	    attempts of a lost incarnation and of dropped jobs, which end unreported.
//	T4  A complete home holds exactly the outputs that the leader chose last: each
//	    map's once, in one run or in a merge.
//	T5  A run that an attempt or a merge reads is not removed before that ends.
//	T6  Commands of an epoch older than one seen are ignored.
//	T7  A dropped job starts nothing; its directories go when all it had is over.
//	T8  Nothing new is put on a disk that failed, until it is found good again.
//	T9  A map output of an earlier process counts for no more than an offer.
//	T10 Nothing starts for a submission outside the staging directory.
//
// # Who fetches first
//
// Homes fetch as the leader has shared that among jobs ([wire.Shares]): a job begins
// fetches up to its share of Config.Fetches also while those of others, begun before,
// take all of these. What is over goes to any job, in the order of precedence. Without
// shares, all are alike.
//
// # Local files
//
//	<disk>/jobs/<job>/<attempt>/          the attempt's own; output is its map output
//	<disk>/jobs/<job>/<attempt>/report    of such an output: a frame of wire.Report
//	<disk>/jobs/<job>/<attempt>/work/     its working directory
//	<disk>/jobs/<job>/home-<partition>/   fetched and merged runs
//	<dir>/logs/<job>/<attempt>/           its stdout and stderr
//	<dir>/run/<worker>/                   a worker's, before and between attempts
//
// The disks are used in turn. One on which something fails is probed, and left
// alone for a while when the probe fails too: its map outputs are lost, its homes
// gather anew elsewhere. Without a good disk the tracker has no slots and no homes.
//
// One goroutine owns a Core.
package core

import (
	"time"

	"github.com/quernmr/quern/wire"
)

// Config describes the tracker. Zero limits take the defaults.
type Config struct {
	Tracker     string // id
	Process     uint64 // random, new at each process start
	Host, Addr  string // as in wire.Hello
	Rack        string // likewise
	MapSlots    int
	ReduceSlots int
	Dir         string   // of all local files but the data of jobs
	Disks       []string // of the data of jobs; default Dir
	KeepLogs    bool     // when a job is dropped; somebody else removes them
	Record      bool     // map outputs outlive this process: a report is kept beside each
	Restore     bool     // [Restored] will come for those of an earlier one, then [RestoreEnded]
	Cluster     string   // id of the cluster that Dir belongs to; empty: none yet
	Staging     string   // cleaned URL of its staging directory; empty: none yet
	Embedded    bool     // the leader is in this process: it names no cluster, and what it names is believed

	IdleWorkers    int           // kept warm; default all slots and one
	StartTimeout   time.Duration // for a worker's hello; default 1 min
	Fetches        int           // at once; default 8
	FetchesPerHost int           // at once; default 4
	FetchRate      float64       // bytes a second that all fetches together are held to; 0: any
	FetchTries     int           // failures of a host in a row before its outputs are said to be lost; default 6
	RetryBase      time.Duration // wait after the first failure, doubled each time; default 250 ms
	RetryMax       time.Duration // longest wait; default 10 s
	MergeFactor    int           // runs that one merge takes; default 64, at least 2
	Merges         int           // at once; default 2
	ProbeAgain     time.Duration // wait before a bad disk is probed again; default 30 s
	DiskStrikes    int           // local failures in a row that make a disk bad, however it looks; default 5
}

func (cfg Config) withDefaults() Config {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	defTime := func(v *time.Duration, d time.Duration) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&cfg.IdleWorkers, cfg.MapSlots+cfg.ReduceSlots+1)
	defTime(&cfg.StartTimeout, time.Minute)
	def(&cfg.Fetches, 8)
	def(&cfg.FetchesPerHost, 4)
	def(&cfg.FetchTries, 6)
	defTime(&cfg.RetryBase, 250*time.Millisecond)
	defTime(&cfg.RetryMax, 10*time.Second)
	def(&cfg.MergeFactor, 64)
	cfg.MergeFactor = max(cfg.MergeFactor, 2)
	def(&cfg.Merges, 2)
	defTime(&cfg.ProbeAgain, 30*time.Second)
	def(&cfg.DiskStrikes, 5)
	if len(cfg.Disks) == 0 {
		cfg.Disks = []string{cfg.Dir}
	}
	return cfg
}

// maxRuns is how many runs a reduce is given at most, which is what it merges in
// one pass.
func (cfg *Config) maxRuns() int { return 2 * cfg.MergeFactor }

// progressEvery is the least time between two tellings of progress.
const progressEvery = 250 * time.Millisecond

// Core is the state machine. See the package comment.
type Core struct {
	cfg  Config
	now  time.Duration
	out  []Command
	last struct{ worker, fetch, run, ticket, disk int } // numbers given

	// The leader.
	up          bool          // a stream is open
	registered  bool          // and its Welcome has come
	streams     int           // opened
	asked       time.Duration // when the last hello was said, or its nonce asked for
	asks        bool          // this stream's job tracker has asked for the nonce
	reading     bool          // the nonce is being read
	nonce       string
	cluster     string
	staging     string        // of which alone anything is read
	proving     string        // the staging directory whose nonce was asked for last
	proved      string        // that of which nonce is
	heard       time.Duration // when anything came from the leader
	epoch       uint64
	incarnation uint64
	lease       time.Duration
	beat        time.Duration // when progress was last told
	progress    bool          // there is some that was not told

	// What an earlier process has left, see Config.Restore.
	restoring bool
	owing     bool          // the inventory waits for it
	owed      time.Duration // but not longer than until then
	late      bool          // some came after the inventory

	disks     []*disk // of Config.Disks
	state     *disk   // of Config.Dir, which may be one of them
	watched   []*disk // all of these
	disksLeft int     // how often one was left alone

	jobs     map[wire.JobID]*job
	attempts map[wire.AttemptID]*attempt // of live jobs, final ones too
	active   []*attempt                  // not final yet, oldest first
	workers  map[int]*worker
	idle     []*worker // longest idle first

	lingering []lingering // the first to be left first

	// The homes' work.
	hosts    []*host  // with something queued or fetched, by address
	queued   []*job   // with queues there, by id
	ended    []*queue // that may be of no use any more
	shares   shares
	pace     pace
	fetches  map[int]*fetch
	fetching int // fetches that take part in the bound
	retries  retryHeap
	merges   map[int]*merge
	mergers  []*home // in line for a merge
	touched  []*home // changed in this step
	untold   []*home // whose progress was not told
}

// New makes the core of a tracker that has just started and has nothing.
func New(cfg Config) *Core {
	c := &Core{
		cfg:       cfg.withDefaults(),
		cluster:   cfg.Cluster,
		staging:   cfg.Staging,
		restoring: cfg.Restore,
		jobs:      make(map[wire.JobID]*job),
		attempts:  make(map[wire.AttemptID]*attempt),
		workers:   make(map[int]*worker),
		fetches:   make(map[int]*fetch),
		merges:    make(map[int]*merge),
	}
	c.makeDisks()
	return c
}

// Step takes one event at a time that never goes backwards and returns what to
// do, in order. The result is the caller's.
func (c *Core) Step(now time.Duration, ev Event) []Command {
	c.now = max(c.now, now)
	c.out = nil
	c.pace.pass(c.now, c.fetching > 0)
	switch ev := ev.(type) {
	case Tick:
	case StreamUp:
		c.streamUp()
	case StreamDown:
		c.up, c.registered = false, false
	case FromLeader:
		c.fromLeader(ev.Message)
	case NonceRead:
		c.nonceRead(ev)
	case FromWorker:
		c.fromWorker(ev)
	case WorkerExited:
		c.workerExited(ev)
	case LogRead:
		c.logRead(ev)
	case FetchDone:
		c.fetchDone(ev)
	case MergeDone:
		c.mergeDone(ev)
	case Exceeded:
		c.exceeded(ev)
	case Recorded:
		c.recorded(ev)
	case Restored:
		c.restored(ev)
	case RestoreEnded:
		c.restoreEnded()
	case DiskProbed:
		c.diskProbed(ev)
	}
	c.checkTimeouts()
	c.endLingering()
	c.checkLeader()
	c.payInventory()
	c.probeAgain()
	c.settleHomes()
	c.startAttempts()
	c.retryFetches()
	c.startFetches()
	c.tellProgress()
	return c.out
}

// Wake is when to step next with a [Tick] at the latest; false: no need.
func (c *Core) Wake() (time.Duration, bool) {
	wake, ok := time.Duration(0), false
	at := func(t time.Duration) {
		if !ok || t < wake {
			wake, ok = t, true
		}
	}
	for _, a := range c.active {
		if t, limited := a.deadline(&c.cfg); limited {
			at(t)
		}
	}
	if len(c.retries) > 0 {
		at(c.retries[0].due)
	}
	if len(c.lingering) > 0 {
		at(c.lingering[0].until)
	}
	if c.registered {
		at(c.nextBeat())
	}
	if t, limited := c.leaderDue(); limited {
		at(t)
	}
	if c.owing {
		at(c.owed)
	}
	for _, h := range c.hosts {
		if h.until > c.now && h.waits() {
			at(h.until)
		}
	}
	for _, d := range c.watched {
		if d.bad != "" && !d.probing {
			at(d.again)
		}
	}
	return wake, ok
}

func (c *Core) do(cmd Command) { c.out = append(c.out, cmd) }

// tell sends to the leader if there is one. What is not told now is part of the
// inventory that follows the next Welcome.
func (c *Core) tell(m wire.Message) {
	if c.registered {
		c.do(Send{m})
	}
}

func next(last *int) int {
	*last++
	return *last
}
