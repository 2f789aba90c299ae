package identity

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Times of living connections.
const (
	// recheckPeriod is the time between two checks of living connections. Each check reads changed
	// files, and verifies again the certificates that may no longer be admitted.
	recheckPeriod = 2 * time.Second

	// verifyPeriod is the longest time until a certificate is verified again although no file has
	// changed, as the authority may have expired.
	verifyPeriod = 5 * time.Minute

	// A connection ends between minAge and maxAge: at a random time, so that the peers of a daemon do
	// not dial at once. The dialing side ends it in the first half of this time, the listening side
	// later. So the side that sends requests knows first, and does not send one too late.
	minAge = 12 * time.Hour
	maxAge = 24 * time.Hour
)

// ErrTooOld reports a connection that has ended because of its age. Dial again.
var ErrTooOld = errors.New("the connection has reached its maximum age")

// peerConn is a connection below TLS. When its peer is no longer admitted, or at its maximum age, its
// Identity closes it, and reads and writes return the reason.
type peerConn struct {
	net.Conn
	began  time.Time
	age    time.Duration // at which it ends
	reason atomic.Pointer[error]

	// Set during the handshake, and not changed later. Close may run beside the handshake.
	owner    atomic.Pointer[Identity] // has the configuration of the handshake; nil: not of this package
	admitted []Role
	state    tls.ConnectionState // only the certificate of the peer

	verified time.Time // begin of the last verification. Only one recheck at a time uses it
	closed   bool      // owner.living.mu protects it
}

func newPeerConn(raw net.Conn, dialed bool) *peerConn {
	half := (maxAge - minAge) / 2
	age := minAge + rand.N(half)
	if !dialed {
		age += half
	}
	now := time.Now()
	return &peerConn{Conn: raw, began: now, verified: now, age: age}
}

type peerConnKey struct{}

// withConn returns the context of a handshake over c.
func withConn(ctx context.Context, c *peerConn) context.Context {
	return context.WithValue(ctx, peerConnKey{}, c)
}

// claiming makes id the owner of each connection of a handshake with config.
func (id *Identity) claiming(config *tls.Config, admitted []Role) *tls.Config {
	claim := func(handshake context.Context) {
		if c, ok := handshake.Value(peerConnKey{}).(*peerConn); ok {
			c.admitted = admitted
			c.owner.Store(id)
		}
	}
	if get := config.GetCertificate; get != nil {
		config.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			claim(hello.Context())
			return get(hello)
		}
	}
	if get := config.GetClientCertificate; get != nil {
		config.GetClientCertificate = func(request *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			claim(request.Context())
			return get(request)
		}
	}
	return config
}

// Connect does the handshake of a dialed connection within ctx. If config is the Dialer of an
// Identity, the connection ends when its peer is no longer admitted. A listener that requests no
// certificate is refused: it is not of this package, and its connection would have no owner. After an
// error, raw is closed.
func Connect(ctx context.Context, raw net.Conn, config *tls.Config) (*tls.Conn, error) {
	c := newPeerConn(raw, true)
	conn := tls.Client(c, config)
	ctx, cancel := context.WithTimeout(ctx, handshakeWait)
	defer cancel()
	if err := conn.HandshakeContext(withConn(ctx, c)); err != nil {
		conn.Close()
		return nil, err
	}
	if c.owner.Load() == nil && config.GetClientCertificate != nil {
		conn.Close()
		return nil, fmt.Errorf("%w: the listener at %v requests no certificate", ErrNotAdmitted, raw.RemoteAddr())
	}
	c.watch(conn)
	return conn, nil
}

// Secure makes a transport use TLS as Connect does.
func Secure(t *http.Transport, config *tls.Config) {
	t.DialTLSContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		dial := t.DialContext
		if dial == nil {
			dial = new(net.Dialer).DialContext
		}
		raw, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		conn, err := Connect(ctx, raw, config)
		if err != nil {
			return nil, err // not conn: a nil *tls.Conn would make a non-nil net.Conn
		}
		return conn, nil
	}
}

