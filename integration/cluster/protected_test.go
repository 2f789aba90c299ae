package cluster_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/integration/trial"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/wire"
)

func withTLS(cfg *processes.Config) { cfg.TLS = true }

// A job on a cluster with TLS succeeds, even if the leader is killed.
func TestProtected(t *testing.T) {
	c := start(t, withTLS)
	j := c.paced(6, "-gate")
	j.AwaitBegan("m", 1)
	leader := c.leader()
	if err := leader.Kill(); err != nil {
		t.Fatal(err)
	}
	j.OpenGate()
	j.checkSuccess()
	if err := leader.Start(); err != nil {
		t.Fatal(err)
	}
	if err := leader.Ready(c.ctx); err != nil {
		t.Fatal(err)
	}
	c.mrsubmit("logs", jobID.FindString(c.mrsubmit("list").Succeed())).Succeed()
	for role, d := range map[identity.Role]*processes.Daemon{identity.JobTracker: leader, identity.TaskTracker: c.TaskTrackers[0]} {
		certs, state := c.Certs(role, d.ID), "with a leader"
		if role == identity.TaskTracker {
			state = "registered with the leader"
		}
		c.await(d.ID+" to have a leader", func() bool {
			printed := c.command(string(role), "healthz", "-tls-dir", certs, d.Addr).Succeed()
			return printed == "ok "+string(role)+" "+d.ID+", "+state+"\n"
		})
		c.command(string(role), "healthz", d.Addr).Fail(1, d.Addr)
	}
	without := c.Command(c.ctx, "mrsubmit", "list")
	without.Env = append(without.Env, "QUERN_TLS_DIR=")
	if out, err := without.CombinedOutput(); err == nil {
		t.Errorf("a client without a certificate is served: %s", out)
	}
}

// route is a route of a daemon and the roles that may use it.
type route struct {
	daemon       *processes.Daemon
	method, path string
	body         string
	admitted     []identity.Role
	admins       bool // no other clients
}

