package web

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/jobtracker"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/wire"
)

var _ JobTracker = (*jobtracker.Server)(nil)

// serveReal runs a single job tracker with its HTTP interface.
func serveReal(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	jt := jobtracker.New(jobtracker.Config{
		ID: "jt1", Addr: addr, Log: jobtracker.NewMemoryLog(), FS: dfs.Mux{"mem": mem.New(1 << 20)},
		Staging: "mem://t/staging",
	})
	ctx, cancel := context.WithCancel(context.Background())
	ran, served := make(chan error, 1), make(chan error, 1)
	server := NewServer(New(Config{Server: jt}), nil, nil, nil)
	go func() { ran <- jt.Run(ctx) }()
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		cancel()
		server.Close()
		if err := errors.Join(<-ran, <-served); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return addr
}

// TestRealJobTracker: submit, list and kill a job without a task tracker.
func TestRealJobTracker(t *testing.T) {
	addr := serveReal(t)
	c := testClient(t, addr)
	sub := submission("k")
	sub.Staging = "mem://t/staging/k"
	ids, err := c.Submit(t.Context(), sub)
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.Submit(t.Context(), sub)
	if err != nil || len(ids) != 1 || len(again) != 1 || again[0] != ids[0] {
		t.Fatalf("%v and %v, %v", ids, again, err)
	}
	if _, err := c.Submit(t.Context(), wire.Submission{Key: "x"}); !errors.Is(err, admission.ErrBadSubmission) {
		t.Errorf("bad submission: %v", err)
	}
	cluster, err := c.Cluster(t.Context())
	if err != nil || !cluster.IsLeader || cluster.Leader != "jt1" || cluster.Addr != addr || cluster.Jobs != 1 || cluster.Staging != "mem://t/staging" {
		t.Errorf("%+v, %v", cluster, err)
	}
	jobs, err := c.Jobs(t.Context(), core.Query{})
	if err != nil || len(jobs) != 1 || jobs[0].ID != ids[0].String() {
		t.Errorf("%+v, %v", jobs, err)
	}
	if attempts, err := c.Attempts(t.Context(), ids[0]); err != nil || len(attempts.Items) != 0 || len(attempts.Token) != 64 {
		t.Errorf("%+v, %v", attempts, err)
	}
	if _, err := c.Attempts(t.Context(), wire.JobID{Start: 1, N: 1}); !errors.Is(err, admission.ErrUnknownJob) {
		t.Errorf("attempts of an unknown job: %v", err)
	}
	killed := false
	for statuses, err := range c.Watch(t.Context(), ids) {
		if err != nil {
			t.Fatal(err)
		}
		if killed = statuses[0].State == wire.Stopping; killed {
			break // its cleanup would need a tracker
		}
		if !strings.Contains(statuses[0].WaitReason, "tracker") {
			t.Errorf("it waits %q", statuses[0].WaitReason)
		}
		if err := c.Kill(t.Context(), ids[0], "enough"); err != nil {
			t.Error(err)
		}
	}
	if !killed {
		t.Error("the job was not killed")
	}
}

// TestRealStream: the core answers a tracker over HTTP.
func TestRealStream(t *testing.T) {
	addr := serveReal(t)
	conn, err := DialStream(t.Context(), addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.Send(&wire.Hello{Version: wire.Version, Tracker: "t1", Process: 1, Host: "h", Addr: "h:1", MapSlots: 1, ReduceSlots: 1}); err != nil {
		t.Fatal(err)
	}
	m, err := conn.Receive()
	if welcome, ok := m.(*wire.Welcome); err != nil || !ok || welcome.Incarnation == 0 {
		t.Fatalf("%+v, %v", m, err)
	}
	old, err := DialStream(t.Context(), addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	if err := old.Send(&wire.Hello{Version: wire.Version + 1, Tracker: "t2", Process: 2}); err != nil {
		t.Fatal(err)
	}
	m, err = old.Receive()
	if refuse, ok := m.(*wire.Refuse); err != nil || !ok || !strings.Contains(refuse.Reason, "version") {
		t.Errorf("%+v, %v", m, err)
	}
}
