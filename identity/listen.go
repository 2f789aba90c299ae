package identity

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"os"
	"runtime"
	"sync"
	"time"
)

// handshakeWait limits a handshake, with the wait for turns. So no more handshakes wait than begin in
// this time, also if peers dial faster than the job tracker works.
const handshakeWait = 10 * time.Second

// Listen accepts connections of a listener over TLS. Handshakes cost much processor time, and
// after an election all task trackers dial at once. So handshakes take turns: only as many work at
// once as half of the processors, in order, and the others are left for the leader and its log. A
// handshake that waits for its peer has no turn, so a slow or silent peer delays no other.
//
// If a handshake failed, Accept returns its connection too: the first read returns the error.
//
// If config is of an Identity, a connection ends when its peer is no longer admitted.
func Listen(l net.Listener, config *tls.Config) net.Listener {
	t := &turnListener{
		Listener: l, config: config, turns: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)),
		accepted: make(chan accepted), closed: make(chan struct{}),
	}
	go t.acceptAll()
	return t
}

type turnListener struct {
	net.Listener
	config   *tls.Config
	turns    chan struct{}
	accepted chan accepted
	closed   chan struct{}
	closing  sync.Once
}

// accepted is a result of Accept.
type accepted struct {
	conn net.Conn
	err  error
}

func (t *turnListener) acceptAll() {
	for {
		conn, err := t.Listener.Accept()
		if err != nil {
			if !t.pass(accepted{err: err}) {
				return
			}
			continue
		}
		go t.handshake(conn)
	}
}

// pass passes a result to Accept. It returns false if the listener is closed.
func (t *turnListener) pass(a accepted) bool {
	select {
	case t.accepted <- a:
		return true
	case <-t.closed:
		return false
	}
}

func (t *turnListener) handshake(raw net.Conn) {
	late, cancel := context.WithTimeout(context.Background(), handshakeWait)
	defer cancel()
	living := newPeerConn(raw, false)
	turn := &turnConn{Conn: living, turns: t.turns, late: late.Done()}
	conn := tls.Server(turn, t.config)
	conn.SetDeadline(time.Now().Add(handshakeWait)) // ignore the errors of both: the next read or write returns them too
	err := conn.HandshakeContext(withConn(context.Background(), living))
	turn.end()
	if err == nil {
		if counted, ok := raw.(interface{ Known() }); ok { // package listen counts connections of unknown peers
			counted.Known()
		}
		living.watch(conn)
	}
	conn.SetDeadline(time.Time{})
	if !t.pass(accepted{conn: conn}) {
		conn.Close()
	}
}

// Accept implements net.Listener.
func (t *turnListener) Accept() (net.Conn, error) {
	select {
	case a := <-t.accepted:
		return a.conn, a.err
	case <-t.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (t *turnListener) Close() error {
	t.closing.Do(func() { close(t.closed) })
	return t.Listener.Close()
}

// turnConn is a connection. During the handshake it has a turn, except while it reads or writes.
type turnConn struct {
	net.Conn
	turns chan struct{}
	late  <-chan struct{} // closed at the end of handshakeWait
	has   bool            // owned by the goroutine of the handshake
	ended bool            // set before other goroutines use the connection
}

func (c *turnConn) release() {
	if c.has {
		c.has = false
		<-c.turns
	}
}

func (c *turnConn) take() error {
	select {
	case c.turns <- struct{}{}:
		c.has = true
		return nil
	case <-c.late:
		return os.ErrDeadlineExceeded
	}
}

func (c *turnConn) end() {
	c.release()
	c.ended = true
}

func (c *turnConn) Read(b []byte) (int, error) {
	if c.ended {
		return c.Conn.Read(b)
	}
	c.release()
	n, err := c.Conn.Read(b)
	return n, cmp.Or(err, c.take())
}

func (c *turnConn) Write(b []byte) (int, error) {
	if c.ended {
		return c.Conn.Write(b)
	}
	c.release()
	n, err := c.Conn.Write(b)
	return n, cmp.Or(err, c.take())
}
