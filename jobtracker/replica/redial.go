package replica

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/quernmr/quern/identity"
)

func dialTLS(addr string, d time.Duration, config *tls.Config) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	raw, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	conn, err := identity.Connect(ctx, raw, config)
	if err != nil {
		return nil, err // not conn: a nil *tls.Conn would make a non-nil net.Conn
	}
	return conn, nil
}

// dialAgain dials a job tracker, and again when the connection has ended.
func (n *network) dialAgain(dial func() (net.Conn, error)) (net.Conn, error) {
	conn, err := dial()
	if err != nil {
		return nil, err
	}
	if conn, err = n.track(conn); err != nil {
		return nil, err
	}
	conn.(*tracked).dial = dial
	return conn, nil
}

// redial replaces a connection that has ended because of its age. Raft keeps connections for later
// requests, and a request over an ended one would fail.
func (c *tracked) redial() error {
	if c.dial == nil || !identity.Ended(c.Conn) {
		return nil
	}
	conn, err := c.dial()
	if err != nil {
		return err
	}
	c.Close()
	if _, err := c.network.track(conn); err != nil {
		return err
	}
	c.Conn = conn
	return nil
}
