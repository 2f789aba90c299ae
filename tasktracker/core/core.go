// Package core is the task tracker's state machine. It decides which worker runs which
// attempt, what each home fetches and merges, and which reports the leader gets. It does no
// I/O, reads no clock and starts no goroutine: [Core.Step] takes an [Event] and the time and
// returns the [Command]s to carry out, and [Core.Wake] says when to step again if nothing
// happens. The tracker's loop, the simulator and the tests drive the same machine.
//
// It never reads map outputs or plans, and does not choose where tasks run: the job
// tracker does.
//
// # Phases of an attempt
//
//	waiting ──► starting ──► running ──► ready ──► committing ──► final
//	 (slot)      (worker)       │ (asks for    │ (granted)    ▲
//	                            │  the grant)  ▼              │
//	                            └────────► ending ──► reading ┘
//	                                    (worker dies)  (its log)
//
// A map attempt that succeeded has the phase recording before it is final: its report is
// written beside the output, for a later process.
//
// A success is final when the worker reports it, and the worker is used again. After a
// failure or kill the attempt is final only when the worker's process is dead, so nothing
// writes for the attempt after its final report.
//
// # Invariants
//
//	T1  A worker runs one attempt at a time, all of one submission.
//	T2  Attempts with a worker never exceed the slots of their kind.
//	T3  Every launched attempt gets one final state. Every inventory has its final
//	    report until its job is dropped. Attempts of a lost incarnation and of
//	    dropped jobs end unreported.
//	T4  A complete home holds exactly the outputs that the leader chose last, each
//	    once: in a run of its own or in a merged run.
//	T5  A run that an attempt or a merge reads is not removed before that ends.
//	T6  Commands of older epochs are ignored.
//	T7  A dropped job starts nothing; its directories are removed when its last
//	    attempt, fetch and merge has ended.
//	T8  No map, reduce or home starts on a failed disk until a probe succeeds.
//	T9  A map output of an earlier process is offered to the leader, which decides.
//	T10 Nothing starts for a submission outside the staging directory.
//	T11 Each submission with workers gets its RemoveProgram, after its last worker has
//	    exited. So nothing that is made for a worker stays.
//
// # Order of fetches
//
// The leader divides the fetches among jobs ([wire.Shares]). A job may start fetches up to
// its share of Config.Fetches even while earlier fetches of other jobs fill that limit. The
// rest goes to any job, in the order of the shares. Without shares, all jobs are equal. Of the hosts of
// a job, the one with the fewest running fetches comes first, so that slow hosts do not take all fetches.
//
// # Batches
//
// If a job has more than 64 maps, and the partitions of an output are small, one fetch takes many of
// them: those of several outputs of a host, for all homes on a disk. It merges the outputs of each partition in
// memory, so the file and the runs of a batch are few. Outputs of this tracker are copied in the same way, because a
// file would be opened for each of their partitions otherwise. Other outputs are fetched partition by partition, or
// used in place. So with few maps the order of equal keys does not depend on the order of arrival.
//
// # Local files
//
//	<disk>/jobs/<job>/<attempt>/          the attempt's directory
//	<disk>/jobs/<job>/<attempt>/output    its map output
//	<disk>/jobs/<job>/<attempt>/report    a wire.Report of that output, as a frame
//	<disk>/jobs/<job>/<attempt>/work/     its working directory
//	<disk>/jobs/<job>/home-<partition>/   fetched and merged runs
//	<disk>/jobs/<job>/batches/<fetch>     runs of several homes, from one batch
//	<dir>/logs/<job>/<attempt>/           its stdout and stderr
//	<dir>/run/<worker>/                   a worker's directory outside of attempts
//
// Attempts and homes use the disks round robin. A disk is probed after a failure. If the
// probe fails too, the disk is not used for Config.ProbeAgain: its map outputs are lost, and
// its homes gather again on other disks. Without a good disk the tracker has no slots and
// no homes. If a disk was full, attempts begin there after its probe, which follows the removal of
// the files that filled it.
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
	Rack        string // as in wire.Hello
	MapSlots    int
	ReduceSlots int
	Memory      int64    // bytes offered to attempts in slots; 0: slots alone count
	Cores       int      // offered to them; 0: slots alone count
	Dir         string   // for all local files except the data of jobs
	Disks       []string // for the data of jobs; default Dir
	KeepLogs    bool     // keep a dropped job's logs; the caller removes them
	Record      bool     // write a report beside each map output, for later processes
	Restore     bool     // [Restored] follows for each output of an earlier process, then [RestoreEnded]
	Cluster     string   // id of the cluster that Dir belongs to; empty: none yet
	Staging     string   // cleaned URL of its staging directory; empty: none yet
	Embedded    bool     // the leader is in this process: it names no cluster and is trusted
	KeepDisks   bool     // failed disks stay in use: no other machine could run the tasks, and they must fail
	Unhealthy   string   // until the first [HealthChecked]; empty: healthy
	NotIsolated string   // why jobs are not isolated, unless the configuration says so; empty: they are
	Limits      string   // what limits attempts, for users
	Isolation   string   // level of isolation of jobs, for users

	IdleWorkers    int           // most idle workers; default: number of slots, plus one
	StartTimeout   time.Duration // for a worker's hello; default 1 min
	Fetches        int           // concurrent fetches; default 8
	FetchesPerHost int           // concurrent fetches from one host; default 4
	FetchRate      float64       // limit of all fetches together, in bytes a second; 0: none
	FetchTries     int           // consecutive failures of a host after which its outputs are reported lost; default 6
	RetryBase      time.Duration // wait after the first failure, doubled each time; default 250 ms
	RetryMax       time.Duration // longest wait; default 10 s
	MergeFactor    int           // runs that one merge reads; default 128, at least 2
	Merges         int           // concurrent merges; default 2
	ProbeAgain     time.Duration // wait before a bad disk is probed again; default 30 s
	DiskStrikes    int           // consecutive failures that make a disk bad even if probes succeed; default 5
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
	def(&cfg.MergeFactor, 128)
	cfg.MergeFactor = max(cfg.MergeFactor, 2)
	def(&cfg.Merges, 2)
	defTime(&cfg.ProbeAgain, 30*time.Second)
	def(&cfg.DiskStrikes, 5)
	if len(cfg.Disks) == 0 {
		cfg.Disks = []string{cfg.Dir}
	}
	return cfg
}

