// Package replica is a [jobtracker.Log] that several job trackers share: raft,
// with its entries in files that are synced before they count. It is the only
// package that imports raft. What the entries mean it does not know, but for
// [Recover], which has the core read them.
//
// # Promises
//
//	P1  Nothing is acknowledged that is not synced. The first write that fails ends
//	    the replica for good (core.LogFailed, naming the file): it does not try again,
//	    since what a failed sync has left behind is not known.
//	P2  State that was damaged on disk is refused by [Open], naming file and offset. Only
//	    a last write that a crash has torn, and that was therefore never acknowledged,
//	    is dropped.
//	P3  Every proposal is answered: by its entry, after a while by core.Undecided, or, when
//	    it is longer than [MaxEntry], by core.Refused.
//	P4  Nothing here blocks the caller: Propose and Take return at once, [Replica.Close]
//	    within a bound even when raft hangs.
//	P5  Job trackers that have the same entries have the same facts: they compare
//	    checksums now and then, and one that differs from its leader ends.
//	P6  While nothing is proposed no byte is stored ([Replica.Stored]).
//
// # Guards
//
// Raft 1.8 has open bugs and hard edges that this package keeps away from its users:
//
//   - A future of Apply may never return: each proposal has a deadline of its own.
//   - A leader may refuse everything for ever, for a leadership transfer that has
//     ended: a leader that gets nothing done is restarted within the process. A
//     transfer is only tried by Close.
//   - A follower whose log went on past a snapshot that it then installs never again
//     fits to its leader: it is restarted too, and reads the end of its log anew.
//   - A disk that does not answer leaves a leader that still renews its lease: a write
//     that takes too long ends the replica.
//   - What raft answers with a panic (a term that cannot be stored, an entry that
//     cannot be read) ends the goroutine, and the replica with a reason.
//
// # Concurrency
//
//	Propose ── proposals ── propose loop ── raft ── FSM goroutine ─┐
//	                            └ undecided ────────────────────────┼─ events ── Take
//	                      leadership loop, failures ────────────────┘
//
// A supervisor goroutine watches the above, takes snapshots and restarts raft. All
// methods of [Replica] may be called from any goroutine.
//
// # Files
//
//	DIR/lock                        held while open
//	DIR/wal-meta.db                 term, vote, list of segments (bbolt)
//	DIR/<base>-<id>.wal             segments: entries and a checksum for each write
//	DIR/snapshots/<term>-<index>-<ms>/{meta.json,state.bin}
//
// An entry in a segment is raft-wal's own form of it, followed by a checksum, so that
// it is also known to be good when it is read later:
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
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	"github.com/hashicorp/raft-wal/types"

	"github.com/quernmr/quern/jobtracker"
	"github.com/quernmr/quern/jobtracker/core"
)

var (
	// ErrHasState refuses to bootstrap what has been part of a cluster.
	ErrHasState = errors.New("there is state of a cluster already")
	// ErrNotLeader refuses a change of voters anywhere but at the leader. One that has
	// lost the lead meanwhile does not know whether the change was made.
	ErrNotLeader = errors.New("this replica does not lead")
	// ErrNotVoter refuses to take a vote from one that has none.
	ErrNotVoter = errors.New("it is not a voter")
	// ErrInUse refuses a directory that another process works in.
	ErrInUse = errors.New("the directory is in use")
	// ErrNoState refuses to recover where there is nothing.
	ErrNoState = errors.New("there is no state of a cluster")
	// ErrDamaged refuses state that is not what was written.
	ErrDamaged = errors.New("the state is damaged")
	// ErrClosed answers calls to a Replica that was closed or has failed.
	ErrClosed = errors.New("the replica is closed")
)

