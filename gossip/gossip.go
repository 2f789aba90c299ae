// Package gossip tells a daemon which other daemons there are, and which of them
// are suspected to be gone. It is the only importer of memberlist.
//
// What it tells is a hint. Who leads is decided by the log, which trackers are
// lost by the leader's lease: a member that gossip has lost, or has not found
// yet, loses nothing else. So times are long: a starved host shall not be suspected.
//
// # Invariants
//
//   - A process is a member under a name of its own, "<role>:<id>:<random>", so one
//     that has been restarted, be it at another address, is seen at once and need
//     not wait until its predecessor is found dead. [Gossip.Members] has one Member
//     for each role and id.
//   - Job trackers that belong to another cluster than this one are never members;
//     [Gossip.Foreign] tells of them.
//   - Addresses in Config.Join are looked up and tried for as long as no member has
//     them, so a cluster that has been split comes together again.
//   - Nothing that memberlist calls ever waits.
//
// # Bytes
//
// What a member says of itself travels as its meta data, at most 512 bytes:
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
// Another version is ignored, and said once. All packets and streams carry the
// label of Config, so that nothing else on the network is taken for gossip.
//
// # UDP
//
// Where UDP is blocked, memberlist works on over TCP, slowly and with false
// suspicions. So each process asks another now and then, at first when it has
// found one, to answer over UDP and over TCP what it asked over UDP and over TCP;
// what does not arrive is logged as an error, once, and once more when it does again.
//
// # Concurrency
//
// All methods may be called from everywhere, but Close once.
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
)

// Config says who this process is and where it gossips.
type Config struct {
	Self      Member
	Bind      string   // host:port for UDP and TCP; port 0 takes a free one
	Advertise string   // host:port, or host, under which others reach it; empty: as bound
	Join      []string // host:port of others
	Label     string   // of all packets; empty: the project's
	Key       []byte   // 32 bytes with which all is encrypted; nil: nothing is
	Logger    *slog.Logger

	tune func(*memberlist.Config) // for tests
}

const defaultLabel = "quern-gossip"

// Gossip is this process's membership.
type Gossip struct {
	log    *slog.Logger
	list   *memberlist.Memberlist
	name   string // of this process in memberlist
	addr   string // advertised
	ctx    context.Context
	cancel context.CancelFunc
	wait   sync.WaitGroup
	ready  chan struct{} // closed when list is there
	tried  chan struct{} // closed when every address of Config.Join was tried once
	update chan struct{} // has a value when meta is to be told
	doubts chan string   // names of members that UDP does not seem to reach
	checks checks

	mu        sync.Mutex
	self      Member
	meta      []byte
	nodes     map[string]*node // by name, without this process
	gone      map[string]bool  // addresses of members that were lost
	foreign   map[string]Member
	answering int // questions of others
	closed    bool
	changed   chan struct{} // closed at the next change
}

// node is another process, as memberlist knows it.
type node struct {
	Member
	addr    string // of its gossip
	suspect bool
	list    *memberlist.Node
	since   time.Time
}

// Start begins to listen and to look for others.
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
	if cfg.Self.Started == 0 {
		cfg.Self.Started = time.Now().UnixNano()
	}
	meta, err := encodeMember(cfg.Self)
	if err != nil {
		return nil, err
	}
	g := &Gossip{
		log: cfg.Logger, name: processName(cfg.Self), self: cfg.Self, meta: meta,
		ready: make(chan struct{}), tried: make(chan struct{}), update: make(chan struct{}, 1), doubts: make(chan string, 16), nodes: make(map[string]*node),
		gone: make(map[string]bool), foreign: make(map[string]Member), changed: make(chan struct{}),
		checks: checks{waiting: make(map[uint64]*verdict), failing: make(map[string]bool)},
	}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	conf, err := g.memberlistConfig(cfg)
	if err != nil {
		return nil, err
	}
	// memberlist calls back while it starts.
	if g.list, err = memberlist.Create(conf); err != nil {
		return nil, errors.Join(err, conf.Transport.Shutdown())
	}
	g.addr = g.list.LocalNode().Address()
	close(g.ready)
	var first sync.WaitGroup
	first.Add(len(cfg.Join))
	for _, addr := range cfg.Join {
		g.wait.Go(func() { g.join(addr, sync.OnceFunc(first.Done)) })
	}
	g.wait.Go(func() {
		first.Wait()
		close(g.tried)
	})
	g.wait.Go(g.rejoin)
	g.wait.Go(g.tell)
	g.wait.Go(g.watchUDP)
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
	conf.PushPullInterval = 5 * time.Second // what UDP does not deliver comes by this
	conf.TCPTimeout = 3 * time.Second
	conf.DeadNodeReclaimTime = time.Second // names are not used twice; an address may be
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

// Addr is the address under which others reach this process's gossip.
func (g *Gossip) Addr() string { return g.addr }

// Self is what this process tells of itself.
func (g *Gossip) Self() Member {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.self
}

// Update changes what this process tells of itself: change gets that and returns
// what it shall be.
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
	g.change()
	select {
	case g.update <- struct{}{}:
	default:
	}
	return nil
}

// tell has memberlist spread what Update has changed.
func (g *Gossip) tell() {
	for {
		select {
		case <-g.ctx.Done():
			return
		case <-g.update:
			if err := g.list.UpdateNode(time.Second); err != nil {
				g.log.Debug("gossip: spread what has changed here", "error", err)
			}
		}
	}
}

// Members lists all processes that are not known to be gone, this one too: one of
// each role and id, the last started that is not suspected; by role and id.
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

// Find gives the member of a role and id that Members has. It is cheap: each message
// to another job tracker's log asks where that is now.
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

// Foreign lists job trackers of other clusters that were met, by id.
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

// Twin tells of another process that has this one's role and id and has lived
// beside it for a while, so that it is no predecessor that just died.
func (g *Gossip) Twin() (Member, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, n := range g.nodes {
		if n.Role == g.self.Role && n.ID == g.self.ID && !n.suspect && time.Since(n.since) > twinAge {
			return n.Member, true
		}
	}
	return Member{}, false
}

// twinAge is more than it takes to find out that a process is gone.
const twinAge = time.Minute

// Changed returns a channel that is closed when something that the other methods
// tell has changed. Ask for it first and look then.
func (g *Gossip) Changed() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.changed
}

// Tried returns a channel that is closed when every address to join was tried once:
// who listens at one of them, and whom that one knows, is a member then.
func (g *Gossip) Tried() <-chan struct{} { return g.tried }

// change tells those who wait; g.mu is held.
func (g *Gossip) change() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// leaveWait bounds how long Close waits until others know that this one leaves.
const leaveWait = time.Second

// Close leaves and ends everything.
func (g *Gossip) Close() error {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.cancel()
	if err := g.list.Leave(leaveWait); err != nil {
		g.log.Debug("gossip: leave", "error", err)
	}
	err := g.list.Shutdown()
	g.wait.Wait()
	if err != nil {
		return fmt.Errorf("end gossip: %w", err)
	}
	return nil
}
