package tasktracker

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/quernmr/quern/audit"
	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/tasktracker/token"
	"github.com/quernmr/quern/wire"
)

// TestProfileRoles: users and the role metrics read metrics. Only users in Admins read profiles, and the
// audit log has each read.
func TestProfileRoles(t *testing.T) {
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.URL.Path) })
	var events []audit.Event
	service := Service{Advertise: "here:1", Serve: new(tls.Config), Metrics: serve, Profiles: serve, Admins: []string{"root"}, Audit: func(e audit.Event) { events = append(events, e) }}
	routes := func(s Service) *http.ServeMux {
		l := newLoop(Config{ID: "t1", Service: s, Logger: slog.New(slog.DiscardHandler)}, nil, nil, new(token.Store), core.Config{})
		mux := http.NewServeMux()
		l.observe(mux)
		return mux
	}
	h := routes(service)
	const metrics, profile = "/metrics", "/debug/pprof/heap"
	for _, c := range []struct {
		role       identity.Role
		name, path string
		code       int
		recorded   string
	}{
		{identity.Metrics, "root", metrics, 200, ""},
		{identity.Metrics, "root", profile, 403, audit.Refused},
		{identity.Client, "ann", metrics, 200, ""},
		{identity.Client, "ann", profile, 403, audit.Refused},
		{identity.Client, "root", profile, 200, audit.Done},
		{identity.TaskTracker, "root", metrics, 403, audit.Refused},
		{identity.TaskTracker, "root", profile, 403, audit.Refused},
		{"", "", metrics, 403, audit.Refused},
		{"", "", profile, 403, audit.Refused},
	} {
		events = nil
		r := httptest.NewRequest(http.MethodGet, c.path, nil)
		if r.TLS = new(tls.ConnectionState); c.role != "" {
			uri := &url.URL{Scheme: "quern", Host: string(c.role), Path: "/" + c.name}
			r.TLS.PeerCertificates = []*x509.Certificate{{URIs: []*url.URL{uri}}}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.code {
			t.Errorf("%s for %s %s: %d %s, want %d", c.path, c.role, c.name, w.Code, w.Body, c.code)
		}
		switch {
		case c.recorded == "" && len(events) > 0, c.recorded != "" && (len(events) != 1 || events[0].Outcome != c.recorded || events[0].On != c.path):
			t.Errorf("%s for %s %s: recorded %+v, want %q", c.path, c.role, c.name, events, c.recorded)
		}
	}
	service.Serve = nil
	w := httptest.NewRecorder()
	if routes(service).ServeHTTP(w, httptest.NewRequest(http.MethodGet, profile, nil)); w.Code != http.StatusOK {
		t.Errorf("without certificates: %d", w.Code)
	}
}

// TestMetrics: the numbers are those of attempts, workers and fetches.
func TestMetrics(t *testing.T) {
	a, b := startTracker(t, "a", t.TempDir()), startTracker(t, "b", t.TempDir())
	output := *a.succeed(wire.Map, 0, doMap).Output
	b.send(&wire.SetHome{Epoch: 1, Job: job1, Partition: 1, Generation: wire.Generation{Epoch: 1, N: 1}, Maps: 1})
	b.send(wire.OutputsOf(1, job1, output))
	await(b, func(h *wire.HomeReport) bool { return h.Complete })
	served, err := a.tracker.Metrics(t.Context())
	if err != nil || !served.Registered || served.Served.Value() == 0 || served.Census.Workers != 1 || served.Census.Idle != 1 || served.Census.Disks != 1 || !served.Census.Healthy {
		t.Errorf("a has %+v, %v", served, err)
	}
	if starts, steps := served.Starts.Distribution(), served.Steps.Distribution(); starts.Total() != 1 || steps.Total() < 5 {
		t.Errorf("a has started %d workers in %d Steps", starts.Total(), steps.Total())
	}
	fetched, err := b.tracker.Metrics(t.Context())
	if err != nil || fetched.Gathered.Fetches[0].Value() != 1 || fetched.Gathered.Bytes.Value() != served.Served.Value() || fetched.Census.Homes != 1 {
		t.Errorf("b has %+v, %v; a has sent %d bytes", fetched, err, served.Served.Value())
	}
	if _, err := new(Tracker).Metrics(t.Context()); err == nil {
		t.Error("a tracker that does not run has metrics")
	}
}
