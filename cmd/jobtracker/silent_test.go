package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/quernmr/quern/cmd/internal/daemon"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/listen/listentest"
)

// TestSilentConnections: a job tracker closes connections that send nothing or a byte, on all its ports, and
// serves others all the while, with and without TLS.
func TestSilentConnections(t *testing.T) {
	t.Parallel()
	r := launch(t, "jt1", testDir{t.TempDir()}.data("jt1"), "-max-conns-per-client", "50")
	held := hold(t, r, "\x16", "\x16", "")
	r.awaitStatus(t, "leads", func(c web.Cluster) bool { return c.IsLeader })
	held()
	r = launch(t, "jt2", testDir{t.TempDir()}.data("jt2"), "-max-conns-per-client", "50", "-insecure")
	held = hold(t, r, "G", "\x00", "\xf4")
	answer, err := http.Get("http://" + r.http + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	held()
}

// hold holds connections that send these texts. The returned function waits until the job tracker has closed them.
func hold(t *testing.T, r *testJobTracker, toHTTP, toRaft, toGossip string) (closed func()) {
	t.Helper()
	var held []*listentest.Held
	for _, port := range [][2]string{{r.http, toHTTP}, {r.raft, toRaft}, {r.gossip, toGossip}} {
		held = append(held, listentest.Hold(t, port[0], 700, port[1]))
	}
	return func() {
		t.Helper()
		for _, h := range held {
			h.AwaitLeft(t, 0)
		}
	}
}

// TestForeignHost: the daemon serves its names, and no others.
func TestForeignHost(t *testing.T) {
	t.Parallel()
	r := launch(t, "jt1", testDir{t.TempDir()}.data("jt1"), "-insecure", "-additional-dnsname", "quern.service.consul")
	for host, want := range map[string]int{"quern.service.consul": http.StatusOK, "localhost:1": http.StatusOK, "rebound.example": http.StatusForbidden} {
		q, err := http.NewRequest(http.MethodGet, "http://"+r.http+"/healthz", nil)
		if err != nil {
			t.Fatal(err)
		}
		q.Host = host
		answer, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%s: %s", host, answer.Status)
		}
	}
	for flag, want := range map[string]string{"-additional-dnsname=a:80": "not a host name", "-max-conns-per-client=-1": "must not be negative"} {
		if _, err := parse([]string{flag, "-data", "/x"}, daemon.Output{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}
