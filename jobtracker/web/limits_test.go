package web

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/listen"
)

// pipes is a listener with in-memory connections, for tests with virtual time.
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

// TestLimits: the server closes the connection of a client that hangs, after a time. A client that
// pauses between requests keeps its connection.
func TestLimits(t *testing.T) {
	const jobs, watch = "GET /v1/jobs HTTP/1.1\r\nHost: jt1\r\n\r\n", "GET /v1/events?job=job_7_0001 HTTP/1.1\r\nHost: jt1\r\n\r\n"
	for name, c := range map[string]struct {
		request string
		pause   time.Duration // until the client reads the answer
		again   time.Duration // then the client sends the request again after this time; 0: it does not
		answers int           // complete answers
		want    string        // part of the answers
	}{
		"next request":          {request: jobs, again: idleWait - time.Second, answers: 2},
		"late request":          {request: jobs, again: idleWait + time.Second, answers: 1},
		"slow reader":           {request: jobs, pause: requestWait, answers: 1},
		"no reader":             {request: jobs, pause: 2*requestWait + time.Second},
		"no reader of events":   {request: watch, pause: lineWait + time.Second},
		"a header without end":  {request: "GET / HTTP/1.1\r\nX: " + strings.Repeat("x", 2*maxHeader), want: "431"},
		"half a header":         {request: "GET / HTTP/1.1\r\nX: ", pause: headerWait + time.Second},
		"a body without an end": {request: "POST /v1/cluster/drains HTTP/1.1\r\nHost: jt1\r\nContent-Length: 9\r\n\r\n{", pause: requestWait + time.Second, want: "timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newFakeLog()
				f := &fake{log: l, id: "jt1"}
				l.setLeader(f)
				if _, err := f.Submit(t.Context(), core.Caller{}, submission("k")); err != nil {
					t.Fatal(err)
				}
				p := &pipes{conns: make(chan net.Conn), ended: make(chan struct{})}
				server, served := NewServer(New(Config{Server: f}), listen.Names{"jt1"}, nil, nil), make(chan error)
				go func() { served <- server.Serve(p) }()
				defer func() {
					server.Close()
					if err := <-served; !errors.Is(err, http.ErrServerClosed) {
						t.Error(err)
					}
				}()
				conn, serverEnd := net.Pipe()
				defer conn.Close()
				p.conns <- serverEnd
				go io.WriteString(conn, c.request) // until the server stops reading
				<-time.After(c.pause)
				conn.SetReadDeadline(time.Now().Add(time.Minute)) // enough for all answers
				in, answers := bufio.NewReader(conn), 0
				var text strings.Builder
				var err error
				for {
					var resp *http.Response
					if resp, err = http.ReadResponse(in, nil); err != nil {
						break
					}
					text.WriteString(resp.Status)
					if _, err = io.Copy(&text, resp.Body); err != nil {
						break
					}
					if answers++; answers == 2 || c.again == 0 {
						break
					}
					conn.SetReadDeadline(time.Time{})
					<-time.After(c.again)
					if _, err = io.WriteString(conn, c.request); err != nil {
						break
					}
				}
				if errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("the connection stays open: %v", err)
				}
				if c.want == "" && answers != c.answers || !strings.Contains(text.String(), c.want) {
					t.Errorf("%d answers, want %d: %.200q, want %q", answers, c.answers, text.String(), c.want)
				}
			})
		})
	}
}
