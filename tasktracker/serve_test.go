package tasktracker

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/tasktracker/attemptlog"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/tasktracker/token"
)

// pipes is a listener with in-memory connections from dial, for tests with virtual time.
type pipes struct {
	conns chan net.Conn
	ended chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.ended); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial() net.Conn {
	clientEnd, serverEnd := net.Pipe()
	p.conns <- serverEnd
	return clientEnd
}

// startServer serves a handler on in-memory connections, in a synctest bubble.
func startServer(t *testing.T, h http.HandlerFunc) *pipes {
	p := &pipes{conns: make(chan net.Conn), ended: make(chan struct{})}
	s := newServer(h, log.New(io.Discard, "", 0))
	served := make(chan error)
	go func() { served <- s.Serve(p) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return p
}

func logFile(t *testing.T, size int) (name string, text []byte) {
	t.Helper()
	name, text = filepath.Join(t.TempDir(), "stderr"), bytes.Repeat([]byte("a line of 16 b.\n"), size/16)
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name, text
}

// ask sends a request and reads the answer's header.
func ask(t *testing.T, conn net.Conn) *http.Response {
	t.Helper()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: t1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReaderSize(conn, 16), nil)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

// TestRoles: with TLS, a route serves one role, even to others with the job's token.
func TestRoles(t *testing.T) {
	tokens, err := token.Open("", nil)
	if err != nil {
		t.Fatal(err)
	}
	tokens.Set(job1, "secret")
	l := newLoop(Config{ID: "t1", Service: Service{Advertise: "here:1", Serve: new(tls.Config)}, Logger: slog.New(slog.DiscardHandler)}, nil, nil, tokens, core.Config{})
	h := l.guard(slog.New(slog.DiscardHandler), identity.TaskTracker, token.ForShuffle, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for role, want := range map[identity.Role]int{
		identity.TaskTracker: http.StatusOK, identity.Client: http.StatusForbidden, identity.JobTracker: http.StatusForbidden, "": http.StatusForbidden,
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.SetPathValue("job", job1.String())
		r.Header.Set("Authorization", "Bearer secret")
		if r.TLS = new(tls.ConnectionState); role != "" {
			uri := &url.URL{Scheme: "quern", Host: string(role), Path: "/name"}
			r.TLS.PeerCertificates = []*x509.Certificate{{URIs: []*url.URL{uri}}}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("a %q gets %d %s, want %d", role, w.Code, w.Body, want)
		}
	}
}

// TestHealthOfHangingLoop: a loop that hangs is not reported as healthy.
func TestHealthOfHangingLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoop(Config{ID: "t1", Service: Service{Advertise: "here:1"}, Logger: slog.New(slog.DiscardHandler)}, nil, nil, new(token.Store), core.Config{})
		conn := startServer(t, l.serveHealth).dial()
		defer conn.Close()
		if response := ask(t, conn); response.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("the answer is %s", response.Status)
		}
	})
}

// TestSlowReaders: a slow reader of a log gets all of it. If a reader stalls, the
// connection and the file are closed.
func TestSlowReaders(t *testing.T) {
	const piece = 32 << 10
	file, want := logFile(t, 16*piece)
	for _, pieces := range []int{16, 3} {
		synctest.Test(t, func(t *testing.T) {
			ended := make(chan time.Duration, 1)
			server := startServer(t, func(w http.ResponseWriter, r *http.Request) {
				began := time.Now()
				attemptlog.Serve(w, r, file, attemptlog.Part{}, answerWait)
				ended <- time.Since(began)
			})
			conn := server.dial()
			defer conn.Close()
			body := ask(t, conn).Body
			var got []byte
			for range pieces {
				<-time.After(answerWait * 5 / 6)
				chunk := make([]byte, piece)
				if _, err := io.ReadFull(body, chunk); err != nil {
					t.Fatalf("after %d bytes: %v", len(got), err)
				}
				got = append(got, chunk...)
			}
			took := <-ended
			switch whole := bytes.Equal(got, want); {
			case pieces == 16 && (!whole || took < 10*answerWait):
				t.Errorf("a slow reader got %d bytes in %v", len(got), took)
			case pieces < 16 && (whole || took > time.Duration(pieces+1)*answerWait):
				t.Errorf("the connection of a reader that stalls after %d bytes is closed after %v", len(got), took)
			}
			if rest, err := io.ReadAll(body); pieces < 16 && err == nil {
				t.Errorf("the connection stays open, with %d more bytes", len(rest))
			}
		})
	}
}

// TestIdleConnections: connections with no request, or an endless one, are closed.
func TestIdleConnections(t *testing.T) {
	file, _ := logFile(t, 64)
	for _, c := range []struct {
		name, request string
		afterGood     bool // send a good request first
		wait          time.Duration
		answer        string
	}{
		{"no request", "", false, headerWait, ""},
		{"half a request", "GET / HTTP/1.1\r\nHost: ", false, headerWait, ""},
		{"a body that does not come", "GET / HTTP/1.1\r\nHost: t1\r\nContent-Length: 9\r\n\r\n", false, headerWait, ""},
		{"nothing after an answer", "", true, idleWait, ""},
		{"half a request after an answer", "GET ", true, headerWait, ""},
		{"a header without end", "GET / HTTP/1.1\r\nHost: t1\r\nX: " + strings.Repeat("x", 2*maxHeader) + "\r\n\r\n", false, 0, "431"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := startServer(t, func(w http.ResponseWriter, r *http.Request) {
					attemptlog.Serve(w, r, file, attemptlog.Part{}, answerWait)
				})
				conn := server.dial()
				defer conn.Close()
				if c.afterGood {
					if _, err := io.ReadAll(ask(t, conn).Body); err != nil {
						t.Fatal(err)
					}
				}
				began := time.Now()
				go io.WriteString(conn, c.request) // until the server stops reading
				answer, err := io.ReadAll(conn)
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took > c.wait+time.Second || took < c.wait {
					t.Errorf("it was closed after %v, want %v", took, c.wait)
				}
				if !strings.Contains(string(answer), c.answer) {
					t.Errorf("the answer is %s", fmt.Sprintf("%.100q", answer))
				}
			})
		})
	}
}
