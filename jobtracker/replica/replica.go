// Package replica is a [jobtracker.Log] that several job trackers replicate with raft. Entries are
// in synced files. It is the only package that imports raft. It does not decode entries, except in
// [Recover], which uses the core.
//
// # Promises
//
//	P1  The replica acknowledges only synced entries. The first failed write ends it
//	    (core.LogFailed, with the file): after a failed sync, the content of the file is not
//	    known, so it does not retry.
//	P2  [Open] refuses damaged state, with file and offset. It drops only a last write that
//	    a crash has torn, which was never acknowledged.
//	P3  Every proposal is answered: by its entry, after a time by core.Undecided, or by
//	    core.Refused if it is longer than [MaxEntry].
//	P4  Calls do not block: Propose and Take return at once, [Replica.Close] within a bound,
//	    even if raft hangs.
//	P5  Job trackers with the same entries have the same facts: they compare checksums, and a
//	    job tracker that differs from its leader ends.
//	P6  A new job tracker votes only after it has caught up with the leader. Until then it
//	    does not count for the majority.
//	P7  Without proposals, the replica stores no byte ([Replica.Stored]).
//
// # Guards
//
// This package works around bugs and limits of raft 1.8:
//
//   - A future of Apply may never return: each proposal has its own deadline.
//   - After a leadership transfer a leader may refuse all proposals forever: the replica
//     restarts raft if it leads but commits nothing. Only Close transfers leadership.
//   - If a follower installs a snapshot that is older than the end of its log, no entry of the
//     leader fits any more: the replica restarts raft, which reads the end of the log again.
//   - If its disk does not answer, a leader still renews its lease: a write that takes too long
//     ends the replica.
//   - Raft panics if it cannot store a term or read an entry: the goroutine ends instead, and
//     the replica fails with the reason.
//
// # Concurrency
//
//	Propose ── proposals ── propose loop ── raft ── FSM goroutine ─┐
//	                            └ undecided ────────────────────────┼─ events ── Take
//	                      leadership loop, failures ────────────────┘
//
// A supervisor goroutine checks these, takes snapshots and restarts raft. All goroutines may
// call the methods of [Replica].
//
// # Files
//
//	DIR/lock                        held while open
//	DIR/wal-meta.db                 term, vote, list of segments (bbolt)
//	DIR/<base>-<id>.wal             segments: entries and a checksum for each write
//	DIR/snapshots/<term>-<index>-<ms>/{meta.json,state.bin}
//
// An entry in a segment is in raft-wal's form, with a checksum for later reads:
//
//	+-------------------+--------------------+
//	| entry             | crc32c u32, lit.-e.|
//	+-------------------+--------------------+
//
// A snapshot's state.bin:
//
//	+---------+--------------------+-----------------------+
//	| "qrs1"  | index u64, big-e.  | core's snapshot       |
//	+---------+--------------------+-----------------------+
package replica

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	"github.com/hashicorp/raft-wal/types"

	"github.com/quernmr/quern/jobtracker"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/listen"
	"github.com/quernmr/quern/meter"
)

var (
	// ErrHasState is the error of a bootstrap of a replica that has been part of a cluster.
	ErrHasState = errors.New("the directory has state of a cluster")
	// ErrNotLeader is the error of a change of voters at a follower. If a leader was deposed during
	// the change, the change may have been made.
	ErrNotLeader = errors.New("this replica does not lead")
	// ErrNotVoter is the error of the removal of a job tracker that is not a voter.
	ErrNotVoter = errors.New("it is not a voter")
	// ErrManyNonvoters is the error of another voter while too many have not caught up yet.
	ErrManyNonvoters = errors.New("too many job trackers have not caught up with the log yet; remove those that will not")
	// ErrInUse reports that another process uses the directory.
	ErrInUse = errors.New("the directory is in use")
	// ErrNoState is the error of Recover for a directory without state.
	ErrNoState = errors.New("the directory has no state of a cluster")
	// ErrDamaged reports files that have changed since they were written, or are missing.
	ErrDamaged = errors.New("the state is damaged")
	// ErrClosed is the error of calls to a closed or failed Replica.
	ErrClosed = errors.New("the replica is closed")
)