// Every route of every daemon, and the log's port, refuses a client without a certificate, or
// with another authority, period of validity or role. The daemon logs it.
func TestAdmission(t *testing.T) {
	c := start(t, withTLS, func(cfg *processes.Config) { cfg.JobTrackers, cfg.TaskTrackers = 1, 1 })
	jt, tt := c.JobTrackers[0], c.TaskTrackers[0]
	const id = "job_1_0001"
	trackers, clients := []identity.Role{identity.TaskTracker}, []identity.Role{identity.Client}
	both, scrapers := []identity.Role{identity.Client, identity.JobTracker}, []identity.Role{identity.Client, identity.Metrics}
	routes := []route{
		{jt, "GET", "/v1/stream", "", trackers, false},
		{jt, "GET", "/v1/events?job=" + id, "", both, false},
		{jt, "GET", "/v1/openapi.json", "", both, false},
		{jt, "POST", "/v1/submissions", "", clients, false},
		{jt, "GET", "/v1/jobs", "", both, false},
		{jt, "GET", "/v1/jobs/" + id, "", both, false},
		{jt, "POST", "/v1/jobs/" + id + "/kill", `{"reason":"none"}`, clients, false},
		{jt, "POST", "/v1/jobs/" + id + "/settings", `{"weight":2}`, clients, false},
		{jt, "GET", "/v1/jobs/" + id + "/submission", "", both, false},
		{jt, "GET", "/v1/jobs/" + id + "/breakdown", "", both, false},
		{jt, "GET", "/v1/flows/flow_1_0001", "", both, false},
		{jt, "GET", "/v1/jobs/" + id + "/attempts", "", both, false},
		{jt, "POST", "/v1/jobs/" + id + "/attempts/attempt_1_0001_m_000000_1000/kill", `{"reason":"none"}`, clients, false},
		{jt, "POST", "/v1/jobs/" + id + "/attempts/attempt_1_0001_m_000000_1000/fail", `{"reason":"none"}`, clients, false},
		{jt, "GET", "/v1/jobs/" + id + "/explain", "", both, false},
		{jt, "GET", "/v1/explain", "", both, false},
		{jt, "GET", "/v1/attempts", "", both, false},
		{jt, "GET", "/v1/plans", "", both, false},
		{jt, "GET", "/v1/scheduling/whatif", "", both, false},
		{jt, "GET", "/v1/jobs/" + id + "/history", "", both, false},
		{jt, "GET", "/v1/histories", "", both, false},
		{jt, "GET", "/v1/cluster", "", both, false},
		{jt, "GET", "/healthz", "", append([]identity.Role{identity.TaskTracker, identity.Metrics}, both...), false},
		{jt, "GET", "/metrics", "", scrapers, false},
		{jt, "GET", "/debug/pprof/cmdline", "", clients, true},
		{jt, "POST", "/v1/cluster/scheduling", `{"delay":"none"}`, clients, true},
		{jt, "POST", "/v1/cluster/drains", `{"tracker":"none"}`, clients, true},
		{jt, "POST", "/v1/cluster/exclusions", `{"tracker":"none"}`, clients, true},
		{jt, "POST", "/v1/cluster/voters", `{"id":"stranger","addr":"127.0.0.1:1"}`, both, true},
		{jt, "DELETE", "/v1/cluster/voters/none", "", clients, true},
		{tt, "GET", "/shuffle/" + id + "/0/1/0", "", trackers, false},
		{tt, "GET", "/healthz", "", append([]identity.Role{identity.TaskTracker}, scrapers...), false},
		{tt, "GET", "/metrics", "", scrapers, false},
		{tt, "GET", "/debug/pprof/cmdline", "", clients, true},
		{tt, "GET", "/logs/" + id + "/attempt_1_0001_m_000000_1000/stdout", "", clients, false},
	}
	checkComplete(t, routes)
	peers := c.testPeers()
	for _, r := range routes {
		for _, p := range peers {
			got, text := request(t, p.config, r.method, "https://"+r.daemon.Addr+r.path, r.body, "no token")
			admitted := slices.Contains(r.admitted, p.role) && !(r.admins && p.role == identity.Client && !p.admin)
			// A client with the right role gets an error about the wrong token.
			byToken := r.daemon == tt && strings.Contains(text, "the token does not belong to "+id)
			switch {
			case p.role == "" && got != 0:
				t.Errorf("%s %s: %s gets status %d, want no answer", r.method, r.path, p.name, got)
			case p.role != "" && !admitted && got != http.StatusForbidden && got != 0 || !admitted && byToken:
				t.Errorf("%s %s: %s gets status %d, want 403: %s", r.method, r.path, p.name, got, text)
			case admitted && (got == 0 || got == http.StatusForbidden && !byToken):
				t.Errorf("%s %s: %s gets status %d: %s", r.method, r.path, p.name, got, text)
			}
		}
		if got, text := request(t, nil, r.method, "http://"+r.daemon.Addr+r.path, r.body, ""); got != 0 && got != http.StatusBadRequest {
			t.Errorf("%s %s: without TLS the answer is %d %s", r.method, r.path, got, text)
		}
	}
	for _, p := range peers { // only job trackers may connect to the log's port
		if p.role == identity.JobTracker {
			continue
		}
		conn, err := tls.Dial("tcp", jt.Raft, p.config)
		if err == nil {
			conn.SetDeadline(time.Now().Add(trial.Deadline))
			conn.Write([]byte{0})
			_, err = conn.Read(make([]byte, 1)) // with TLS 1.3, a refusal is first seen here
			conn.Close()
		}
		if err == nil || err == io.EOF {
			t.Errorf("the log's port: %s is admitted: %v", p.name, err)
		}
	}
	c.checkImpersonation(peers)
	for _, d := range []*processes.Daemon{jt, tt} {
		for _, want := range []string{
			"not admitted", "a request is refused", "didn't provide a certificate", "unknown authority",
			"certificate has expired or is not yet valid: current time", " is after ", " is before ",
		} {
			if !d.Logged(want) {
				t.Errorf("%s has not logged %q", d.ID, want)
			}
		}
	}
	// gossip.TestWithoutTheKey checks gossip without the key.
	if text, err := os.ReadFile(filepath.Join(c.Certs(identity.TaskTracker, tt.ID), identity.GossipFile)); err != nil || len(text) == 0 {
		t.Errorf("gossip key: %v", err)
	}
}

// checkComplete checks that routes has every route in the sources.
func checkComplete(t *testing.T, routes []route) {
	t.Helper()
	named := regexp.MustCompile(`(?:\.Handle(?:Func)?\(|\t{)"(?:(\w+) )?(/[^"]+)"`) // also in the table of routes
	found := 0
	for _, file := range []string{"../../jobtracker/web/routes.go", "../../tasktracker/serve.go", "../../tasktracker/metrics.go"} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllStringSubmatch(string(source), -1) {
			found++
			pattern := regexp.MustCompile(`\\\{\w+\\\}`).ReplaceAllString(regexp.QuoteMeta(m[2]), "[^/?]+")
			if strings.HasSuffix(pattern, "/") {
				pattern += ".*"
			}
			path := regexp.MustCompile("^" + pattern + `(\?|$)`)
			if !slices.ContainsFunc(routes, func(r route) bool { return (m[1] == "" || m[1] == r.method) && path.MatchString(r.path) }) {
				t.Errorf("%s: the test does not request the route %q", file, strings.TrimSpace(m[1]+" "+m[2]))
			}
		}
	}
	if found != len(routes) {
		t.Errorf("the sources have %d routes, the test requests %d", found, len(routes))
	}
}

