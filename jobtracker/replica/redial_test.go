package replica

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quernmr/quern/identity"
)

// pipes is a listener in memory.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if conn, ok := <-p; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return address("pipe") }

// TestEndedConnectionsAreDialedAgain: raft keeps a connection, which ends in between. The next
// request dials again, and fails only if that fails.
func TestEndedConnectionsAreDialedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		authority, err := identity.OpenAuthority(filepath.Join(dir, "authority"), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		load := func(name string) *identity.Identity {
			to := filepath.Join(dir, name)
			if err := authority.Issue(to, identity.Peer{Role: identity.JobTracker, Name: name}, time.Now(), time.Time{}); err != nil {
				t.Fatal(err)
			}
			id, err := identity.Load(to, identity.JobTracker, nil)
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		raw := make(pipes)
		l := identity.Listen(raw, load("jt2").Server(identity.JobTracker))
		defer l.Close()
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					defer conn.Close()
					io.Copy(conn, conn)
				}()
			}
		}()
		self, errDown, down := load("jt1"), errors.New("it is down"), false
		n := newNetwork(raw, "jt1", func(string, time.Duration) (net.Conn, error) {
			if down {
				return nil, errDown
			}
			near, far := net.Pipe()
			raw <- far
			conn, err := identity.Connect(t.Context(), near, self.Dialer(identity.JobTracker))
			if err != nil {
				return nil, err
			}
			return conn, nil
		})
		conn, err := n.Dial(named("jt2", "pipe"), time.Second)
		if err != nil {
			t.Fatal(err)
		}
		request := func() error {
			if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
				return err
			}
			if _, err := conn.Write([]byte{1}); err != nil {
				return err
			}
			_, err := io.ReadFull(conn, make([]byte, 1))
			return err
		}
		if err := request(); err != nil {
			t.Fatal(err)
		}
		deny := filepath.Join(dir, "jt1", identity.DeniedFile)
		if err := os.WriteFile(deny, []byte("jobtracker jt2\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		<-time.After(5 * time.Second)
		down = true
		for range 2 {
			if err := request(); !errors.Is(err, errDown) {
				t.Errorf("a request to a job tracker that is down: %v", err)
			}
		}
		down = false
		if err := os.Remove(deny); err != nil {
			t.Fatal(err)
		}
		_ = request() // its handshake reads the list, which must then stay the same for some time
		<-time.After(5 * time.Second)
		for range 2 {
			if err := request(); err != nil {
				t.Errorf("a request to a job tracker that is admitted again: %v", err)
			}
		}
		n.mu.Lock()
		if len(n.conns) != 1 {
			t.Errorf("%d connections, want 1", len(n.conns))
		}
		n.mu.Unlock()
		conn.Close()
	})
}
