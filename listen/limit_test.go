package listen

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/listen/listentest"
)

// serve accepts connections on loopback and sends back each byte.
func serve(t *testing.T, limits Limits) string {
	t.Helper()
	raw, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := Limit(raw, limits)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				io.Copy(conn, struct{ io.Reader }{conn})
			}()
		}
	}()
	return raw.Addr().String()
}

// ask sends a byte and waits until it comes back.
func ask(t *testing.T, conn net.Conn) error {
	t.Helper()
	if _, err := conn.Write([]byte("x")); err != nil {
		return err
	}
	_, err := io.ReadFull(conn, make([]byte, 1))
	return err
}

// TestSilentConnections: of many silent connections, few are held at once and none for long, and a
// client of the same address is served.
func TestSilentConnections(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limits Limits
		left   int
	}{
		"limit":    {Limits{PerAddress: 50, FirstByte: time.Hour}, 50 - 1},
		"deadline": {Limits{PerAddress: -1, FirstByte: 100 * time.Millisecond}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr := serve(t, c.limits)
			held := listentest.Hold(t, addr, 2000)
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if err := ask(t, conn); err != nil {
				t.Errorf("a client is not served: %v", err)
			}
			held.AwaitLeft(t, c.left)
			if err := ask(t, conn); err != nil {
				t.Errorf("the client is not served any more: %v", err)
			}
		})
	}
}

// end is one end of a connection of an address.
type end struct {
	net.Conn
	from net.Addr
}

func (e end) RemoteAddr() net.Addr { return e.from }

// TestLikeSimple compares a guard with a list of connections.
func TestLikeSimple(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type entry struct {
			conn   net.Conn
			far    net.Conn
			from   byte
			silent bool
		}
		limit := rapid.IntRange(1, 3).Draw(t, "limit")
		g := NewGuard(Limits{PerAddress: limit, FirstByte: time.Hour})
		var model []entry // open connections, oldest first
		drop := func(i int) { model = append(model[:i], model[i+1:]...) }
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"open", "speak", "close"}).Draw(t, "step") {
			case "open":
				from := rapid.ByteRange(1, 2).Draw(t, "from")
				near, far := net.Pipe()
				open, oldest := 0, -1
				for i, e := range model {
					if e.from == from {
						open++
						if e.silent && oldest < 0 {
							oldest = i
						}
					}
				}
				conn := g.Admit(end{near, &net.TCPAddr{IP: net.IPv4(10, 0, 0, from)}})
				if want := open < limit || oldest >= 0; (conn != nil) != want {
					t.Fatalf("admitted %v, want %v", conn != nil, want)
				}
				if open >= limit && oldest >= 0 {
					if _, err := model[oldest].far.Write([]byte("x")); err == nil {
						t.Fatal("the oldest silent connection is still open")
					}
					drop(oldest)
				}
				if conn != nil {
					model = append(model, entry{conn, far, from, true})
				}
			case "speak":
				if len(model) == 0 {
					continue
				}
				e := &model[rapid.IntRange(0, len(model)-1).Draw(t, "which")]
				go e.far.Write([]byte("x"))
				if _, err := e.conn.Read(make([]byte, 1)); err != nil {
					t.Fatal(err)
				}
				e.silent = false
			case "close":
				if len(model) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(model)-1).Draw(t, "which")
				model[i].conn.Close()
				model[i].conn.Close() // a second time has no effect
				drop(i)
			}
		}
		for _, e := range model {
			e.conn.Close()
		}
		if len(g.peers) != 0 {
			t.Fatalf("%d addresses are left", len(g.peers))
		}
	})
}

// TestFirstByte: the deadline ends with the first byte.
func TestFirstByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGuard(Limits{})
		near, far := net.Pipe()
		conn := g.Admit(near)
		go far.Write([]byte("x"))
		if _, err := conn.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Hour) // virtual
		go far.Write([]byte("y"))
		if _, err := conn.Read(make([]byte, 1)); err != nil {
			t.Errorf("closed after its first byte: %v", err)
		}
		conn.Close()
		near, _ = net.Pipe()
		silent, begin := g.Admit(near), time.Now()
		if _, err := silent.Read(make([]byte, 1)); err == nil || time.Since(begin) != DefaultFirstByte {
			t.Errorf("silence ended after %v: %v", time.Since(begin), err)
		}
	})
}

func TestNetworks(t *testing.T) {
	for addr, want := range map[string]string{
		"10.1.2.3:5": "10.1.2.3/32", "[::ffff:10.1.2.3]:5": "10.1.2.3/32", "[2001:db8:1:2:3:4:5:6]:7": "2001:db8:1:2::/64", "[fe80::1%eth0]:7": "fe80::/64",
	} {
		if got := networkOf(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(addr))); got.String() != want {
			t.Errorf("%s counts as %v, want %s", addr, got, want)
		}
	}
	if got := networkOf(&net.UnixAddr{}); got.IsValid() {
		t.Errorf("a socket counts as %v", got)
	}
}

// TestClosedConnectionsAreLogged: the log names the address and the limit, once a minute.
func TestClosedConnectionsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		g := NewGuard(Limits{PerAddress: 1, FirstByte: time.Hour, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
		admit := func(n int) {
			for range n {
				near, _ := net.Pipe()
				if conn := g.Admit(end{near, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)}}); conn != nil {
					t.Cleanup(func() { conn.Close() })
				}
			}
		}
		admit(10)
		<-time.After(noteEvery) // virtual
		admit(1)
		lines := strings.Split(strings.TrimSpace(logged.String()), "\n")
		for i, closed := range []int{1, 9} {
			if want := fmt.Sprintf("address=10.0.0.1/32 limit=1 closed=%d", closed); len(lines) != 2 || !strings.Contains(lines[i], want) {
				t.Errorf("line %d is not with %q: %q", i, want, lines)
			}
		}
		for _, p := range g.peers {
			for e := p.silent.Front(); e != nil; e = e.Next() {
				e.Value.(*conn).late.Stop()
			}
		}
	})
}

// TestUnknownPeers: a byte of an unknown peer does not keep its place. A new connection replaces it until
// its handshake has ended.
func TestUnknownPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGuard(Limits{PerAddress: 2, Handshake: true})
		admit := func() (net.Conn, net.Conn) {
			near, far := net.Pipe()
			conn := g.Admit(end{near, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}})
			if conn == nil {
				return nil, far
			}
			t.Cleanup(func() { conn.Close() })
			go far.Write([]byte("x"))
			if _, err := conn.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			return conn, far
		}
		_, oldest := admit()
		admit()
		third, _ := admit()
		if third == nil {
			t.Fatal("connections of unknown peers keep others out")
		}
		if _, err := oldest.Read(make([]byte, 1)); err == nil {
			t.Error("the oldest connection is still open")
		}
		third.(interface{ Known() }).Known()
		fourth, _ := admit()
		if fourth == nil {
			t.Fatal("a connection of an unknown peer keeps others out")
		}
		fourth.(interface{ Known() }).Known()
		if fifth, _ := admit(); fifth != nil {
			t.Error("a connection of a known peer was replaced")
		}
		<-time.After(time.Hour) // virtual
		third.(*conn).guard.mu.Lock()
		defer third.(*conn).guard.mu.Unlock()
		if third.(*conn).gone {
			t.Error("a connection was closed as silent after its first byte")
		}
	})
}
