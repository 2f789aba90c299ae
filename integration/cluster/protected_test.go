package cluster_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/integration/processes"
)

func protect(cfg *processes.Config) { cfg.TLS = true }

// A protected cluster does what others do, over the loss of its leader too.
func TestProtected(t *testing.T) {
	c := start(t, protect)
	j := c.paced(6, "-gate")
	j.began("m", 1)
	leader, _ := c.Leader(c.ctx, nil)
	if err := leader.Kill(); err != nil {
		t.Fatal(err)
	}
	j.open()
	j.correct()
	if err := leader.Start(); err != nil {
		t.Fatal(err)
	}
	if err := leader.Ready(c.ctx); err != nil {
		t.Fatal(err)
	}
	c.mrsubmit("logs", jobID.FindString(c.mrsubmit("list").succeed())).succeed()
	without := c.Command(c.ctx, "mrsubmit", "list")
	without.Env = append(without.Env, "QUERN_TLS_DIR=")
	if out, err := without.CombinedOutput(); err == nil {
		t.Errorf("a client without a certificate is served: %s", out)
	}
}

// Every route of every daemon, and the log's and gossip's ports: who has no
// certificate, one of another authority or of another time, or another role, is
// refused, and the daemon says so.
func TestStrangers(t *testing.T) {
	c := start(t, protect, func(cfg *processes.Config) { cfg.JobTrackers, cfg.TaskTrackers = 1, 1 })
	jt, tt := c.JobTrackers[0], c.TaskTrackers[0]
	const id = "job_1_0001"
	routes := []struct {
		at           *processes.Daemon
		method, path string
		admitted     []identity.Role
	}{
		{jt, "GET", "/v1/stream", []identity.Role{identity.TaskTracker}},
		{jt, "GET", "/v1/watch?job=" + id, []identity.Role{identity.Client, identity.JobTracker}},
		{jt, "POST", "/v1/submissions", []identity.Role{identity.Client}},
		{jt, "GET", "/v1/jobs", []identity.Role{identity.Client, identity.JobTracker}},
		{jt, "GET", "/v1/jobs/" + id, []identity.Role{identity.Client, identity.JobTracker}},
		{jt, "POST", "/v1/jobs/" + id + "/kill", []identity.Role{identity.Client}},
		{jt, "GET", "/v1/jobs/" + id + "/attempts", []identity.Role{identity.Client, identity.JobTracker}},
		{jt, "GET", "/v1/cluster", []identity.Role{identity.Client, identity.JobTracker}},
		{jt, "POST", "/v1/cluster/voters", []identity.Role{identity.Client, identity.JobTracker}},
		{jt, "DELETE", "/v1/cluster/voters/none", []identity.Role{identity.Client}},
		{tt, "GET", "/shuffle/" + id + "/0/1/0", []identity.Role{identity.TaskTracker}},
		{tt, "GET", "/logs/" + id + "/attempt_1_0001_m_000000_1000/stdout", []identity.Role{identity.Client}},
	}
	peers := c.strangers()
	for _, r := range routes {
		for _, p := range peers {
			got := ask(t, p.config, r.method, "https://"+r.at.Addr+r.path)
			admitted := false
			for _, role := range r.admitted {
				admitted = admitted || role == p.role
			}
			switch {
			case p.role == "" && got != 0:
				t.Errorf("%s %s: %s gets status %d", r.method, r.path, p.name, got)
			case p.role != "" && !admitted && got != http.StatusForbidden && got != 0:
				t.Errorf("%s %s: %s gets status %d, want 403", r.method, r.path, p.name, got)
			case admitted && (got == 0 || got == http.StatusForbidden):
				t.Errorf("%s %s: %s gets status %d", r.method, r.path, p.name, got)
			}
		}
	}
	for _, p := range peers { // the log is for job trackers alone
		if p.role == identity.JobTracker {
			continue
		}
		conn, err := tls.Dial("tcp", jt.Raft, p.config)
		if err == nil {
			conn.SetDeadline(time.Now().Add(deadline))
			conn.Write([]byte{0})
			_, err = conn.Read(make([]byte, 1)) // TLS 1.3 tells of a refusal only here
			conn.Close()
		}
		if err == nil || err == io.EOF {
			t.Errorf("the log's port: %s is let in: %v", p.name, err)
		}
	}
	for _, d := range []*processes.Daemon{jt, tt} {
		for _, want := range []string{"not admitted", "a request is refused"} {
			if !d.Said(want) {
				t.Errorf("%s has not said %q", d.ID, want)
			}
		}
	}
	// A task tracker without the key of gossip finds nobody and is found by nobody.
	if text, err := os.ReadFile(filepath.Join(c.Certs(identity.TaskTracker, tt.ID), identity.GossipFile)); err != nil || len(text) == 0 {
		t.Errorf("the key of gossip: %v", err)
	}
}

// stranger is somebody who asks; of no role: not to be admitted anywhere.
type stranger struct {
	name   string
	role   identity.Role
	config *tls.Config
}

// strangers are one of each role and those that are to be refused everywhere.
func (c *cluster) strangers() []stranger {
	c.t.Helper()
	theirs, err := identity.OpenAuthority(filepath.Join(c.t.TempDir(), "theirs"), time.Now())
	if err != nil {
		c.t.Fatal(err)
	}
	ours, err := identity.OpenAuthority(filepath.Join(c.dir, "certs", "authority"), time.Now())
	if err != nil {
		c.t.Fatal(err)
	}
	now := time.Now()
	make := func(a *identity.Authority, role identity.Role, until time.Time) *tls.Config {
		dir := filepath.Join(c.t.TempDir(), "certs")
		if err := a.Issue(dir, identity.Peer{Role: role, Name: "stranger"}, now, until); err != nil {
			c.t.Fatal(err)
		}
		pair, err := tls.LoadX509KeyPair(filepath.Join(dir, identity.CertFile), filepath.Join(dir, identity.KeyFile))
		if err != nil {
			c.t.Fatal(err)
		}
		return &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true}
	}
	day := 24 * time.Hour
	all := []stranger{
		{"no certificate", "", &tls.Config{InsecureSkipVerify: true}},
		{"another authority", "", make(theirs, identity.Client, now.Add(day))},
		{"an expired certificate", "", make(ours, identity.Client, now.Add(-time.Second))},
	}
	for _, role := range []identity.Role{identity.JobTracker, identity.TaskTracker, identity.Client} {
		all = append(all, stranger{"a " + string(role), role, make(ours, role, now.Add(day))})
	}
	return all
}

// ask gives the status of the answer, 0 for none.
func ask(t *testing.T, config *tls.Config, method, url string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}, Timeout: deadline}
	answer, err := client.Do(r)
	if err != nil {
		return 0
	}
	answer.Body.Close()
	return answer.StatusCode
}
