package listen

import (
	"cmp"
	"container/list"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Limits bound the connections of a listener. The zero value has the defaults.
type Limits struct {
	PerAddress int           // open connections of one address; 0: [DefaultPerAddress], below 0: no limit
	Unknown    time.Duration // until a peer must be known; 0: [DefaultUnknown]
	Logger     *slog.Logger  // nil: silent
}

// Defaults of [Limits]. A thousand is far more than a client needs, and leaves a daemon most of its files.
const (
	DefaultPerAddress = 1000
	DefaultUnknown    = 10 * time.Second
)

// noteEvery is the time between two log lines about connections that were closed.
const noteEvery = time.Minute

// Limit limits the connections of a listener.
func Limit(l net.Listener, limits Limits) net.Listener { return limited{l, NewGuard(limits)} }

type limited struct {
	net.Listener
	guard *Guard
}

// Accept implements net.Listener.
func (l limited) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if conn := l.guard.Admit(raw); conn != nil {
			return conn, nil
		}
	}
}

// Guard counts connections by address.
type Guard struct {
	limits Limits

	mu     sync.Mutex
	peers  map[netip.Prefix]*peer // those with open connections
	closed int                    // connections closed since the last log line
	noted  time.Time
}

// peer is an address with open connections.
type peer struct {
	open    int
	unknown list.List // of *conn, oldest first
}

// NewGuard makes a Guard without connections.
func NewGuard(limits Limits) *Guard {
	limits.PerAddress = cmp.Or(limits.PerAddress, DefaultPerAddress)
	limits.Unknown = cmp.Or(limits.Unknown, DefaultUnknown)
	if limits.Logger == nil {
		limits.Logger = slog.New(slog.DiscardHandler)
	}
	return &Guard{limits: limits, peers: make(map[netip.Prefix]*peer)}
}

// Admit takes an accepted connection, and returns it for use. It returns nil if the address has too
// many connections: then the new one is closed, or the oldest one that is unknown. The connection has a
// method Known, which its user calls once it knows the peer.
func (g *Guard) Admit(raw net.Conn) net.Conn {
	c := &conn{Conn: raw, guard: g, from: networkOf(raw.RemoteAddr())}
	excess := g.add(c)
	if excess != nil {
		g.note(c.from)
		excess.Close()
	}
	if excess == c {
		return nil
	}
	return c
}

// add counts a connection. It returns the connection to close, if the address has too many.
func (g *Guard) add(c *conn) (excess *conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.peers[c.from]
	if p == nil {
		p = new(peer)
		g.peers[c.from] = p
	}
	if limit := g.limits.PerAddress; limit > 0 && p.open >= limit {
		oldest := p.unknown.Front()
		if oldest == nil {
			c.gone = true // it was never counted
			return c
		}
		excess = oldest.Value.(*conn)
		g.forget(excess)
	}
	g.peers[c.from] = p // forget may have removed it
	p.open++
	c.place = p.unknown.PushBack(c)
	c.late = time.AfterFunc(g.limits.Unknown, c.closeUnknown)
	return excess
}

// forget removes a connection from the counts. The caller holds g.mu.
func (g *Guard) forget(c *conn) {
	if c.gone {
		return
	}
	c.gone = true
	p := g.peers[c.from]
	g.endUnknown(c)
	if p.open--; p.open == 0 {
		delete(g.peers, c.from)
	}
}

// endUnknown notes that a connection is not unknown any more, or is closed. The caller holds g.mu.
func (g *Guard) endUnknown(c *conn) {
	if c.place != nil {
		g.peers[c.from].unknown.Remove(c.place)
		c.place = nil
		c.late.Stop()
	}
}

// note logs closed connections, once a minute.
func (g *Guard) note(from netip.Prefix) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed++
	if now := time.Now(); g.noted.IsZero() || now.Sub(g.noted) >= noteEvery {
		g.limits.Logger.Warn("connections are closed: their address has too many", "address", from, "limit", g.limits.PerAddress, "closed", g.closed)
		g.noted, g.closed = now, 0
	}
}

// networkOf returns the peer as which a connection counts: an IPv4 address, or the /64 network of an
// IPv6 address, as one machine may have all of its addresses. Others count as one peer.
func networkOf(a net.Addr) netip.Prefix {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	bits := 32
	if ip.Is6() {
		bits = 64
	}
	prefix, _ := ip.Prefix(bits) // an invalid address gives the zero prefix
	return prefix
}

// conn is a counted connection.
type conn struct {
	net.Conn
	guard *Guard
	from  netip.Prefix

	late  *time.Timer // closes it if it stays unknown
	known atomic.Bool

	// Guarded by guard.mu.
	place *list.Element // among the unknown connections; nil: it is known, or not counted any more
	gone  bool          // it is not counted any more
}

func (c *conn) closeUnknown() {
	c.guard.mu.Lock()
	late := c.place != nil
	c.guard.mu.Unlock()
	if late {
		c.Close()
	}
}

// Known notes that the peer has shown who it is, or what it wants. The connection may stay then.
func (c *conn) Known() {
	if c.known.Swap(true) {
		return
	}
	c.guard.mu.Lock()
	defer c.guard.mu.Unlock()
	c.guard.endUnknown(c)
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.guard.mu.Lock()
	c.guard.forget(c)
	c.guard.mu.Unlock()
	return c.Conn.Close()
}