// Config says how a replica works. ID, Dir and Listen must be set.
type Config struct {
	ID        string
	Dir       string // made if it is missing
	Listen    string // host:port; port 0 takes any
	Advertise string // what others dial, names too; default: what Listen became

	// Timeout is how long a follower waits for its leader before it stands for
	// election; a leader's lease is half of it. Default 500 ms.
	Timeout time.Duration

	// Resolve, when not nil, says where a job tracker is now. It is asked at each
	// dial; "" stands for the address in the configuration.
	Resolve func(id string) (addr string)

	SnapshotEntries  uint64        // take a snapshot after so many entries; default 8192
	SnapshotBytes    int64         // or so many bytes; default 16 MiB
	SnapshotInterval time.Duration // or, if there is an entry, after so long; default 10 minutes
	TrailingEntries  uint64        // kept in the log behind a snapshot; default 2048

	// Serve and Dial, when not nil, protect what passes between job trackers.
	Serve, Dial *tls.Config

	Logger *slog.Logger // nil: silent

	segmentSize int           // default 8 MiB
	maxEntry    int           // default MaxEntry
	readable    int           // bytes of an encoded entry; default maxReadable
	vfs         types.VFS     // nil: the machine's
	stall       time.Duration // of a write that ends the replica; default 10 s or 20 × Timeout
	stuck       time.Duration // without progress after which raft is restarted; default 5 s or 10 × Timeout
	stopWait    time.Duration // for raft to stop; default 5 s
	checkEvery  uint64        // entries between comparisons of the facts; default 4096
	metaFault   func() error  // in tests: fails a write of term or vote

	refuse func() error                                         // in tests: answers proposals in raft's place
	dial   func(addr string, d time.Duration) (net.Conn, error) // in tests: in place of net.DialTimeout
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
	defaults(&c.readable, maxReadable)
	defaults(&c.stall, max(10*time.Second, 20*c.Timeout))
	defaults(&c.stuck, max(5*time.Second, 10*c.Timeout))
	defaults(&c.stopWait, 5*time.Second)
	defaults(&c.checkEvery, 4096)
	if c.dial == nil {
		c.dial = c.dialer()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// newcomerWait is how long a new voter may take to answer at its address.
const newcomerWait = 10 * time.Second

// dialer dials other job trackers; with TLS the other side has proved who it is.
func (c *Config) dialer() func(addr string, d time.Duration) (net.Conn, error) {
	config := c.Dial
	if config == nil {
		return func(addr string, d time.Duration) (net.Conn, error) { return net.DialTimeout("tcp", addr, d) }
	}
	return func(addr string, d time.Duration) (net.Conn, error) {
		conn, err := tls.DialWithDialer(&net.Dialer{Timeout: d}, "tcp", addr, config)
		if err != nil {
			return nil, err // and no pointer that is nil in an interface that is not
		}
		return conn, nil
	}
}

func defaults[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}

// Voter is a job tracker that votes.
type Voter struct{ ID, Addr string }

// Replica is one job tracker's copy of the log.
type Replica struct {
	cfg    Config
	lock   *os.File
	store  *store
	snaps  *raft.FileSnapshotStore
	first  net.Listener // for the first instance, until it has it
	listen string       // the address Listen became
	addr   string       // what others dial
	fsm    *fsm
	events *events

	agreement    agreement
	growth       growth
	snapshotting atomic.Bool

	proposals *proposals
	wake      chan struct{} // tells the supervisor to look
	restart   atomic.Pointer[string]
	done      chan struct{} // closed when Close has begun its last step
	loops     sync.WaitGroup
	close     sync.Once
	closeErr  error
	failed    atomic.Pointer[error]

	mu      sync.Mutex
	inst    *instance // nil: being restarted, or never again
	closing bool
	hangs   bool // raft was told to stop and did not: it may still use the files
}

var _ jobtracker.Log = (*Replica)(nil)

// Open reads what the directory holds, listens and takes part. A replica without
// state waits to be bootstrapped, or to be added by another.
func Open(cfg Config) (*Replica, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	r := &Replica{
		cfg:       cfg,
		events:    newEvents(),
		proposals: newProposals(cfg.stuck),
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
	r.store.failed, r.store.emptied = r.fail, r.logEmptied
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
	r.growth.at.Store(time.Now().UnixNano())
	return nil
}

// chooseAddresses finds out the port once, so that a restart listens on the same.
func (r *Replica) chooseAddresses() error {
	var err error
	if r.first, err = r.cfg.listen(r.cfg.Listen); err != nil {
		return err
	}
	r.listen = r.first.Addr().String()
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
		return fmt.Errorf("address for other job trackers: %s cannot be dialled; name one to advertise", r.addr)
	}
	return nil
}

// release frees what open has taken.
func (r *Replica) release() {
	if r.first != nil {
		r.first.Close()
	}
	if r.store != nil {
		r.store.close()
	}
	if r.lock != nil {
		r.lock.Close()
	}
}

// fail ends the replica: it steps down, votes no more, and says why.
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

// logEmptied hears that raft has removed the whole log, as it does when it installs
// a snapshot. It then still takes the entry last for the end of its log: if that is
// past the snapshot, no entry of the leader fits any more, which makes it send the
// snapshot again, for ever.
func (r *Replica) logEmptied(last uint64) {
	if last > r.fsm.applied.Load() {
		why := "its log went on past a snapshot that it has installed"
		r.restart.Store(&why)
		r.look()
	}
}

// instance is the running raft, or nil.
func (r *Replica) instance() *instance {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.inst
}

// Ready implements [jobtracker.Log].
func (r *Replica) Ready() <-chan struct{} { return r.events.ready }

// Take implements [jobtracker.Log].
func (r *Replica) Take() []jobtracker.LogEvent { return r.events.take() }

// Addr is where other job trackers dial this one.
func (r *Replica) Addr() string { return r.addr }

// Stored counts the entries given to the disk since Open, and the bytes of what
// they hold (Data and Extensions).
func (r *Replica) Stored() (entries, bytes int64) {
	return r.store.entries.Load(), r.store.bytes.Load()
}

// HasState says whether this replica has ever been part of a cluster, or has
// heard from one. What cannot be read counts as state.
func (r *Replica) HasState() bool {
	has, err := raft.HasExistingState(r.store, r.store, r.snaps)
	return has || err != nil
}

// Bootstrap makes a cluster of these voters, one of them this replica. All of
// them may call it with the same voters; who comes too late gets [ErrHasState],
// which then does no harm.
func (r *Replica) Bootstrap(voters []Voter) error {
	inst := r.instance()
	if inst == nil {
		return fmt.Errorf("bootstrap: %w", ErrClosed)
	}
	var c raft.Configuration
	for _, v := range voters {
		c.Servers = append(c.Servers, raft.Server{ID: raft.ServerID(v.ID), Address: raft.ServerAddress(v.Addr)})
	}
	slices.SortFunc(c.Servers, func(a, b raft.Server) int { return strings.Compare(string(a.ID), string(b.ID)) })
	switch err := inst.raft.BootstrapCluster(c).Error(); {
	case errors.Is(err, raft.ErrCantBootstrap):
		return fmt.Errorf("bootstrap: %w", ErrHasState)
	case errors.Is(err, raft.ErrNotVoter):
		return fmt.Errorf("bootstrap: %s is not among the voters %v", r.cfg.ID, voters)
	case err != nil:
		return fmt.Errorf("bootstrap: %w", err)
	}
	return nil
}

// Voters are those of the latest configuration this replica knows, by id.
func (r *Replica) Voters() []Voter {
	inst := r.instance()
	if inst == nil {
		return nil
	}
	var voters []Voter
	for _, s := range inst.raft.GetConfiguration().Configuration().Servers {
		if s.Suffrage == raft.Voter {
			voters = append(voters, Voter{ID: string(s.ID), Addr: string(s.Address)})
		}
	}
	slices.SortFunc(voters, func(a, b Voter) int { return strings.Compare(a.ID, b.ID) })
	return voters
}

// Leader is who leads as far as this replica knows.
func (r *Replica) Leader() (id string, ok bool) {
	inst := r.instance()
	if inst == nil {
		return "", false
	}
	_, leader := inst.raft.LeaderWithID()
	return string(leader), leader != ""
}

// AddVoter makes a job tracker a voter, or changes its address. It is asked of the
// leader, which does one change at a time. A newcomer must answer at its address:
// one that does not could cost the cluster its majority.
func (r *Replica) AddVoter(ctx context.Context, v Voter) error {
	conn, err := dialTo(r.cfg.dial, v.ID, v.Addr, newcomerWait)
	if err != nil {
		return fmt.Errorf("add job tracker %s: %w", v.ID, err)
	}
	conn.Close()
	if err := r.change(ctx, func(inst *instance, timeout time.Duration) raft.Future {
		return inst.raft.AddVoter(raft.ServerID(v.ID), raft.ServerAddress(v.Addr), 0, timeout)
	}); err != nil {
		return fmt.Errorf("add job tracker %s at %s: %w", v.ID, v.Addr, err)
	}
	return nil
}

// RemoveVoter takes a job tracker's vote away. A leader may remove itself, but
// nobody the last voter.
func (r *Replica) RemoveVoter(ctx context.Context, id string) error {
	voters := r.Voters()
	if !slices.ContainsFunc(voters, func(v Voter) bool { return v.ID == id }) {
		return fmt.Errorf("remove job tracker %s: %w", id, ErrNotVoter)
	}
	if len(voters) == 1 {
		return fmt.Errorf("remove job tracker %s: it is the last one", id)
	}
	if err := r.change(ctx, func(inst *instance, timeout time.Duration) raft.Future {
		return inst.raft.RemoveServer(raft.ServerID(id), 0, timeout)
	}); err != nil {
		return fmt.Errorf("remove job tracker %s: %w", id, err)
	}
	return nil
}

// change asks raft for a change of voters and waits for it until ctx ends.
func (r *Replica) change(ctx context.Context, ask func(*instance, time.Duration) raft.Future) error {
	inst := r.instance()
	if inst == nil {
		return ErrClosed
	}
	timeout := 10 * r.cfg.Timeout
	if deadline, ok := ctx.Deadline(); ok {
		timeout = max(time.Until(deadline), time.Millisecond)
	}
	result := make(chan error, 1)
	go func() { result <- ask(inst, timeout).Error() }()
	select {
	case err := <-result:
		if errors.Is(err, raft.ErrNotLeader) || errors.Is(err, raft.ErrLeadershipLost) {
			return ErrNotLeader
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-inst.ended:
		return ErrClosed
	}
}

// jitter spreads d by a tenth.
func jitter(d time.Duration) time.Duration { return d + rand.N(d/10+1) }
