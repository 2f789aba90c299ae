package web

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/quernmr/quern/audit"
	"github.com/quernmr/quern/identity"
)

// TestObserve: a follower too serves metrics to users and to the role metrics, and profiles to
// administrators alone. The audit log has each read of a profile. Nothing else is for the role metrics.
func TestObserve(t *testing.T) {
	serve := func(text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text) })
	}
	var events []audit.Event
	l := newFakeLog()
	h := New(Config{
		Server: &fake{log: l, id: "jt1"}, Identified: true, Admins: []string{"root"},
		Metrics: serve("metrics"), Profiles: serve("profile"), Audit: func(e audit.Event) { events = append(events, e) },
	})
	const metrics, profile = "/metrics", "/debug/pprof/heap"
	for _, c := range []struct {
		role       identity.Role
		name, path string
		code       int
		recorded   string // outcome
	}{
		{identity.Metrics, "prometheus", metrics, 200, ""},
		{identity.Metrics, "prometheus", "/healthz", 200, ""},
		{identity.Metrics, "prometheus", profile, 403, audit.Refused},
		{identity.Metrics, "root", profile, 403, audit.Refused},
		{identity.Metrics, "prometheus", "/v1/jobs", 403, audit.Refused},
		{identity.Metrics, "prometheus", "/v1/cluster", 403, audit.Refused},
		{identity.Client, "ann", metrics, 200, ""},
		{identity.Client, "ann", profile, 403, audit.Refused},
		{identity.Client, "root", profile, 200, audit.Done},
		{identity.Client, "root", "/debug/pprof/", 200, audit.Done},
		{identity.TaskTracker, "tt1", metrics, 403, audit.Refused},
		{identity.TaskTracker, "root", profile, 403, audit.Refused},
	} {
		events = nil
		r := httptest.NewRequest(http.MethodGet, c.path, nil)
		r.TLS = peerState(c.role, c.name)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.code {
			t.Errorf("%s for %s %s: %d %s, want %d", c.path, c.role, c.name, w.Code, w.Body, c.code)
		}
		outcome := ""
		for _, e := range events {
			outcome += e.Outcome
		}
		if outcome != c.recorded {
			t.Errorf("%s for %s %s: recorded %+v, want %q", c.path, c.role, c.name, events, c.recorded)
		}
		if c.recorded == audit.Done && (events[0].On != c.path || events[0].Action != "profile") {
			t.Errorf("recorded %+v", events)
		}
	}
	for _, path := range []string{metrics, profile} {
		w := httptest.NewRecorder()
		New(Config{Server: &fake{log: l, id: "jt1"}}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != http.StatusNotFound {
			t.Errorf("%s without a handler: %d", path, w.Code)
		}
	}
}
