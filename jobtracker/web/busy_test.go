package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/wire"
)

// busyFake refuses the first submissions.
type busyFake struct {
	*fake
	refusals int
	blocked  chan struct{} // not nil: submissions wait until it is closed
	entered  chan struct{}
}

func (b *busyFake) Submit(ctx context.Context, caller core.Caller, sub wire.Submission) ([]wire.JobID, error) {
	if b.blocked != nil {
		b.entered <- struct{}{}
		<-b.blocked
	}
	if b.refusals > 0 {
		b.refusals--
		return nil, &admission.Busy{Reason: errors.New("too many jobs of ann")}
	}
	return b.fake.Submit(ctx, caller, sub)
}

// TestBusyCluster: mrsubmit's client waits while the leader answers 429, and then follows its job.
func TestBusyCluster(t *testing.T) {
	files := dfs.Mux{"mem": mem.New(64)}
	if err := files.MkdirAll("mem://t/in"); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		l := newFakeLog()
		f := &fake{log: l, id: "jt1", after: func(wire.Submission) error {
			time.AfterFunc(time.Second, func() { l.setState(wire.JobID{Start: 7, N: 1}, wire.Succeeded) })
			return nil
		}}
		l.setLeader(f)
		p := &pipes{conns: make(chan net.Conn), ended: make(chan struct{})}
		server, served := NewServer(New(Config{Server: &busyFake{fake: f, refusals: 3}}), nil), make(chan error)
		go func() { served <- server.Serve(p) }()
		c := NewClient([]string{"jt1:1"})
		c.http.Transport.(*http.Transport).DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			near, far := net.Pipe()
			select {
			case p.conns <- far:
				return near, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		var text bytes.Buffer
		start := time.Now()
		sub := &wire.Submission{Plan: wire.Plan{Jobs: []wire.JobPlan{{Name: "wc", Inputs: []wire.InputPlan{{Paths: []string{"mem://t/in"}}}, Output: "mem://t/out"}}}}
		code := client.Run(t.Context(), client.Config{Cluster: c, FS: files, Staging: "mem://t/staging", Out: &text}, sub)
		if took := time.Since(start); code != 0 || took < 3*admission.RetryAfter || took > 6*admission.RetryAfter+2*time.Second {
			t.Errorf("exit code %d after %v", code, took)
		}
		if want := "waiting until the cluster accepts the job: submit: not accepted for now: too many jobs of ann\naccepted after "; !strings.Contains(text.String(), want) {
			t.Errorf("output %q, want %q", text.String(), want)
		}
		c.Close()
		server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}

// TestTooManyRequests: a request beyond a limit gets 429 with Retry-After, and other kinds of
// requests are served meanwhile.
func TestTooManyRequests(t *testing.T) {
	l := newFakeLog()
	f := &fake{log: l, id: "jt1"}
	l.setLeader(f)
	b := &busyFake{fake: f, blocked: make(chan struct{}), entered: make(chan struct{}, 1)}
	h := New(Config{Server: b, Limits: Limits{Submissions: 1, Watches: 1, Requests: 1}})
	send := func(method, path string) *httptest.ResponseRecorder {
		frame, err := wire.Append(nil, &wire.Submission{Key: "k", Staging: "mem://s", Plan: wire.Plan{Jobs: make([]wire.JobPlan, 1)}})
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(method, path, bytes.NewReader(frame))
		r.Header.Set("Content-Type", frameType)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	first := make(chan *httptest.ResponseRecorder)
	go func() { first <- send("POST", "/v1/submissions") }()
	<-b.entered
	w := send("POST", "/v1/submissions")
	answer, _ := io.ReadAll(w.Body)
	e := new(Error)
	if err := json.Unmarshal(answer, e); err != nil || w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "1" || !errors.Is(e, admission.ErrBusy) || !e.Untouched ||
		e.Text != "requests that the job tracker serves: at most 1 at a time (submissions)" {
		t.Errorf("the second submission: %d %v %s", w.Code, w.Header(), answer)
	}
	for _, path := range []string{"/v1/jobs", "/healthz"} {
		if w := send("GET", path); w.Code != http.StatusOK {
			t.Errorf("GET %s meanwhile: %d %s", path, w.Code, w.Body)
		}
	}
	close(b.blocked)
	if w := <-first; w.Code != http.StatusOK {
		t.Errorf("the first submission: %d %s", w.Code, w.Body)
	}
	b.blocked, b.refusals = nil, 1
	if w := send("POST", "/v1/submissions"); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "5" {
		t.Errorf("the leader is busy: %d %v %s", w.Code, w.Header(), w.Body)
	}
	if w := send("POST", "/v1/submissions"); w.Code != http.StatusOK {
		t.Errorf("a submission after the others: %d %s", w.Code, w.Body)
	}
}

// TestKindsOfRequests: each route has its limit.
func TestKindsOfRequests(t *testing.T) {
	c := newCounters(Limits{Submissions: 1, Watches: 2, Requests: 3})
	for _, r := range (&handler{}).routes() {
		want := 3
		switch r.pattern {
		case "POST /v1/submissions":
			want = 1
		case "GET /v1/watch":
			want = 2
		case "GET /v1/stream", "GET /healthz":
			want = 0
		}
		got := 0
		if x := c.of(r.pattern); x != nil {
			got = x.limit
		}
		if got != want {
			t.Errorf("%s: limit %d, want %d", r.pattern, got, want)
		}
	}
}

// TestWatchWaits: a watch that is refused for now is tried again.
func TestWatchWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := &Error{Code: codeBusy, RetrySeconds: 2}
		start := time.Now()
		if !pauseIfBusy(t.Context(), busy) || time.Since(start) < 2*time.Second || time.Since(start) > 4*time.Second {
			t.Errorf("it waited for %v", time.Since(start))
		}
		if pauseIfBusy(t.Context(), &Error{Code: codeTimeout}) || pauseIfBusy(t.Context(), io.EOF) {
			t.Error("it waits after another error")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if pauseIfBusy(ctx, busy) {
			t.Error("it waited although nothing waits for the answer")
		}
	})
}

// TestRetryAfterIsBounded: the answer of another process makes no client wait for ever, or panic.
func TestRetryAfterIsBounded(t *testing.T) {
	for _, seconds := range []int{math.MinInt, 0, 1, math.MaxInt64/int(time.Second) + 1, math.MaxInt} {
		if wait, busy := (&Error{Code: codeBusy, RetrySeconds: seconds}).RetryAfter(); !busy || wait < time.Second || wait > time.Hour {
			t.Errorf("%d seconds: %v, %v", seconds, wait, busy)
		}
	}
}
