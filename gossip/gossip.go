// Package gossip lists the other daemons, and which of them are suspected to be gone. It
// is the only importer of memberlist.
//
// Its members are hints. The log elects the leader, and the leader's lease decides which
// trackers are lost: a member that gossip lost, or has not found yet, loses nothing else.
// So timeouts are long, and a slow host is rarely suspected.
//
// # Invariants
//
//   - Every process has a new name, "<role>:<id>:<random>". So a restarted process is
//     found at once, even at another address, while its predecessor is not yet known to
//     be dead. [Gossip.Members] has one Member for each role and id.
//   - Job trackers of another cluster are never members; [Gossip.Foreign] lists them.
//   - Addresses in Config.Join are resolved and tried for as long as no member has
//     them, so the parts of a split cluster join again.
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
// Another version is ignored, and logged once. All packets and streams carry the label
// of Config, so gossip ignores other programs on the network.
//
// # UDP
//
// Where UDP is blocked, memberlist still works over TCP, but slowly and with false
// suspicions. So each process periodically checks another member, first when it has
// found one. It sends questions over UDP and TCP, and the member answers each over both.
// Failed directions are logged once as errors, and once more when they work again.
//
// # Concurrency
//
// All goroutines may call all methods; Close only once.
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

// Config describes this process and its addresses.
type Config struct {
	Self      Member
	Bind      string   // host:port for UDP and TCP; port 0 takes a free one
	Advertise string   // host:port, or host, under which others reach it; empty: as bound
	Join      []string // host:port of others
	Label     string   // of all packets; empty: the project's
	Key       []byte   // 32 bytes that encrypt all messages; nil: no encryption
	Logger    *slog.Logger

	tune func(*memberlist.Config) // for tests
}

const defaultLabel = "quern-gossip"

// Gossip is this process's membership.
type Gossip struct {
	log           *slog.Logger
	list          *memberlist.Memberlist
	name          string // of this process in memberlist
	addr          string // advertised
	ctx           context.Context
	cancel        context.CancelFunc
	wait          sync.WaitGroup
	ready         chan struct{} // closed when list is set
	tried         chan struct{} // closed when every address of Config.Join was tried once
	update        chan struct{} // has a value when meta must be sent
	checkRequests chan string   // names of members to check soon
	checks        checks

	mu        sync.Mutex
	self      Member
	meta      []byte
	nodes     map[string]*node // by name, without this process
	gone      map[string]bool  // addresses of lost members
	foreign   map[string]Member
	answering int // answers being sent
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
	if cfg.Self.Started == 0 {
		cfg.Self.Started = time.Now().UnixNano()
	}
	meta, err := encodeMember(cfg.Self)
	if err != nil {
		return nil, err
	}
	g := &Gossip{
		log: cfg.Logger, name: processName(cfg.Self), self: cfg.Self, meta: meta,
		ready: make(chan struct{}), tried: make(chan struct{}), update: make(chan struct{}, 1), checkRequests: make(chan string, 16), nodes: make(map[string]*node),
		gone: make(map[string]bool), foreign: make(map[string]Member), changed: make(chan struct{}),
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
		g.wait.Go(func() { g.join(addr, sync.OnceFunc(first.Done)) })
	}
	g.wait.Go(func() {
		first.Wait()
		close(g.tried)
	})
	g.wait.Go(g.rejoin)
	g.wait.Go(g.announce)
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
	conf.PushPullInterval = 5 * time.Second // also spreads what UDP lost
	conf.TCPTimeout = 3 * time.Second
	conf.DeadNodeReclaimTime = time.Second // names are never reused; addresses may be
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

// Addr returns the address under which others reach this process's gossip.
func (g *Gossip) Addr() string { return g.addr }

// Self returns the description of this process.
func (g *Gossip) Self() Member {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.self
}

// Update changes the description of this process: change gets the current one and returns
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
	g.change()
	select {
	case g.update <- struct{}{}:
	default:
	}
	return nil
}

// announce has memberlist spread what Update changed.
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

// Members lists all processes that are not known to be gone, including this one, by role
// and id. Of several with the same role and id it has the last started one that is not
// suspected.
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

// Find returns the member of a role and id that Members has. It is cheap: each message to
// another job tracker's log looks up its address.
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

// Duplicate returns another process with this one's role and id. It waits for a while
// before it reports one, since a predecessor that just died looks the same.
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

// duplicateAge is longer than it takes to find out that a process is gone.
const duplicateAge = time.Minute

// Changed returns a channel that is closed when the results of the other methods change.
// Call it before them.
func (g *Gossip) Changed() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.changed
}

// Tried returns a channel that is closed when every address to join was tried once. The
// processes that answered there, and their members, are members then.
func (g *Gossip) Tried() <-chan struct{} { return g.tried }

// change closes the channel of Changed; g.mu is held.
func (g *Gossip) change() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// leaveWait bounds how long Close waits until other members know.
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
	g.wait.Wait()
	if err != nil {
		return fmt.Errorf("end gossip: %w", err)
	}
	return nil
}
