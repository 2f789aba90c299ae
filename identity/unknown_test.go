package identity

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestEndedConnectionIsLoggedOnce: the log has one line for a connection that its user does not close
// after its end, as a connection that raft keeps for later.
func TestEndedConnectionIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		alice := Peer{Client, "alice"}
		w.issue("ours", alice, time.Hour)
		w.mustConnect(w.load(alice))
		<-time.After(2 * time.Hour) // virtual
		if n := strings.Count(w.logged.String(), "a connection is closed"); n != 1 {
			t.Errorf("the log has %d lines about its end, want 1", n)
		}
	})
}

// TestListenerWithoutRequest: a listener that requests no certificate is refused. Its peer could not
// end the connection when it is denied.
func TestListenerWithoutRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		alice := Peer{Client, "alice"}
		w.issue("ours", alice, day)
		dialer := w.load(alice).Dialer(JobTracker)
		pair, err := w.server.readPair()
		if err != nil {
			t.Fatal(err)
		}
		near, far := net.Pipe()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			server := tls.Server(newBuffered(far), &tls.Config{Certificates: []tls.Certificate{pair}})
			server.Handshake()
			io.Copy(io.Discard, server)
			server.Close()
		}()
		conn, err := Connect(t.Context(), near, dialer)
		if err == nil {
			conn.Close()
		}
		if !errors.Is(err, ErrNotAdmitted) {
			t.Errorf("the error is %v", err)
		}
		<-ended
	})
}

// counted is a connection of package listen.
type counted struct {
	net.Conn
	known *atomic.Int32
}

func (c counted) Known() { c.known.Add(1) }

// TestKnown: the listener tells a connection below TLS when its peer is known.
func TestKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.issue("ours", Peer{Client, "alice"}, day)
		w.issue("others", Peer{Client, "bob"}, day)
		for name, want := range map[string]int32{"alice": 1, "bob": 0} {
			dialer := w.load(Peer{Client, name}).Dialer(JobTracker)
			dialer.VerifyConnection = nil // so that only the listener refuses bob
			var known atomic.Int32
			near, far := net.Pipe()
			w.raw.conns <- counted{newBuffered(far), &known}
			dialed, err := Connect(t.Context(), near, dialer)
			if err != nil {
				t.Fatal(err)
			}
			accepted, err := w.l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			if n := known.Load(); n != want {
				t.Errorf("%s is known %d times, want %d", name, n, want)
			}
			dialed.Close()
			accepted.Close()
		}
	})
}

// TestManyRefusals: peers that are refused do not fill the log, which counts them.
func TestManyRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		refuse := func(n int) {
			for range n {
				if err := w.server.admit(tls.ConnectionState{}, []Role{Client}, nil); err == nil {
					t.Fatal("a peer without a certificate is admitted")
				}
			}
		}
		refuse(10_000)
		<-time.After(time.Minute) // virtual
		refuse(1)
		lines := strings.Split(strings.TrimSpace(w.logged.String()), "\n")
		if last := lines[len(lines)-1]; len(lines) > 100 || !strings.Contains(last, fmt.Sprint(" suppressed=", 10_001-len(lines))) {
			t.Errorf("%d lines, the last one is %q", len(lines), last)
		}
	})
}