// maxRuns returns the number of runs that a reduce may read: it merges them in one pass.
func (cfg *Config) maxRuns() int { return 2 * cfg.MergeFactor }

// progressEvery is the shortest time between two progress reports.
const progressEvery = 250 * time.Millisecond

// Core is the state machine. See the package comment.
type Core struct {
	cfg  Config
	now  time.Duration
	out  []Command
	last struct{ worker, fetch, run, ticket, disk int } // last numbers used

	// The leader.
	connected      bool          // to a job tracker
	registered     bool          // a Welcome was received on this stream
	streams        int           // number of streams so far
	requestedAt    time.Duration // time of the last hello or ReadNonce
	nonceRequested bool          // this stream's job tracker requested the nonce
	readingNonce   bool          // NonceRead is expected
	nonce          string
	cluster        string
	unhealthy      string        // the last HealthChecked; empty: this machine is healthy
	stops          bool          // Stop was received
	staging        string        // submissions elsewhere are refused
	provingStaging string        // staging directory of the last request for a nonce
	provedStaging  string        // staging directory that nonce proves
	lastMessageAt  time.Duration // time of the leader's last message
	epoch          uint64
	incarnation    uint64
	lease          time.Duration
	heartbeatAt    time.Duration // time of the last heartbeat
	progressUnsent bool          // an attempt has unreported progress

	// Map outputs of an earlier process, see Config.Restore.
	restoring         bool
	inventoryPending  bool          // the inventory waits for these outputs
	inventoryDeadline time.Duration // latest time of a pending inventory
	restoredLate      bool          // some were restored after the inventory was sent

	disks        []*disk // of Config.Disks
	state        *disk   // of Config.Dir, which may be one of them
	allDisks     []*disk // disks and state
	diskFailures int     // failures of all disks so far
	machine      machine

	jobs     map[wire.JobID]*job
	attempts map[wire.AttemptID]*attempt // of live jobs, also final attempts
	active   []*attempt                  // not final yet, oldest first
	workers  map[int]*worker
	idle     []*worker // longest idle first

	lingering []lingering // by until

	// Fetches and merges.
	hosts        []*host                  // with queued or running fetches, by address
	lastFetched  map[string]time.Duration // time of the last successful fetch, by tracker
	queued       []*job                   // with queues at hosts, by id
	endedQueues  []*queue                 // perhaps empty; see removeUnused
	shares       shares
	fetchMeter   rateMeter
	fetches      map[int]*fetch
	fetching     int // fetches that Config.Fetches limits: from other trackers, and batches
	copying      int // of these, batches of this tracker's own outputs
	retries      retryHeap
	aside        []aside // earliest first
	merges       map[int]*merge
	mergeQueue   []*home // in order of request
	changedHomes []*home // changed in this step
	unreported   []*home // with unreported progress
}