// checkImpersonation checks that a task tracker cannot register under another one's ID.
func (c *cluster) checkImpersonation(peers []testPeer) {
	c.t.Helper()
	jt := c.JobTrackers[0]
	i := slices.IndexFunc(peers, func(p testPeer) bool { return p.role == identity.TaskTracker })
	ctx, cancel := context.WithTimeout(c.ctx, trial.Deadline)
	defer cancel()
	conn, err := web.DialStream(ctx, jt.Addr, peers[i].config)
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close()
	hello := &wire.Hello{Version: wire.Version, Tracker: c.TaskTrackers[0].ID, Process: 1, Host: "h", Addr: "127.0.0.1:1", MapSlots: 1}
	if err := conn.Send(hello); err != nil {
		c.t.Fatal(err)
	}
	m, err := conn.Receive()
	if refusal, ok := m.(*wire.Refuse); !ok || !trial.ContainsAll(refusal.Reason, []string{"name differs", c.TaskTrackers[0].ID, "stranger"}) {
		c.t.Errorf("a tracker with another one's ID receives %+v, %v", m, err)
	}
	if m, err := conn.Receive(); err == nil {
		c.t.Errorf("after its refusal, the tracker receives %T", m)
	}
	c.await("log line about the tracker", func() bool { return jt.Logged("the tracker's name differs from its certificate") })
}

// testPeer is a client with its TLS settings. Without a role, every route must refuse it.
type testPeer struct {
	name   string
	role   identity.Role
	admin  bool
	config *tls.Config
}

// testPeers returns a client of each role, an administrator, and clients that every route must
// refuse.
func (c *cluster) testPeers() []testPeer {
	c.t.Helper()
	other, err := identity.OpenAuthority(filepath.Join(c.t.TempDir(), "theirs"), time.Now())
	if err != nil {
		c.t.Fatal(err)
	}
	own, err := identity.OpenAuthority(filepath.Join(c.dir, "certs", "authority"), time.Now())
	if err != nil {
		c.t.Fatal(err)
	}
	now := time.Now()
	issue := func(a *identity.Authority, role identity.Role, name string, from, until time.Time) *tls.Config {
		dir := filepath.Join(c.t.TempDir(), "certs")
		if err := a.Issue(dir, identity.Peer{Role: role, Name: name}, from, until); err != nil {
			c.t.Fatal(err)
		}
		pair, err := tls.LoadX509KeyPair(filepath.Join(dir, identity.CertFile), filepath.Join(dir, identity.KeyFile))
		if err != nil {
			c.t.Fatal(err)
		}
		return &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true}
	}
	day := 24 * time.Hour
	all := []testPeer{
		{"no certificate", "", false, &tls.Config{InsecureSkipVerify: true}},
		{"another authority", "", false, issue(other, identity.Client, "admin", now, now.Add(day))},
		{"an expired certificate", "", false, issue(own, identity.Client, "admin", now, now.Add(-time.Second))},
		// Issued on a machine with a fast clock.
		{"a certificate of tomorrow", "", false, issue(own, identity.Client, "admin", now.Add(day), now.Add(2*day))},
		{"a certificate from a slightly fast clock", identity.Client, false, issue(own, identity.Client, "stranger", now.Add(identity.Skew/2), now.Add(day))},
		{"an administrator", identity.Client, true, issue(own, identity.Client, "admin", now, now.Add(day))},
	}
	for _, role := range []identity.Role{identity.JobTracker, identity.TaskTracker, identity.Client, identity.Metrics} {
		all = append(all, testPeer{"a " + string(role), role, false, issue(own, role, "stranger", now, now.Add(day))})
	}
	return all
}

// request sends a request and returns the answer's status and text; status 0: no answer.
func request(t *testing.T, config *tls.Config, method, url, body, token string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}, Timeout: trial.Deadline}
	answer, err := client.Do(r)
	if err != nil {
		return 0, ""
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
	if err != nil {
		return 0, ""
	}
	return answer.StatusCode, string(text)
}
