// Package gossip finds the other daemons of a cluster, and says which are suspected to have died.
// It is the only package that imports memberlist.
//
// The members are only hints. The log elects the leader, and the leader's leases decide which
// trackers are lost. If gossip loses a member or has not found it yet, nothing else is lost. So
// timeouts are long, and a slow host is rarely suspected.
//
// # Invariants
//
//   - Every process has a new name, "<role>:<id>:<random>". So a restarted process is
//     found at once, even at another address, while its predecessor is not yet known to
//     be dead. [Gossip.Members] has one Member for each role and id.
//   - Job trackers of another cluster are never members; [Gossip.Foreign] lists them.
//   - Addresses in Config.Join are resolved and dialed while no member has
//     them, so that the parts of a split cluster join again.
//   - No method that memberlist calls ever waits.
//
// # Bytes
//
// Each process sends its [Member] as meta data, at most 512 bytes:
//
//	+------------+---------------------------------+
//	| version u8 | [Member] in msgpack, see wire   |
//	+------------+---------------------------------+
//
// and the check of UDP as user messages:
//
//	+------------+------------------------------+
//	| version u8 | message in msgpack, see wire |
//	+------------+------------------------------+
//
// Messages of another version are ignored, and logged once. All packets and streams have the label
// of Config, so that gossip ignores other programs on the network.
//
// Connections are limited, and streams and packets for which memberlist would allocate far more
// memory than their size are refused.
//
// # UDP
//
// If UDP is blocked, memberlist still works over TCP, but slowly and with false suspicions. So each
// process periodically checks another member, for the first time when it has found one. It sends
// questions over UDP and over TCP, and the member answers each question over both. Failed
// directions are logged as errors once, and again when they work.
//
// # Concurrency
//
// All goroutines may call all methods. Call Close only once.
package gossip

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/quernmr/quern/listen"
)

// Config describes this process and its addresses.
type Config struct {
	Self      Member
	Bind      string   // host:port for UDP and TCP; port 0: a free port
	Advertise string   // host:port, or host, that others dial; empty: Bind
	Join      []string // host:port of other members
	Label     string   // in all packets; default defaultLabel
	Key       []byte   // 32 bytes that encrypt all messages; nil: no encryption
	Logger    *slog.Logger

	tune func(*memberlist.Config) // for tests

	limits listen.Limits // of connections; default perAddress
}

const defaultLabel = "quern-gossip"

// Gossip is this process as a member.
type Gossip struct {
	log           *slog.Logger
	list          *memberlist.Memberlist
	name          string // of this process in memberlist
	addr          string // advertised
	ctx           context.Context
	cancel        context.CancelFunc
	goroutines    sync.WaitGroup
	ready         chan struct{} // closed when list is set
	joinTried     chan struct{} // closed when every address of Config.Join was dialed once
	update        chan struct{} // has a value when meta has changed
	checkRequests chan string   // names of members to check soon
	checks        checks
	limits        listen.Limits

	mu        sync.Mutex
	self      Member
	meta      []byte
	nodes     map[string]*node // by name, without this process
	lostAddrs map[string]bool  // addresses of lost members
	foreign   map[string]Member
	answering int // answers being sent
	closed    bool
	changed   chan struct{} // closed at the next change of members
}

// node is another process, as memberlist knows it.
type node struct {
	Member
	addr    string // of its gossip
	suspect bool
	list    *memberlist.Node
	since   time.Time
}

// Start listens and begins to look for other members.
func Start(cfg Config) (*Gossip, error) {
	g, err := start(cfg)
	if err != nil {
		return nil, fmt.Errorf("gossip at %s: %w", cfg.Bind, err)
	}
	return g, nil
}

func start(cfg Config) (*Gossip, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.limits.PerAddress = cmp.Or(cfg.limits.PerAddress, perAddress)
	if cfg.Self.Started == 0 {
		cfg.Self.Started = time.Now().UnixNano()
	}
	meta, err := encodeMember(cfg.Self)
	if err != nil {
		return nil, err
	}
	g := &Gossip{
		log: cfg.Logger, name: processName(cfg.Self), self: cfg.Self, meta: meta,
		ready: make(chan struct{}), joinTried: make(chan struct{}), update: make(chan struct{}, 1), checkRequests: make(chan string, 16), nodes: make(map[string]*node),
		limits: cfg.limits, lostAddrs: make(map[string]bool), foreign: make(map[string]Member), changed: make(chan struct{}),
		checks: checks{waiting: make(map[uint64]*checkResult), failing: make(map[string]bool)},
	}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	conf, err := g.memberlistConfig(cfg)
	if err != nil {
		return nil, err
	}
	// memberlist calls this package's methods while it starts.
	if g.list, err = memberlist.Create(conf); err != nil {
		return nil, errors.Join(err, conf.Transport.Shutdown())
	}
	g.addr = g.list.LocalNode().Address()
	close(g.ready)
	var first sync.WaitGroup
	first.Add(len(cfg.Join))
	for _, addr := range cfg.Join {
		g.goroutines.Go(func() { g.join(addr, sync.OnceFunc(first.Done)) })
	}
	g.goroutines.Go(func() {
		first.Wait()
		close(g.joinTried)
	})
	g.goroutines.Go(g.rejoin)
	g.goroutines.Go(g.announce)
	g.goroutines.Go(g.watchUDP)
	return g, nil
}

