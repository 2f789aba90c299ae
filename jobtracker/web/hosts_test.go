package web

import (
	"bufio"
	"bytes"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/quernmr/quern/audit"
	"github.com/quernmr/quern/listen"
	"github.com/quernmr/quern/wire"
)

// TestForeignHosts: every route refuses a request for a host name that is not the job tracker's, as a
// browser sends it after DNS rebinding. The error names the host and the flag.
func TestForeignHosts(t *testing.T) {
	f, c := startOne(t)
	if _, err := c.Submit(t.Context(), submission("k1")); err != nil {
		t.Fatal(err)
	}
	var logged bytes.Buffer
	var events []audit.Event
	server := NewServer(New(Config{Server: f, Voters: f}), listen.Names{"jt1:7400"}, slog.New(slog.NewTextHandler(&logged, nil)), func(e audit.Event) { events = append(events, e) })
	ask := func(pattern, host string) *httptest.ResponseRecorder {
		method, path, _ := strings.Cut(pattern, " ")
		r := httptest.NewRequest(method, "http://"+host+strings.ReplaceAll(path, "{id}", "job_7_0001"), strings.NewReader("{}"))
		w := httptest.NewRecorder()
		server.Handler.ServeHTTP(w, r)
		return w
	}
	patterns := []string{"GET /none", "OPTIONS /v1/jobs", "HEAD /v1/jobs"}
	for _, route := range new(handler).routes() {
		patterns = append(patterns, route.pattern)
	}
	for _, pattern := range patterns {
		w := ask(pattern, "rebound.example:7400")
		if text := w.Body.String(); w.Code != http.StatusForbidden || !strings.Contains(text, "rebound.example:7400") || !strings.Contains(text, listen.NameFlag) {
			t.Errorf("%s: %d %s", pattern, w.Code, text)
		}
	}
	for range 200 {
		ask("GET /many", "rebound.example:7400")
		patterns = append(patterns, "GET /many")
	}
	if n := strings.Count(logged.String(), "a request is refused"); n < 10 || n > 100 { // a few each minute
		t.Errorf("%d of %d refusals are logged", n, len(patterns))
	}
	for i, e := range events {
		_, path, _ := strings.Cut(patterns[min(i, len(patterns)-1)], " ")
		if e.Outcome != audit.Refused || e.Who != "unidentified" || e.From == "" || e.On != strings.ReplaceAll(path, "{id}", "job_7_0001") || !strings.Contains(e.Reason, "rebound.example") {
			t.Errorf("the audit log has %+v", e)
		}
	}
	if len(events) != len(patterns) {
		t.Errorf("the audit log has %d refusals, want %d", len(events), len(patterns))
	}
	for _, host := range []string{"jt1:7400", "localhost:7400", "10.0.0.1:7400"} {
		if w := ask("GET /v1/jobs", host); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", host, w.Code, w.Body)
		}
	}
	if job, err := c.Job(t.Context(), wire.JobID{Start: 7, N: 1}); err != nil || job.State != "running" {
		t.Errorf("%+v, %v", job, err)
	}
}

// TestStreamForForeignHost: a task tracker that dials another name learns why it is refused.
func TestStreamForForeignHost(t *testing.T) {
	near, far := net.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		r, err := http.ReadRequest(bufio.NewReader(far))
		if err != nil {
			t.Error(err)
			return
		}
		w := httptest.NewRecorder()
		NewServer(New(Config{}), nil, nil, nil).Handler.ServeHTTP(w, r)
		w.Result().Write(far)
		far.Close()
	}()
	if _, err := upgrade(near, "alias:7400"); err == nil || !strings.Contains(err.Error(), listen.NameFlag) {
		t.Errorf("the error is %v", err)
	}
	<-served
}
