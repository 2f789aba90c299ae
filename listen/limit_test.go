package listen

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/listen/listentest"
)

// serve accepts connections on loopback. The byte x makes a peer known, and is sent back.
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
				buf := make([]byte, 1)
				for {
					if _, err := conn.Read(buf); err != nil {
						return
					}
					if buf[0] == 'x' {
						conn.(interface{ Known() }).Known()
						conn.Write(buf) // if it fails, so does the next read
					}
				}
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

// servedClient connects until the connection is served. On a busy machine its byte may come after the deadline, too.
func servedClient(t *testing.T, addr string) net.Conn {
	t.Helper()
	for begin := time.Now(); ; {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if err = ask(t, conn); err == nil {
			return conn
		}
		conn.Close()
		if time.Since(begin) > time.Minute {
			t.Fatalf("a client is not served: %v", err)
		}
	}
}

// TestSilentConnections: of many connections of unknown peers, few are held at once and none for long, and a
// client of the same address is served. It makes no difference if they send a byte.
func TestSilentConnections(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limits Limits
		sent   string
		left   int
	}{
		"limit":             {Limits{PerAddress: 50, Unknown: time.Hour}, "", 50 - 1},
		"deadline":          {Limits{PerAddress: -1, Unknown: 100 * time.Millisecond}, "", 0},
		"byte and limit":    {Limits{PerAddress: 50, Unknown: time.Hour}, "y", 50 - 1},
		"byte and deadline": {Limits{PerAddress: -1, Unknown: 100 * time.Millisecond}, "y", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr := serve(t, c.limits)
			held := listentest.Hold(t, addr, 1000, c.sent)
			conn := servedClient(t, addr)
			defer conn.Close()
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
			conn    net.Conn
			far     net.Conn
			from    byte
			unknown bool
		}
		limit := rapid.IntRange(1, 3).Draw(t, "limit")
		g := NewGuard(Limits{PerAddress: limit, Unknown: time.Hour})
		var model []entry // open connections, oldest first
		drop := func(i int) { model = append(model[:i], model[i+1:]...) }
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"open", "speak", "know", "close"}).Draw(t, "step") {
			case "open":
				from := rapid.ByteRange(1, 2).Draw(t, "from")
				near, far := net.Pipe()
				open, oldest := 0, -1
				for i, e := range model {
					if e.from == from {
						open++
						if e.unknown && oldest < 0 {
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
						t.Fatal("the oldest unknown connection is still open")
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
			case "know":
				if len(model) == 0 {
					continue
				}
				e := &model[rapid.IntRange(0, len(model)-1).Draw(t, "which")]
				e.conn.(*conn).Known()
				e.conn.(*conn).Known() // a second time has no effect
				e.unknown = false
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

// TestDeadline: the deadline does not end with a byte, but when the peer is known.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGuard(Limits{})
		for _, known := range []bool{false, true} {
			near, far := net.Pipe()
			conn, begin := g.Admit(near), time.Now()
			go far.Write([]byte("x"))
			if _, err := conn.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			if known {
				conn.(interface{ Known() }).Known()
				time.AfterFunc(time.Hour, func() { far.Close() })
			}
			_, err := conn.Read(make([]byte, 1))
			if took := time.Since(begin); err == nil || known && took != time.Hour || !known && took != DefaultUnknown {
				t.Errorf("known %v: ended after %v: %v", known, took, err)
			}
			conn.Close()
		}
	})
}

// TestServer: the header of a request makes a connection known, a part of it does not.
func TestServer(t *testing.T) {
	raw, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := Server(&http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "yes") })})
	go server.Serve(Limit(raw, Limits{PerAddress: 1, Unknown: time.Hour}))
	defer server.Close()
	held := listentest.Hold(t, raw.Addr().String(), 1, "GET / HTTP/1.1\r\n")
	answer, err := http.Get("http://" + raw.Addr().String()) // it takes the place of the other one
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	held.AwaitLeft(t, 0)
	listentest.Hold(t, raw.Addr().String(), 1, "").AwaitLeft(t, 0) // the place is taken
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
		g := NewGuard(Limits{PerAddress: 1, Unknown: time.Hour, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
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
			for e := p.unknown.Front(); e != nil; e = e.Next() {
				e.Value.(*conn).late.Stop()
			}
		}
	})
}

// TestUnknownPeers: a byte of an unknown peer does not keep its place. A new connection replaces it until
// the peer is known.
func TestUnknownPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGuard(Limits{PerAddress: 2})
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
			t.Error("a connection of a known peer was closed")
		}
	})
}
