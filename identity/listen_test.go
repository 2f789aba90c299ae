package identity

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// TestListen: silent peers, also those that fall silent during their handshake, do not delay the
// handshakes of others. A failed handshake is an error of the connection, not of the listener.
func TestListen(t *testing.T) {
	dir := t.TempDir()
	authority, err := OpenAuthority(filepath.Join(dir, "authority"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	load := func(role Role) *Identity {
		to := filepath.Join(dir, string(role))
		if err := authority.Issue(to, Peer{Role: role, Name: "n"}, time.Now(), time.Time{}); err != nil {
			t.Fatal(err)
		}
		id, err := Load(to, role, nil)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	server, client := load(JobTracker), load(TaskTracker)
	raw, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := Listen(raw, server.Server(TaskTracker))
	defer l.Close()
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", raw.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	for range 20 {
		dial()
		halfway := tls.Client(writesOnce{dial()}, client.Dialer(JobTracker))
		go halfway.Handshake()
	}
	for range 20 {
		conn := tls.Client(dial(), client.Dialer(JobTracker))
		go conn.Write([]byte("x"))
		accepted, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(io.LimitReader(accepted, 1)); string(got) != "x" || err != nil {
			t.Errorf("read %q, %v", got, err)
		}
		accepted.Close()
	}
	go dial().Write([]byte("no handshake"))
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := accepted.Read(make([]byte, 1)); err == nil {
		t.Error("a connection without a handshake can be read")
	}
	l.Close()
	if _, err := l.Accept(); err == nil {
		t.Error("a closed listener accepts")
	}
}

// TestListenLimitsWaits: a handshake that gets no turn in time fails, so that it does not wait for ever
// behind others.
func TestListenLimitsWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw := pipeListener{make(chan net.Conn, 1)}
		l := Listen(raw, new(tls.Config)).(*turnListener)
		for range cap(l.turns) {
			l.turns <- struct{}{} // of other handshakes
		}
		near, far := net.Pipe()
		defer near.Close()
		raw.conns <- far
		go tls.Client(near, &tls.Config{InsecureSkipVerify: true}).Handshake()
		begin := time.Now()
		accepted, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took != handshakeWait {
			t.Errorf("the handshake ended after %v, want %v", took, handshakeWait)
		}
		if _, err := accepted.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read: %v", err)
		}
		accepted.Close()
		l.Close()
	})
}

// pipeListener accepts connections in memory.
type pipeListener struct{ conns chan net.Conn }

func (p pipeListener) Accept() (net.Conn, error) {
	if conn, ok := <-p.conns; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (p pipeListener) Close() error {
	close(p.conns)
	return nil
}

func (p pipeListener) Addr() net.Addr { return nil }

// writesOnce is a connection that sends a first message and reads nothing.
type writesOnce struct{ net.Conn }

func (c writesOnce) Read(b []byte) (int, error) {
	for {
		if _, err := c.Conn.Read(b); err != nil {
			return 0, err
		}
	}
}
