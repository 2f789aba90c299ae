package cluster_test

import (
	"crypto/tls"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/quernmr/quern/integration/processes"
)

// rogue is a job tracker of another user, who has another authority.
type rogue struct {
	state    string
	out, log string // files
}

// startRogue starts the job tracker, which the test's cleanup kills.
func (c *cluster) startRogue(args ...string) *rogue {
	c.t.Helper()
	dir := c.t.TempDir()
	r := &rogue{state: "XDG_STATE_HOME=" + filepath.Join(dir, "state"), out: filepath.Join(dir, "out"), log: filepath.Join(dir, "log")}
	out, err := os.Create(r.out)
	if err != nil {
		c.t.Fatal(err)
	}
	defer out.Close()
	log, err := os.Create(r.log)
	if err != nil {
		c.t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(c.Program("jobtracker"), append(args, "-v")...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), r.state), out, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return r
}

func contains(t *testing.T, file, text string) bool {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(content), text)
}

// Another user's job tracker does not get a task tracker, a client or a vote, even at the address of
// the cluster's own job tracker.
func TestRogueJobTracker(t *testing.T) {
	c := start(t, func(cfg *processes.Config) { cfg.JobTrackers, cfg.TaskTrackers = 1, 1 })
	jt, tt := c.JobTrackers[0], c.TaskTrackers[0]
	direct, err := c.AddTaskTracker("tt2", "-jobtracker", jt.Addr) // it dials this address without gossip
	if err != nil {
		t.Fatal(err)
	}
	if err := direct.Start(); err != nil {
		t.Fatal(err)
	}
	c.awaitTrackers(2)
	c.paced(1).checkSuccess()

	// It asks for a vote.
	voter := c.startRogue("-id", "rogue", "-listen", "127.0.0.1:0", "-raft", "127.0.0.1:0", "-gossip", "127.0.0.1:0",
		"-staging", c.Staging(), "-join", jt.Gossip)
	c.await("refusal of the rogue by gossip", func() bool { return contains(t, voter.log, "cannot join") })
	if status, err := c.client.Cluster(c.ctx); err != nil || len(status.Voters) != 1 {
		t.Errorf("the voters are %+v, %v", status, err)
	}

	// It takes the addresses of the cluster's job tracker, which is down.
	if err := jt.Terminate(); err != nil {
		t.Fatal(err)
	}
	thief := c.startRogue("-id", jt.ID, "-listen", jt.Addr, "-raft", jt.Raft, "-gossip", jt.Gossip, "-data", filepath.Join(t.TempDir(), "data"),
		"-staging", "file://"+t.TempDir())
	c.await("start of the rogue", func() bool { return contains(t, thief.out, "ready") && contains(t, thief.log, "became leader") })
	c.await("refusal of the rogue by gossip of a task tracker", func() bool { return tt.Logged("no installed keys could decrypt") })
	c.await("refusal of the rogue by a task tracker", func() bool { return direct.Logged("the certificate is from another authority") })
	list := c.mrsubmit("list")
	list.Fail(1, "the certificate is from another authority", "mrsubmit cluster certs -client")
	theirs := c.Command(c.ctx, "mrsubmit", "cluster")
	theirs.Env = append(theirs.Env, thief.state)
	printed, err := theirs.CombinedOutput()
	if err != nil || strings.Contains(string(printed), tt.ID) || strings.Contains(string(printed), direct.ID) || contains(t, thief.log, "task tracker registered") {
		t.Errorf("%v: the rogue has a task tracker:\n%s", err, printed)
	}
}

// A process without a certificate, such as a browser, reads nothing from daemons on loopback.
func TestBrowser(t *testing.T) {
	c := start(t, func(cfg *processes.Config) { cfg.JobTrackers, cfg.TaskTrackers = 1, 1 })
	browser := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	for _, d := range c.All() {
		for _, scheme := range []string{"http", "https"} {
			answer, err := browser.Get(scheme + "://" + d.Addr + "/healthz")
			if err != nil {
				continue
			}
			answer.Body.Close()
			if scheme == "https" || answer.StatusCode != http.StatusBadRequest {
				t.Errorf("%s answers %s over %s", d.ID, answer.Status, scheme)
			}
		}
	}
}