// New returns the core of a tracker that has just started.
func New(cfg Config) *Core {
	c := &Core{
		cfg:       cfg.withDefaults(),
		cluster:   cfg.Cluster,
		unhealthy: cfg.Unhealthy,
		staging:   cfg.Staging,
		restoring: cfg.Restore,
		jobs:      make(map[wire.JobID]*job),
		attempts:  make(map[wire.AttemptID]*attempt),
		workers:   make(map[int]*worker),
		fetches:   make(map[int]*fetch),

		lastFetched: make(map[string]time.Duration),
		merges:      make(map[int]*merge),
	}
	c.makeDisks()
	return c
}

// Step handles one event and returns the commands to carry out, in order. The time must
// never go backwards. The caller owns the result.
func (c *Core) Step(now time.Duration, ev Event) []Command {
	c.now = max(c.now, now)
	c.out = nil
	c.fetchMeter.advance(c.now, c.fetching > c.copying)
	switch ev := ev.(type) {
	case Tick:
	case StreamUp:
		c.streamUp(ev)
	case StreamDown:
		c.connected, c.registered = false, false
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
	case BatchDone:
		c.batchDone(ev)
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
	case HealthChecked:
		c.healthChecked(ev)
	case DiskProbed:
		c.diskProbed(ev)
	case MachineMeasured:
		c.machineMeasured(ev)
	case Stop:
		c.stops = true
		c.sendCapacity()
	}
	c.checkTimeouts()
	c.endLingering()
	c.checkLeader()
	c.sendPendingInventory()
	c.probeAgain()
	c.updateHomes()
	c.startAttempts()
	c.retryFetches()
	c.startFetches()
	c.sendProgress()
	return c.out
}

// Active lists the attempts that have not ended, oldest first.
func (c *Core) Active() (list []wire.AttemptID) {
	for _, a := range c.active {
		list = append(list, a.id)
	}
	return list
}

// Wake returns the latest time for the next [Tick]; false: no Tick is needed.
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
		at(c.retries[0].at)
	}
	if len(c.aside) > 0 {
		at(c.aside[0].until)
	}
	if len(c.lingering) > 0 {
		at(c.lingering[0].until)
	}
	if c.registered {
		at(c.nextHeartbeat())
	}
	if t, limited := c.leaderDeadline(); limited {
		at(t)
	}
	if c.inventoryPending {
		at(c.inventoryDeadline)
	}
	for _, h := range c.hosts {
		if h.pausedUntil > c.now && h.hasWaiting() {
			at(h.pausedUntil)
		}
	}
	for _, d := range c.allDisks {
		if d.bad != "" && !d.probing {
			at(d.nextProbe)
		}
		if c.awaitsSpace(d) {
			at(d.fullUntil)
		}
	}
	return wake, ok
}

func (c *Core) do(cmd Command) { c.out = append(c.out, cmd) }

// send sends a message to the leader. Without a leader, the next inventory has its content.
func (c *Core) send(m wire.Message) {
	if c.registered {
		c.do(Send{m})
	}
}

func next(last *int) int {
	*last++
	return *last
}
