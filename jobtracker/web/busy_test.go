package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
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
	"github.com/quernmr/quern/listen"
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
		return nil, &admission.Busy{Reason: errors.New("too many jobs of ann"), Limit: "user-jobs", Max: 3}
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
		c := pipeClient(t, New(Config{Server: &busyFake{fake: f, refusals: 3}}))
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
		case "GET /v1/events":
			want = 2
		case "GET /v1/stream", "GET /healthz", "GET /metrics", "GET /debug/pprof/":
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

// TestBusyWaiter: a client pauses after a refusal for now, until its patience is over.
func TestBusyWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var notes []string
		c := &Client{Note: func(line string) { notes = append(notes, line) }}
		busy := &Error{Code: codeBusy, RetrySeconds: 2, Text: "too many requests"}
		start, w := time.Now(), busyWaiter{c: c, patience: 10 * time.Second}
		if again, err := w.again(t.Context(), busy); !again || err != nil || time.Since(start) < 2*time.Second || time.Since(start) > 4*time.Second {
			t.Errorf("%v, %v after %v", again, err, time.Since(start))
		}
		for _, other := range []error{nil, &Error{Code: codeTimeout}, io.EOF} {
			if again, err := w.again(t.Context(), other); again || err != nil {
				t.Errorf("after %v: %v, %v", other, again, err)
			}
		}
		for again := true; again && time.Since(start) < time.Hour; {
			var err error
			if again, err = w.again(t.Context(), busy); !again && (!errors.Is(err, admission.ErrBusy) || !strings.HasPrefix(err.Error(), "refused for 1")) {
				t.Errorf("its patience is over: %v", err)
			}
		}
		if took := time.Since(start); took < 10*time.Second || took > 14*time.Second || len(notes) != 1 {
			t.Errorf("it waited for %v, with the notes %q", took, notes)
		}
		for w := (busyWaiter{c: c}); time.Since(start) < 30*time.Minute; {
			if again, err := w.again(t.Context(), busy); !again || err != nil {
				t.Fatal(again, err)
			}
		}
		if len(notes) < 29 || len(notes) > 31 || notes[0] != "waiting until the cluster accepts the request: too many requests" {
			t.Errorf("%d notes in half an hour, the first one is %q", len(notes), notes[0])
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("got signal interrupt"))
		if again, err := w.again(ctx, busy); again || err == nil {
			t.Errorf("it waited although nothing waits for the answer: %v", err)
		}
	})
}

// TestBusyQueries: every request of a client waits for a busy cluster, once with a note. A request
// ends with a clear error.
func TestBusyQueries(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, c *Client) error{
		"cluster": func(ctx context.Context, c *Client) error { _, err := c.Cluster(ctx); return err },
		"status":  func(ctx context.Context, c *Client) error { _, err := c.Job(ctx, job1); return err },
		"kill":    func(ctx context.Context, c *Client) error { return c.Kill(ctx, job1, "no longer needed") },
		"wait": func(ctx context.Context, c *Client) (last error) {
			for _, err := range c.Watch(ctx, []wire.JobID{job1}) {
				last = err
			}
			return last
		},
	} {
		for _, refusals := range []int{3, math.MaxInt} {
			t.Run(fmt.Sprint(name, refusals), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { busyQuery(t, call, refusals, name == "wait") })
			})
		}
	}
}

func busyQuery(t *testing.T, call func(ctx context.Context, c *Client) error, refusals int, endless bool) {
	l := newFakeLog()
	f := &fake{log: l, id: "jt1"}
	l.setLeader(f)
	if _, err := f.Submit(t.Context(), core.Caller{}, submission("k")); err != nil {
		t.Fatal(err)
	}
	l.setState(job1, wire.Succeeded)
	h, refused := New(Config{Server: f}), 0
	c := pipeClient(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refused < refusals {
			refused++
			reply(w, http.StatusTooManyRequests, problemType, &Error{Code: codeBusy, RetrySeconds: 1, Text: "too many requests"})
			return
		}
		h.ServeHTTP(w, r)
	}))
	var notes []string
	c.Note = func(line string) { notes = append(notes, line) }
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Minute, errors.New("the user has stopped waiting"))
	defer cancel()
	start := time.Now()
	err := call(ctx, c)
	took := time.Since(start)
	switch {
	case refusals == 3:
		if err != nil && !errors.Is(err, admission.ErrJobEnded) || took < 3*time.Second || took > 7*time.Second { // it has ended
			t.Errorf("%v after %v", err, took)
		}
	case endless:
		if err == nil || !strings.Contains(err.Error(), "the user has stopped waiting") || took < 20*time.Minute {
			t.Errorf("%v after %v", err, took)
		}
		notes = notes[:1] // one a minute
	case !errors.Is(err, admission.ErrBusy) || !strings.Contains(err.Error(), "refused for 3") || took < c.Patience:
		t.Errorf("%v after %v", err, took)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "waiting until the cluster accepts the request: too many requests") {
		t.Errorf("notes %q", notes)
	}
}

// pipeClient makes a client of a server with in-memory connections.
func pipeClient(t *testing.T, h http.Handler) *Client {
	p := &pipes{conns: make(chan net.Conn), ended: make(chan struct{})}
	server, served := NewServer(h, listen.Names{"jt1"}, nil, nil), make(chan error)
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
	t.Cleanup(func() {
		c.Close()
		server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return c
}

// TestRetryAfterIsBounded: the answer of another process makes no client wait for ever, or panic.
func TestRetryAfterIsBounded(t *testing.T) {
	for _, seconds := range []int{math.MinInt, 0, 1, math.MaxInt64/int(time.Second) + 1, math.MaxInt} {
		if wait, busy := (&Error{Code: codeBusy, RetrySeconds: seconds}).RetryAfter(); !busy || wait < time.Second || wait > time.Hour {
			t.Errorf("%d seconds: %v, %v", seconds, wait, busy)
		}
	}
}

// TestRefusalsAreLogged: the log has one line when refusals for a limit begin and one when they have
// ended, however many requests are refused.
func TestRefusalsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newFakeLog()
		f := &fake{log: l, id: "jt1"}
		l.setLeader(f)
		var text bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		b := &busyFake{fake: f, refusals: 100}
		h := New(Config{Server: b, Logger: logger, Limits: Limits{Requests: 7}})
		frame, err := wire.Append(nil, &wire.Submission{Key: "k", Staging: "mem://s", Plan: wire.Plan{Jobs: make([]wire.JobPlan, 1)}})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			for range 50 {
				r := httptest.NewRequest("POST", "/v1/submissions", bytes.NewReader(frame))
				r.Header.Set("Content-Type", frameType)
				h.ServeHTTP(httptest.NewRecorder(), r)
				<-time.After(10 * time.Second)
			}
			<-time.After(time.Minute)
			synctest.Wait()
		}
		want := strings.Repeat(`level=WARN msg="requests are refused for now" limit=user-jobs value=3 first="too many jobs of ann"
level=INFO msg="requests are no longer refused" limit=user-jobs refused=50 for=8m10s
`, 2)
		if text.String() != want {
			t.Errorf("log\n%s, want\n%s", text.String(), want)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/v1/cluster", nil))
		if want := `"limits":[{"name":"jobs","used":4,"max":9},{"name":"requests","used":1,"max":7}]`; !strings.Contains(w.Body.String(), want) {
			t.Errorf("GET /v1/cluster: %s, want %s", w.Body, want)
		}
	})
}
