package replica

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/listen"
)

// network is raft's network. Close closes all connections: raft would leave them open, and a leader
// that hangs would renew its lease over them.
type network struct {
	net.Listener
	addr string // address that others dial
	dial func(addr string, d time.Duration) (net.Conn, error)

	mu     sync.Mutex
	conns  map[net.Conn]bool
	closed bool
}

func (c *Config) listen(at string) (net.Listener, error) {
	l, err := net.Listen("tcp", at)
	if err != nil {
		return nil, fmt.Errorf("listen for other job trackers: %w", err)
	}
	limits := c.limits
	limits.Logger = c.Logger
	l = listen.Limit(l, limits)
	if c.Serve != nil {
		l = identity.Listen(l, c.Serve)
	}
	return l, nil
}

func newNetwork(l net.Listener, addr string, dial func(string, time.Duration) (net.Conn, error)) *network {
	return &network{Listener: l, addr: addr, dial: dial, conns: make(map[net.Conn]bool)}
}

// Dial implements raft.StreamLayer.
func (n *network) Dial(to raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	id, addr, ok := strings.Cut(string(to), "@")
	if !ok {
		id, addr = "", string(to)
	}
	return n.dialAgain(func() (net.Conn, error) { return dialTo(n.dial, id, addr, timeout) })
}

// named returns the address ID@HOST:PORT, so that Dial knows which job tracker must answer.
func named(id raft.ServerID, addr string) raft.ServerAddress {
	return raft.ServerAddress(string(id) + "@" + addr)
}

// errOtherJobTracker reports that a job tracker with another id answers at an address.
var errOtherJobTracker = errors.New("another job tracker answers")

// dialTo dials a job tracker. With TLS, the certificate must be for id; an empty id matches all.
func dialTo(dial func(addr string, d time.Duration) (net.Conn, error), id, addr string, d time.Duration) (net.Conn, error) {
	conn, err := dial(addr, d)
	if err != nil {
		return nil, err
	}
	if secure, ok := conn.(*tls.Conn); ok && id != "" {
		state := secure.ConnectionState()
		if peer, _ := identity.PeerOf(&state); peer.Name != id {
			conn.Close()
			return nil, fmt.Errorf("%w at %s: %v, not %s", errOtherJobTracker, addr, peer, id)
		}
	}
	return conn, nil
}

// Addr implements net.Listener. It returns the address that others dial.
func (n *network) Addr() net.Addr { return address(n.addr) }

type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

// Accept implements net.Listener.
func (n *network) Accept() (net.Conn, error) {
	conn, err := n.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return n.track(&inbound{Conn: conn})
}

func (n *network) track(conn net.Conn) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		conn.Close()
		return nil, net.ErrClosed
	}
	n.conns[conn] = true
	return &tracked{Conn: conn, network: n}, nil
}

// Close implements net.Listener.
func (n *network) Close() error {
	err := n.Listener.Close()
	n.mu.Lock()
	conns := n.conns
	n.conns, n.closed = nil, true
	n.mu.Unlock()
	for conn := range conns {
		conn.Close()
	}
	return err
}

// A batch of entries must reach a follower before a deadline, or raft sends it again without end.
// A batch has at most batchEntries entries, so that the leader needs little memory for a follower
// that is behind. Its deadline grows with its bytes, for a network with slowestNetwork bytes a second.
const (
	batchEntries   = 16
	slowestNetwork = 1 << 20
)

// tracked is a connection that its network closes. Only one goroutine at a time writes and sets
// deadlines, as raft does.
type tracked struct {
	net.Conn
	network  *network
	dial     func() (net.Conn, error) // dials the same job tracker again; nil: it has dialed this one
	deadline time.Time                // of the current request; zero: none
}

// SetDeadline implements net.Conn. Raft calls it before each request. Writes move the deadline.
func (c *tracked) SetDeadline(at time.Time) error {
	if err := c.redial(); err != nil {
		return err
	}
	return c.setDeadline(at)
}

func (c *tracked) setDeadline(at time.Time) error {
	c.deadline = at
	return c.Conn.SetDeadline(at)
}

// Write implements net.Conn.
func (c *tracked) Write(p []byte) (int, error) {
	if !c.deadline.IsZero() {
		if err := c.setDeadline(c.deadline.Add(time.Duration(len(p)) * time.Second / slowestNetwork)); err != nil {
			return 0, err
		}
	}
	return c.Conn.Write(p)
}

func (c *tracked) Close() error {
	c.network.mu.Lock()
	delete(c.network.conns, c.Conn)
	c.network.mu.Unlock()
	return c.Conn.Close()
}
