package replica

import (
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// network is how raft listens and dials. Names are looked up at each dial. When it
// is closed so are all connections: raft leaves them open, and a leader that hangs
// would go on to renew its lease over them.
type network struct {
	net.Listener
	addr string // what others dial
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
	if c.Serve != nil {
		l = tls.NewListener(l, c.Serve)
	}
	return l, nil
}

func newNetwork(l net.Listener, addr string, dial func(string, time.Duration) (net.Conn, error)) *network {
	return &network{Listener: l, addr: addr, dial: dial, conns: make(map[net.Conn]bool)}
}

// Dial implements raft.StreamLayer.
func (n *network) Dial(to raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	conn, err := n.dial(string(to), timeout)
	if err != nil {
		return nil, err
	}
	return n.track(conn)
}

// Addr implements net.Listener: what others dial, which may be a name.
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
	return n.track(conn)
}

func (n *network) track(conn net.Conn) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		conn.Close()
		return nil, net.ErrClosed
	}
	n.conns[conn] = true
	return &tracked{Conn: conn, of: n}, nil
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

// tracked is a connection that ends with its network.
type tracked struct {
	net.Conn
	of *network
}

func (c *tracked) Close() error {
	c.of.mu.Lock()
	delete(c.of.conns, c.Conn)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