func (g *Gossip) memberlistConfig(cfg Config) (*memberlist.Config, error) {
	conf := memberlist.DefaultLANConfig()
	conf.Name = g.name
	conf.Label = cmp.Or(cfg.Label, defaultLabel)
	conf.SecretKey = cfg.Key
	conf.Logger = g.memberlistLogger()
	conf.Delegate, conf.Events, conf.Alive, conf.Merge, conf.Ping = g, events{g}, g, g, g
	conf.EnableCompression = false // messages are small
	conf.ProbeInterval, conf.ProbeTimeout = 2*time.Second, time.Second
	conf.PushPullInterval = 5 * time.Second // also spreads changes that UDP has lost
	conf.TCPTimeout = 3 * time.Second
	conf.DeadNodeReclaimTime = time.Second // names are never used again, but addresses may be
	if err := setAddresses(g.ctx, conf, cfg.Bind, cfg.Advertise); err != nil {
		return nil, err
	}
	if cfg.tune != nil {
		cfg.tune(conf)
	}
	var err error
	conf.Transport, err = g.listen(conf)
	return conf, err
}

// Addr returns the gossip address of this process that others dial.
func (g *Gossip) Addr() string { return g.addr }

// Self returns the description of this process.
func (g *Gossip) Self() Member {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.self
}

// Update changes the description of this process. change gets the current description and returns
// the new one.
func (g *Gossip) Update(change func(Member) Member) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	self := change(g.self)
	if self.ID != g.self.ID || self.Role != g.self.Role {
		return fmt.Errorf("gossip: %s %s cannot become %s %s", g.self.Role, g.self.ID, self.Role, self.ID)
	}
	self.Started = g.self.Started
	if self == g.self {
		return nil
	}
	meta, err := encodeMember(self)
	if err != nil {
		return err
	}
	g.self, g.meta = self, meta
	g.notifyChange()
	select {
	case g.update <- struct{}{}:
	default:
	}
	return nil
}

// announce makes memberlist spread changes by Update.
func (g *Gossip) announce() {
	for {
		select {
		case <-g.ctx.Done():
			return
		case <-g.update:
			if err := g.list.UpdateNode(time.Second); err != nil {
				g.log.Debug("gossip: cannot announce a change", "error", err)
			}
		}
	}
}

// Members lists all processes that are not known to have left or died, including this one, by role
// and id. If several have the same role and id, it lists only the one that is not suspected and
// started last.
func (g *Gossip) Members() []Member {
	g.mu.Lock()
	defer g.mu.Unlock()
	type key struct {
		role Role
		id   string
	}
	best := map[key]Member{{g.self.Role, g.self.ID}: g.self}
	for _, n := range g.nodes {
		m := n.Member
		m.Suspect = n.suspect
		k := key{m.Role, m.ID}
		if other, ok := best[k]; k != (key{g.self.Role, g.self.ID}) && (!ok || m.betterThan(other)) {
			best[k] = m
		}
	}
	members := make([]Member, 0, len(best))
	for _, m := range best {
		members = append(members, m)
	}
	slices.SortFunc(members, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.ID, b.ID))
	})
	return members
}

// Find returns the member with this role and id, as Members does. It is cheap, because raft looks
// up an address at each dial.
func (g *Gossip) Find(role Role, id string) (m Member, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.self.Role == role && g.self.ID == id {
		return g.self, true
	}
	for _, n := range g.nodes {
		if n.Role != role || n.ID != id {
			continue
		}
		other := n.Member
		other.Suspect = n.suspect
		if !ok || other.betterThan(m) {
			m, ok = other, true
		}
	}
	return m, ok
}

// Foreign lists the job trackers of other clusters that were refused, by id.
func (g *Gossip) Foreign() []Member {
	g.mu.Lock()
	defer g.mu.Unlock()
	var members []Member
	for _, m := range g.foreign {
		members = append(members, m)
	}
	slices.SortFunc(members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	return members
}

// Duplicate returns another process with the role and id of this one, if it is a member for longer
// than duplicateAge: a predecessor that has just died looks the same.
func (g *Gossip) Duplicate() (Member, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, n := range g.nodes {
		if n.Role == g.self.Role && n.ID == g.self.ID && !n.suspect && time.Since(n.since) > duplicateAge {
			return n.Member, true
		}
	}
	return Member{}, false
}

// duplicateAge is longer than gossip needs to find out that a process has died.
const duplicateAge = time.Minute

// Changed returns a channel that is closed when results of the other methods change. Call it before
// the other methods.
func (g *Gossip) Changed() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.changed
}

// JoinTried returns a channel that is closed when every address in Config.Join was dialed once.
// Then the processes that answered, and all members that they know, are members here.
func (g *Gossip) JoinTried() <-chan struct{} { return g.joinTried }

// notifyChange closes the channel of Changed. The caller holds g.mu.
func (g *Gossip) notifyChange() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// leaveWait limits how long Close waits until other members know that this one leaves.
const leaveWait = time.Second

// Close leaves the gossip and ends all goroutines.
func (g *Gossip) Close() error {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.cancel()
	if err := g.list.Leave(leaveWait); err != nil {
		g.log.Debug("gossip: leave", "error", err)
	}
	err := g.list.Shutdown()
	g.goroutines.Wait()
	if err != nil {
		return fmt.Errorf("end gossip: %w", err)
	}
	return nil
}