// Config configures a replica. ID, Dir and Listen must be set.
type Config struct {
	ID        string
	Dir       string // created if it is missing
	Listen    string // host:port; port 0: any
	Advertise string // host:port that other job trackers dial; default: the listening address

	// Timeout is how long a follower waits for its leader before it starts an election. A
	// leader's lease is half of it. Default 500 ms.
	Timeout time.Duration

	// Resolve, if not nil, returns the current address of a job tracker at each dial; "":
	// use the address in the configuration.
	Resolve func(id string) (addr string)

	SnapshotEntries  uint64        // take a snapshot after this many entries; default 8192
	SnapshotBytes    int64         // take one after this many bytes; default 16 MiB
	SnapshotInterval time.Duration // take one after this time if there are new entries; default 10 minutes
	TrailingEntries  uint64        // entries to keep in the log after a snapshot has them; default 2048

	// Serve and Dial, if not nil, protect connections between job trackers.
	Serve, Dial *tls.Config

	Logger *slog.Logger // nil: silent

	segmentSize int           // default 8 MiB
	maxEntry    int           // default MaxEntry
	readLimit   int           // maximum bytes of an encoded entry to read; default maxReadable
	vfs         types.VFS     // nil: the machine's file system
	writeLimit  time.Duration // duration of a write after which the replica fails; default 10 s or 20 × Timeout
	stuckLimit  time.Duration // time without progress after which raft is restarted; default 5 s or 10 × Timeout
	stopWait    time.Duration // for raft to stop; default 5 s
	checkEvery  uint64        // entries between comparisons of the facts; default 4096
	metaFault   func() error  // in tests: fails a write of term or vote

	limits listen.Limits // of connections from other job trackers; default perJobTracker of each address

	refuse func() error                                         // in tests: fails a proposal before raft gets it
	dial   func(addr string, d time.Duration) (net.Conn, error) // in tests: instead of net.DialTimeout
}

