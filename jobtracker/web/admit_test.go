package web

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
)

// peerState returns the TLS state of a peer with a certificate for role and name.
func peerState(role identity.Role, name string) *tls.ConnectionState {
	uri := &url.URL{Scheme: "quern", Host: string(role), Path: "/" + name}
	return &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{URIs: []*url.URL{uri}}}}
}

// TestCallers: the core gets the caller of a request. Only administrators change the cluster.
// Refusals name the administrators and are logged.
func TestCallers(t *testing.T) {
	frame, err := wire.Append(nil, &wire.Submission{Key: "k2", Owner: "root", Plan: wire.Plan{Jobs: make([]wire.JobPlan, 1)}})
	if err != nil {
		t.Fatal(err)
	}
	voter := `{"id": "jt9", "addr": "h:9"}`
	routes := map[string]struct {
		method, path, body string
		core               bool // the core decides
		admins             bool // only for administrators, and for the job tracker self
		self               string
	}{
		"submit":   {"POST", "/v1/submissions", string(frame), true, false, ""},
		"kill":     {"POST", "/v1/jobs/job_7_0001/kill", `{"reason": "enough"}`, true, false, ""},
		"attempt":  {"POST", "/v1/jobs/job_7_0001/attempts/attempt_7_0001_m_000000_1000/kill", `{"reason": "stuck"}`, true, false, ""},
		"settings": {"POST", "/v1/jobs/job_7_0001/settings", `{"weight": 2}`, true, false, ""},
		"schedule": {"POST", "/v1/cluster/scheduling", `{"scheduler": "fifo"}`, false, true, ""},
		"drain":    {"POST", "/v1/cluster/drains", `{"tracker": "t1"}`, false, true, ""},
		"exclude":  {"POST", "/v1/cluster/exclusions", `{"tracker": "t1"}`, false, true, ""},
		"vote":     {"POST", "/v1/cluster/voters", voter, false, true, "jt9"},
		"no vote":  {"DELETE", "/v1/cluster/voters/jt9", "", false, true, ""},
	}
	peers := []identity.Peer{
		{Role: identity.Client, Name: "root"}, {Role: identity.Client, Name: "ann"},
		{Role: identity.JobTracker, Name: "jt9"}, {Role: identity.JobTracker, Name: "root"},
		{Role: identity.TaskTracker, Name: "root"},
	}
	for what, q := range routes {
		for _, p := range peers {
			f, c := startOne(t)
			if _, err := c.Submit(t.Context(), submission("k1")); err != nil {
				t.Fatal(err)
			}
			f.voter, f.callers = []Voter{{ID: "jt9"}}, nil
			var logged bytes.Buffer
			h := New(Config{Server: f, Voters: f, Identified: true, Admins: []string{"admin", "root"}, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
			r := httptest.NewRequest(q.method, q.path, strings.NewReader(q.body))
			r.TLS = peerState(p.Role, p.Name)
			if what == "submit" {
				r.Header.Set("Content-Type", frameType)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			admin := p.Role == identity.Client && p.Name == "root"
			want := http.StatusForbidden
			if p.Role == identity.Client && (q.core || admin) || p.Role == identity.JobTracker && p.Name == q.self {
				want = http.StatusOK
			}
			if w.Code != want {
				t.Errorf("%s by %v: %d %s, want %d", what, p, w.Code, w.Body, want)
			}
			if want == http.StatusOK && q.core && !slices.Equal(f.callers, []core.Caller{{Name: p.Name, Admin: admin}}) {
				t.Errorf("%s by %v: the core got caller %+v", what, p, f.callers)
			}
			if want == http.StatusForbidden && (len(f.callers) > 0 || !strings.Contains(logged.String(), p.String())) {
				t.Errorf("%s by %v: the core got caller %+v; log: %s", what, p, f.callers, &logged)
			}
			if p.Role == identity.Client && q.admins && !admin {
				for _, part := range []string{"ann may not", "administrators (admin, root)", codeForbidden} {
					if !strings.Contains(w.Body.String(), part) {
						t.Errorf("%s by %v: %s lacks %q", what, p, w.Body, part)
					}
				}
			}
		}
	}
}

// TestStreamHasName: the core gets the name in a task tracker's certificate.
func TestStreamHasName(t *testing.T) {
	l := newFakeLog()
	f := &fake{log: l, id: "jt1"}
	h := New(Config{Server: f, Identified: true})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.TLS = peerState(identity.TaskTracker, "tt1")
		h.ServeHTTP(w, r)
	}))
	defer server.Close()
	conn, err := DialStream(t.Context(), strings.TrimPrefix(server.URL, "http://"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.Send(&wire.Ack{}); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Receive(); err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Equal(f.streams, []string{"tt1"}) {
		t.Errorf("streams of %q", f.streams)
	}
}

// TestNotIdentified: without certificates all requests are allowed.
func TestNotIdentified(t *testing.T) {
	f, c := startOne(t)
	if _, err := c.Submit(t.Context(), submission("k1")); err != nil {
		t.Fatal(err)
	}
	if err := c.Schedule(t.Context(), wire.Scheduling{Scheduler: "fifo"}); err != nil {
		t.Error(err)
	}
	if !slices.Equal(f.callers, []core.Caller{{}}) || f.callers[0].Known() {
		t.Errorf("the core got caller %+v", f.callers)
	}
}

// TestNoRole: a request without a certificate is refused, and the error says so.
func TestNoRole(t *testing.T) {
	t.Parallel()
	f, _ := startOne(t)
	w := httptest.NewRecorder()
	New(Config{Server: f, Identified: true}).ServeHTTP(w, httptest.NewRequest("GET", "/v1/jobs", nil))
	if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), `"a peer without a name and role in its certificate may not use this route"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
