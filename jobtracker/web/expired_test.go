package web

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
)

// TestExpiredStream: a task tracker's stream and a user's watch end soon after their certificate has
// expired, although they send and receive without pause.
func TestExpiredStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, valid := t.TempDir(), time.Hour
		authority, err := identity.OpenAuthority(filepath.Join(dir, "authority"), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		load := func(role identity.Role, valid time.Duration) *identity.Identity {
			to := filepath.Join(dir, string(role))
			if err := authority.Issue(to, identity.Peer{Role: role, Name: "x"}, time.Now(), time.Now().Add(valid)); err != nil {
				t.Fatal(err)
			}
			id, err := identity.Load(to, role, nil)
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		log, attached := newFakeLog(), make(chan error, 1)
		f := &fake{log: log, id: "jt1", serve: func(conn *wire.Conn) error {
			for {
				m, err := conn.Receive()
				if err == nil {
					err = conn.Send(m)
				}
				if err != nil {
					attached <- err
					return err
				}
			}
		}}
		log.setLeader(f)
		if _, err := f.Submit(t.Context(), core.Caller{Name: "x"}, submission("k")); err != nil {
			t.Fatal(err)
		}
		p := &pipes{conns: make(chan net.Conn), ended: make(chan struct{})}
		l := identity.Listen(p, load(identity.JobTracker, 24*time.Hour).Server(identity.TaskTracker, identity.Client))
		server, served := &http.Server{Handler: New(Config{Server: f, Identified: true})}, make(chan error)
		go func() { served <- server.Serve(l) }()
		defer func() {
			server.Close()
			if err := <-served; !errors.Is(err, http.ErrServerClosed) {
				t.Error(err)
			}
		}()
		begin := time.Now()
		connect := func(role identity.Role) net.Conn {
			near, far := net.Pipe()
			p.conns <- far
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			conn, err := identity.Connect(ctx, near, load(role, valid).Dialer(identity.JobTracker))
			if err != nil {
				t.Fatal(err)
			}
			return conn
		}
		checkEnd := func(what string) {
			if lived := time.Since(begin); lived < valid || lived > valid+5*time.Second {
				t.Errorf("%s lived for %v, its certificate for %v", what, lived, valid)
			}
		}

		conn := connect(identity.Client)
		go io.WriteString(conn, "GET /v1/events?job=job_7_0001 HTTP/1.1\r\nHost: jt1\r\n\r\n")
		watched := make(chan struct{})
		go func() {
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err == nil {
				_, err = io.Copy(io.Discard, answer.Body)
			}
			if err == nil {
				t.Error("a watch ends without an error")
			}
			checkEnd("a watch")
			close(watched)
		}()

		raw := connect(identity.TaskTracker)
		in, err := upgrade(raw, "jt1")
		if err != nil {
			t.Fatal(err)
		}
		stream := wire.NewConn(in, raw, raw.Close)
		for time.Since(begin) < valid+time.Minute {
			if err = stream.Send(&wire.Hello{Tracker: "x"}); err == nil {
				_, err = stream.Receive()
			}
			if err != nil {
				break
			}
			<-time.After(time.Second)
		}
		checkEnd("a stream")
		stream.Close()
		conn.Close()
		if err := <-attached; !errors.Is(err, identity.ErrNotAdmitted) || !strings.Contains(err.Error(), "expired") {
			t.Errorf("the stream ended with %v", err)
		}
		<-watched
	})
}
