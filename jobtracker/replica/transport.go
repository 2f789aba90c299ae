package replica

import (
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// network is how raft listens and dials. Names are looked up at each dial. When it
// is closed so are the connections that others have opened.
type network struct {
	net.Listener
	addr string // what others dial

	mu     sync.Mutex
	conns  map[net.Conn]bool
	closed bool
}

func listen(at string) (net.Listener, error) {
	l, err := net.Listen("tcp", at)
	if err != nil {
		return nil, fmt.Errorf("listen for other job trackers: %w", err)
	}
	return l, nil
}

func newNetwork(l net.Listener, addr string) *network {
	return &network{Listener: l, addr: addr, conns: make(map[net.Conn]bool)}
}

// Dial implements raft.StreamLayer.
func (n *network) Dial(to raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	return net.DialTimeout("tcp", string(to), timeout)
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
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		conn.Close()
		return nil, net.ErrClosed
	}
	n.conns[conn] = true
	return &accepted{Conn: conn, of: n}, nil
}

// Close implements net.Listener.
func (n *network) Close() error {
	err := n.Listener.Close()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	for conn := range n.conns {
		conn.Close()
	}
	return err
}

// accepted is a connection that another has opened.
type accepted struct {
	net.Conn
	of *network
}

func (c *accepted) Close() error {
	c.of.mu.Lock()
	delete(c.of.conns, c.Conn)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