// Ended reports whether a connection of Connect has been closed because of its age, or because its
// peer is no longer admitted.
func Ended(conn net.Conn) bool {
	secure, ok := conn.(*tls.Conn)
	if !ok {
		return false
	}
	c, ok := secure.NetConn().(*peerConn)
	return ok && c.reason.Load() != nil
}

// Read implements net.Conn.
func (c *peerConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	return n, c.explain(err)
}

// Write implements net.Conn.
func (c *peerConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	return n, c.explain(err)
}

// explain returns the reason for which the connection was closed instead of an error.
func (c *peerConn) explain(err error) error {
	if err == nil {
		return nil
	}
	if reason := c.reason.Load(); reason != nil {
		return *reason
	}
	return err
}

// Close implements net.Conn.
func (c *peerConn) Close() error {
	if owner := c.owner.Load(); owner != nil {
		l := &owner.living
		l.mu.Lock()
		delete(l.conns, c)
		c.closed = true
		if len(l.conns) == 0 && l.stop != nil {
			close(l.stop)
			l.stop = nil
		}
		l.mu.Unlock()
	}
	return c.Conn.Close()
}

// end closes the connection for a reason.
func (c *peerConn) end(reason error) {
	c.reason.CompareAndSwap(nil, &reason)
	c.Conn.Close()
}

// living are the connections of an Identity after successful handshakes.
type living struct {
	mu    sync.Mutex
	conns map[*peerConn]bool
	stop  chan struct{} // closed when there are no connections any more; nil: recheck does not run
}

// watch adds a connection after its handshake. The goroutine of recheck runs while there are
// connections.
func (c *peerConn) watch(conn *tls.Conn) {
	owner := c.owner.Load()
	if owner == nil {
		return
	}
	c.state = tls.ConnectionState{PeerCertificates: conn.ConnectionState().PeerCertificates[:1]}
	l := &owner.living
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.closed {
		return
	}
	if l.conns == nil {
		l.conns = make(map[*peerConn]bool)
	}
	l.conns[c] = true
	if l.stop == nil {
		l.stop = make(chan struct{})
		go owner.recheck(l.stop)
	}
}

// list returns all connections.
func (l *living) list() []*peerConn {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]*peerConn, 0, len(l.conns))
	for c := range l.conns {
		all = append(all, c)
	}
	return all
}

// recheck closes connections that must end, until it is stopped.
func (id *Identity) recheck(stop <-chan struct{}) {
	tick := time.NewTicker(recheckPeriod)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-stop:
			return
		}
		id.current() // reads changed files
		for _, c := range id.living.list() {
			if c.reason.Load() != nil {
				continue // its user may keep it until the next request, as raft does
			}
			if err := id.mustEnd(c); err != nil {
				c.end(err)
			}
		}
	}
}

// mustEnd returns the reason for which a connection must end now, if there is one.
func (id *Identity) mustEnd(c *peerConn) error {
	cert, now := c.state.PeerCertificates[0], time.Now()
	if id.trustChangedAfter(c.verified) || id.now().After(cert.NotAfter) || now.Sub(c.verified) >= verifyPeriod {
		c.verified = now
		if err := id.checkPeer(c.state, c.admitted); err != nil {
			id.log.Warn("a connection is closed: its peer is no longer admitted", "addr", c.RemoteAddr(), "serial", serialText(cert.SerialNumber), "error", err)
			id.tell(c.state, c, err, 0, true)
			return err
		}
	}
	if now.Sub(c.began) >= c.age {
		return fmt.Errorf("%w, %v", ErrTooOld, c.age.Round(time.Minute))
	}
	return nil
}

// trustChangedAfter reports whether the authorities or the deny list have changed since a time.
func (id *Identity) trustChangedAfter(at time.Time) bool {
	id.mu.Lock()
	defer id.mu.Unlock()
	return !id.trustChanged.Before(at)
}

// serialText returns a serial number as openssl prints it.
func serialText(serial *big.Int) string { return fmt.Sprintf("%X", serial) }
