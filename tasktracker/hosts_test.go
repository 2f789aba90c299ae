package tasktracker

import (
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/audit"
	"github.com/quernmr/quern/listen"
	"github.com/quernmr/quern/listen/listentest"
)

// TestForeignHosts: all routes refuse a request for a host name that is not the tracker's, as a
// browser sends it after DNS rebinding.
func TestForeignHosts(t *testing.T) {
	events := make(chan audit.Event, 100)
	record := func(e audit.Event) { events <- e }
	l := startUnregistered(t, Config{ID: "t1", Dir: t.TempDir(), Service: Service{Names: listen.Names{"tt1:7410"}, Audit: record}})
	l.connect(1)
	for host, refused := range map[string]bool{"rebound.example": true, "tt1:9": false, "localhost": false, l.addr: false} {
		for _, path := range []string{"/healthz", "/shuffle/job_1_0001/0/0/0", "/logs/job_1_0001/attempt_1_0001_m_000000_0/stdout", "/none"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.addr+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = host
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(answer.Body)
			answer.Body.Close()
			names := strings.Contains(string(text), host) && strings.Contains(string(text), listen.NameFlag)
			if (answer.StatusCode == http.StatusForbidden && names) != refused {
				t.Errorf("%s for %s: %s %s", path, host, answer.Status, text)
			}
			if !refused {
				continue
			}
			e := <-events
			for e.Action != "request for another host" { // the others have no token
				e = <-events
			}
			if e.Who != "unidentified" || e.From == "" || e.On != path || e.Outcome != audit.Refused || !strings.Contains(e.Reason, host) {
				t.Errorf("the audit log has %+v", e)
			}
		}
	}
}

// TestSilentConnections: connections that send nothing or a byte are closed, and the tracker answers others.
func TestSilentConnections(t *testing.T) {
	l := startUnregistered(t, Config{ID: "t1", Dir: t.TempDir(), Service: Service{Limits: listen.Limits{PerAddress: 50, Unknown: 100 * time.Millisecond}}})
	l.connect(1)
	for _, sent := range []string{"", "G"} {
		held := listentest.Hold(t, l.addr, 1000, sent)
		answer, err := http.Get("http://" + l.addr + "/healthz")
		for begin := time.Now(); err != nil && time.Since(begin) < deadline; { // on a busy machine its header may be late, too
			answer, err = http.Get("http://" + l.addr + "/healthz")
		}
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		held.AwaitLeft(t, 0)
	}
}

// TestManyRefusedRequests: a peer without a token does not fill the log.
func TestManyRefusedRequests(t *testing.T) {
	logged := new(logBuffer)
	l := startUnregistered(t, Config{ID: "t1", Dir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(logged, nil))})
	l.connect(1)
	for range 200 {
		for _, host := range []string{"", "rebound.example"} {
			req, err := http.NewRequest(http.MethodGet, "http://"+l.addr+"/logs/job_1_0001/attempt_1_0001_m_000000_0/stdout", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = host
			answer, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
		}
	}
	http.DefaultClient.CloseIdleConnections()
	if n := strings.Count(logged.String(), "a request is refused"); n == 0 || n > 200 {
		t.Errorf("%d lines for 400 refused requests", n)
	}
}