func (c *Config) complete() error {
	if c.ID == "" || c.Dir == "" || c.Listen == "" {
		return errors.New("replica: ID, Dir and Listen must be set")
	}
	defaults(&c.Timeout, 500*time.Millisecond)
	defaults(&c.SnapshotEntries, 8192)
	defaults(&c.SnapshotBytes, 16<<20)
	defaults(&c.SnapshotInterval, 10*time.Minute)
	defaults(&c.TrailingEntries, 2048)
	defaults(&c.segmentSize, 8<<20)
	defaults(&c.maxEntry, MaxEntry)
	defaults(&c.readLimit, maxReadable)
	defaults(&c.writeLimit, max(10*time.Second, 20*c.Timeout))
	defaults(&c.stuckLimit, max(5*time.Second, 10*c.Timeout))
	defaults(&c.stopWait, 5*time.Second)
	defaults(&c.checkEvery, 4096)
	defaults(&c.limits.PerAddress, perJobTracker)
	if c.dial == nil {
		c.dial = c.dialer()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// perJobTracker limits the connections of one address. Each takes a buffer of 256 KiB. A job tracker
// needs about ten, and some may have the same address.
const perJobTracker = 128

// dialer dials other job trackers, with TLS if configured.
func (c *Config) dialer() func(addr string, d time.Duration) (net.Conn, error) {
	config := c.Dial
	if config == nil {
		return func(addr string, d time.Duration) (net.Conn, error) { return net.DialTimeout("tcp", addr, d) }
	}
	return func(addr string, d time.Duration) (net.Conn, error) { return dialTLS(addr, d, config) }
}

func defaults[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}

// Replica is one job tracker's copy of the log.
type Replica struct {
	cfg           Config
	lock          *os.File
	store         *store
	snaps         *raft.FileSnapshotStore
	firstListener net.Listener // for the first instance; later instances listen again
	listen        string       // listening address
	addr          string       // address that others dial
	fsm           *fsm
	events        *events

	agreement    agreement
	growth       growth
	snapshotting atomic.Bool

	changing      chan struct{} // has a value while the voters are changed
	proposals     *proposals
	commits       *meter.Histogram // see CommitTimes
	confirmations confirmations
	wake          chan struct{} // wakes the supervisor
	restart       atomic.Pointer[string]
	done          chan struct{} // closed at the last step of Close
	loops         sync.WaitGroup
	close         sync.Once
	closeErr      error
	failed        atomic.Pointer[error]

	mu      sync.Mutex
	inst    *instance // nil: during a restart, or closed
	closing bool
	hangs   bool // raft did not stop: it may still use the files
}

var _ jobtracker.Log = (*Replica)(nil)

// Open reads the directory, listens, and takes part in the cluster. A replica without state waits
// until Bootstrap is called or a leader adds it.
func Open(cfg Config) (*Replica, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	r := &Replica{
		cfg:       cfg,
		events:    newEvents(),
		changing:  make(chan struct{}, 1),
		proposals: newProposals(cfg.stuckLimit),
		commits:   meter.NewTimes(250 * time.Microsecond),
		wake:      make(chan struct{}, 1),
		done:      make(chan struct{}),
	}
	if err := r.open(); err != nil {
		r.release()
		return nil, fmt.Errorf("job tracker %s's log: %w", cfg.ID, err)
	}
	r.loops.Go(r.proposeLoop)
	r.loops.Go(r.supervise)
	return r, nil
}

func (r *Replica) open() error {
	var err error
	if err = os.MkdirAll(r.cfg.Dir, 0o700); err != nil {
		return err
	}
	if r.lock, err = lockDirectory(r.cfg.Dir); err != nil {
		return err
	}
	if r.store, r.snaps, err = openState(&r.cfg); err != nil {
		return err
	}
	r.store.onFailure, r.store.onEmptied = r.fail, r.logEmptied
	if err := r.chooseAddresses(); err != nil {
		return err
	}
	r.fsm = newFSM(r)
	if r.inst, err = r.start(); err != nil {
		return err
	}
	r.store.opened.Store(true)
	r.growth.snapshot.Store(r.fsm.applied.Load())
	r.growth.bytes.Store(-r.store.found.bytes)
	r.growth.attempted.Store(time.Now().UnixNano())
	return nil
}

// chooseAddresses chooses the port once, so that restarts of raft listen on the same port.
func (r *Replica) chooseAddresses() error {
	var err error
	if r.firstListener, err = r.cfg.listen(r.cfg.Listen); err != nil {
		return err
	}
	r.listen = r.firstListener.Addr().String()
	r.addr = r.cfg.Advertise
	if r.addr == "" {
		r.addr = r.listen
	}
	host, port, err := net.SplitHostPort(r.addr)
	if err != nil {
		return fmt.Errorf("address for other job trackers: %w", err)
	}
	if port == "0" {
		_, port, _ = net.SplitHostPort(r.listen)
		r.addr = net.JoinHostPort(host, port)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return fmt.Errorf("address for other job trackers: %s cannot be dialed; advertise another one", r.addr)
	}
	return nil
}

// release closes the files and the listener.
func (r *Replica) release() {
	if r.firstListener != nil {
		r.firstListener.Close()
	}
	if r.store != nil {
		r.store.close()
	}
	if r.lock != nil {
		r.lock.Close()
	}
}

// fail stops raft, and makes Take return the reason.
func (r *Replica) fail(err error) {
	if !r.failed.CompareAndSwap(nil, &err) {
		return
	}
	r.cfg.Logger.Error("the log has failed", "error", err)
	r.events.put(jobtracker.LogEvent{Event: core.LogFailed{Err: err}})
	go func() {
		if inst := r.instance(); inst != nil {
			inst.stop()
		}
	}()
}

func (r *Replica) hasFailed() bool { return r.failed.Load() != nil }

// logEmptied is called when raft has removed the whole log to install a snapshot. Raft still
// believes that its log ends with last. If the snapshot is older than last, no entry of the leader
// fits, and the leader sends the snapshot again and again.
func (r *Replica) logEmptied(last uint64) {
	if last > r.fsm.applied.Load() {
		why := "it has installed a snapshot from before the end of its log"
		r.restart.Store(&why)
		r.wakeSupervisor()
	}
}

// instance returns the running raft, or nil.
func (r *Replica) instance() *instance {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.inst
}

// Ready implements [jobtracker.Log].
func (r *Replica) Ready() <-chan struct{} { return r.events.ready }

// Take implements [jobtracker.Log].
func (r *Replica) Take() []jobtracker.LogEvent { return r.events.take() }

// Addr returns the address that other job trackers dial.
func (r *Replica) Addr() string { return r.addr }

// Stored counts the entries written since Open, and the bytes of their Data and Extensions.
func (r *Replica) Stored() (entries, bytes int64) {
	return r.store.entries.Load(), r.store.bytes.Load()
}

// CommitTimes has the times from a proposal to its commit, while this replica led.
func (r *Replica) CommitTimes() *meter.Histogram { return r.commits }

// HasState reports whether this replica has been part of a cluster, or has received messages of
// one. It is true if the state cannot be read, for example after Close.
func (r *Replica) HasState() bool {
	r.mu.Lock()
	if r.closing {
		r.mu.Unlock()
		return true
	}
	r.loops.Add(1) // the files stay open until it is done
	r.mu.Unlock()
	defer r.loops.Done()
	has, err := raft.HasExistingState(r.store, r.store, r.snaps)
	return has || err != nil
}

// Leader returns the leader, if this replica knows it.
func (r *Replica) Leader() (id string, ok bool) {
	inst := r.instance()
	if inst == nil {
		return "", false
	}
	_, leader := inst.raft.LeaderWithID()
	return string(leader), leader != ""
}

// jitter adds a random duration, up to a tenth of d, so that replicas do not act at the same time.
func jitter(d time.Duration) time.Duration { return d + rand.N(d/10+1) }
