package cluster_test

import (
	"context"
	"crypto/rand"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/integration/trial"
)

// checkRefused runs a program that must exit with the code and print all wants.
func checkRefused(t *testing.T, code int, wants []string, program string, args ...string) {
	t.Helper()
	checkRefusedFor(t, []string{"XDG_STATE_HOME=" + t.TempDir()}, code, wants, program, args...)
}

// checkRefusedFor is checkRefused with the user of a cluster, or other environment variables.
func checkRefusedFor(t *testing.T, env []string, code int, wants []string, program string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), trial.Deadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(programs, program), args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	exit, ok := err.(*exec.ExitError)
	if !ok || exit.ExitCode() != code || !trial.ContainsAll(string(out), wants) {
		t.Errorf("%s %v: %v, want exit %d and %q\n%s", program, args, err, code, wants, out)
	}
}

func TestFlagsRefused(t *testing.T) {
	dir := t.TempDir()
	for _, x := range []struct {
		program string
		code    int
		wants   []string
		args    []string
	}{
		{"jobtracker", 2, []string{"-insecure"}, []string{"-id", "a", "-data", dir, "-listen", "0.0.0.0:0"}},
		{"tasktracker", 2, []string{"-insecure"}, []string{"-id", "a", "-data", dir, "-listen", "0.0.0.0:0", "-join", "127.0.0.1:1"}},
		{"jobtracker", 2, []string{"-tls-dir"}, []string{"-id", "a", "-data", dir, "-tls-dir", dir}},
		{"jobtracker", 2, []string{"-scheduler", "lottery"}, []string{"-id", "a", "-data", dir, "-scheduler", "lottery"}},
		{"jobtracker", 2, []string{"-staging"}, []string{"-id", "a", "-data", dir, "-join", "127.0.0.1:1", "-bootstrap-expect", "3"}},
		{"jobtracker", 2, []string{"-nonsense"}, []string{"-nonsense"}},
		{"tasktracker", 2, []string{"-id", "letters"}, []string{"-id", "a;$(touch pwned)", "-data", dir, "-join", "127.0.0.1:1"}},
		{"jobtracker", 2, []string{"-id", "letters"}, []string{"-id", "a\nb", "-data", dir}},
		{"tasktracker", 2, []string{"-map-slots"}, []string{"-id", "a", "-data", dir, "-map-slots", "-1", "-join", "127.0.0.1:1"}},
	} {
		checkRefused(t, x.code, x.wants, x.program, x.args...)
	}
}

// A tracker without access to the staging directory is refused, and logs the reason.
func TestStagingNotShared(t *testing.T) {
	c := start(t, func(cfg *processes.Config) { cfg.JobTrackers, cfg.TaskTrackers = 1, 1 })
	c.paced(1).checkSuccess()
	elsewhere := c.dir + "/staging/moved"
	clusters := filepath.Join(c.dir, "staging", "clusters")
	if err := os.Rename(clusters, elsewhere); err != nil {
		t.Fatal(err)
	}
	d, err := c.AddTaskTracker("tt2")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	c.await("log line of the refusal", func() bool { return d.Logged("not shared with tracker tt2") })
	if err := os.Rename(elsewhere, clusters); err != nil {
		t.Fatal(err)
	}
	c.await("second tracker", func() bool {
		status, err := c.client.Cluster(c.ctx)
		return err == nil && len(status.Trackers) == 2
	})
}

// A daemon does not start with the data of another cluster.
func TestOtherClustersData(t *testing.T) {
	single := func(cfg *processes.Config) { cfg.JobTrackers, cfg.TaskTrackers = 1, 1 }
	a, b := start(t, single), startWithLimit(t, commandLimit, single)
	a.paced(1).checkSuccess() // so that its tracker has registered
	b.paced(1).checkSuccess()
	tracker := a.TaskTrackers[0]
	if err := tracker.Terminate(); err != nil {
		t.Fatal(err)
	}
	checkRefusedFor(t, b.User(), 1, []string{"cluster", tracker.Data()}, "tasktracker", "-id", "stranger", "-data", tracker.Data(),
		"-listen", "127.0.0.1:0", "-gossip", "127.0.0.1:0", "-join", b.JobTrackers[0].Gossip)

	// A job tracker with the state of a and the staging directory of b.
	if err := a.JobTrackers[0].Terminate(); err != nil {
		t.Fatal(err)
	}
	checkRefused(t, 1, []string{"staging"}, "jobtracker", "-id", "jt1", "-data", a.JobTrackers[0].Data(), "-raft", a.JobTrackers[0].Raft,
		"-listen", "127.0.0.1:0", "-gossip", "127.0.0.1:0", "-staging", b.Staging(), "-bootstrap-expect", "1")
}

// No daemon crashes because of garbage on one of its ports.
func TestGarbage(t *testing.T) {
	c := start(t, func(cfg *processes.Config) { cfg.JobTrackers, cfg.TaskTrackers = 3, 1 })
	j := c.paced(2, "-gate")
	j.AwaitBegan("m", 2)
	garbage := make([]byte, 64<<10)
	rand.Read(garbage)
	huge := "\xff\xff\xff\xff\x01"
	nils := "\x00\x03\x0d\x52\x15\x81\xa4Plan\x81\xa4Jobs\xdd\x00\x03\x0d\x40" + strings.Repeat("\xc0", 200_000)
	upgrade := "GET /v1/stream HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: quern-stream/1\r\n\r\n"
	for _, d := range c.All() {
		for _, addr := range []string{d.Addr, d.Gossip, d.Raft} {
			if addr == "" {
				continue
			}
			for _, payload := range []string{string(garbage), huge + string(garbage), "GET / HTTP/1.1\r\n\r\n", upgrade + huge, upgrade + string(garbage),
				"POST /v1/submissions HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n" + huge,
				"POST /v1/submissions HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-quern-frame\r\nContent-Length: 200022\r\n\r\n" + nils} {
				conn, err := net.Dial("tcp", addr)
				if err != nil {
					t.Fatalf("%s %s: %v", d.ID, addr, err)
				}
				conn.SetDeadline(time.Now().Add(trial.Deadline))
				conn.Write([]byte(payload))
				conn.(*net.TCPConn).CloseWrite()
				conn.Close()
			}
			if conn, err := net.Dial("udp", addr); err == nil {
				conn.Write(garbage[:1400])
				conn.Close()
			}
		}
	}
	j.OpenGate()
	j.checkSuccess()
	j.CheckOnce("m")
	for _, d := range c.All() {
		if !d.Running() {
			t.Errorf("%s has ended", d.ID)
		}
		if strings.Contains(d.LastLines(), "panic") {
			t.Errorf("%s panicked", d.ID)
		}
	}
}
