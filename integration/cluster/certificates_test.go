package cluster_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/integration/processes"
)

// write replaces a file in the certificate directory of a daemon or user, by the contents of others.
func (c *cluster) write(role identity.Role, id, name string, from ...string) {
	c.t.Helper()
	var all []byte
	for _, f := range from {
		text, err := os.ReadFile(f)
		if err != nil {
			c.t.Fatal(err)
		}
		all = append(all, text...)
	}
	c.writeText(role, id, name, string(all))
}

func (c *cluster) writeText(role identity.Role, id, name, text string) {
	c.t.Helper()
	to := filepath.Join(c.Certs(role, id), name)
	if err := os.WriteFile(to+".new", []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
	if err := os.Rename(to+".new", to); err != nil {
		c.t.Fatal(err)
	}
}

// connected reports whether the leader has a task tracker's stream.
func (c *cluster) connected(id string) bool {
	status, err := c.client.Cluster(c.ctx)
	if err != nil {
		return false
	}
	for _, s := range status.Trackers {
		if s.ID == id {
			return s.Connected
		}
	}
	return false
}

// A task tracker that the deny list has loses its stream and gets no more attempts; a user is refused.
// This survives a restart, and ends with the entry in the list.
func TestDenied(t *testing.T) {
	audited := filepath.Join(t.TempDir(), "audit")
	c := start(t, withTLS, func(cfg *processes.Config) {
		cfg.JobTrackers, cfg.TaskTrackers, cfg.MapSlots, cfg.JobTrackerFlags = 1, 2, 4, []string{"-lease", "10s", "-audit-log", audited}
	})
	recorded := func(text string) bool {
		all, err := os.ReadFile(audited)
		return err == nil && strings.Contains(string(all), text)
	}
	jt, config := c.JobTrackers[0], c.Dialer(identity.JobTracker)
	admitted := func() bool {
		status, _ := request(t, config, "GET", "https://"+jt.Addr+"/v1/jobs", "", "")
		return status != 0
	}
	j := c.paced(4, "-gate")
	j.AwaitBegan("m", 4)
	d, lost := c.awaitMaps(4)
	c.writeText(identity.JobTracker, jt.ID, identity.DeniedFile, "# stolen\ntasktracker "+d.ID+"\n")
	j.AwaitBegan("m", 4+lost)
	if !jt.Logged("a connection is closed: its peer is no longer admitted") {
		t.Error("the job tracker has not logged the end of the stream")
	}
	j.OpenGate()
	j.checkSuccess()
	if n := len(j.Traces("m", "began")); n != 4+lost {
		t.Errorf("%d map attempts, want 4 and %d again", n, lost)
	}
	if c.connected(d.ID) {
		t.Errorf("%s is connected", d.ID)
	}

	c.writeText(identity.JobTracker, jt.ID, identity.DeniedFile, "tasktracker "+d.ID+"\nclient "+processes.User+"\n")
	c.await("refusal of a user", func() bool { return !admitted() })
	for _, event := range []string{
		`"action":"stay connected","detail":"tasktracker ` + d.ID + `, serial `, `"action":"connect","detail":"client ` + processes.User + `, serial `,
	} {
		c.await(event, func() bool { return recorded(event) })
	}
	if err := jt.Terminate(); err != nil {
		t.Fatal(err)
	}
	if err := jt.Start(); err != nil {
		t.Fatal(err)
	}
	if err := jt.Ready(c.ctx); err != nil {
		t.Fatal(err)
	}
	if admitted() {
		t.Error("after a restart, a denied user is admitted")
	}
	c.writeText(identity.JobTracker, jt.ID, identity.DeniedFile, "tasktracker "+d.ID+"\n")
	c.await("the user to be admitted", admitted)
	c.awaitTrackers(1)
	if c.connected(d.ID) {
		t.Errorf("after a restart, %s is connected", d.ID)
	}
	c.writeText(identity.JobTracker, jt.ID, identity.DeniedFile, "# none\n")
	c.awaitTrackers(2)
}

// The authority and the gossip key of a cluster are replaced while a job runs, in the steps of
// docs/running-a-cluster.md. The job loses no attempt. In the end the old authority is not trusted.
func TestRollOver(t *testing.T) {
	c := start(t, withTLS, func(cfg *processes.Config) { cfg.TaskTrackers = 2 })
	j := c.paced(4, "-gate")
	j.AwaitBegan("m", 4)
	next, before := t.TempDir(), t.TempDir()
	authority, err := identity.OpenAuthority(filepath.Join(next, "authority"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	type peer struct {
		identity.Peer
		daemon *processes.Daemon // nil: a user
	}
	peers := []peer{{identity.Peer{Role: identity.Client, Name: processes.User}, nil}}
	for _, d := range c.JobTrackers {
		peers = append(peers, peer{identity.Peer{Role: identity.JobTracker, Name: d.ID}, d})
	}
	for _, d := range c.TaskTrackers {
		peers = append(peers, peer{identity.Peer{Role: identity.TaskTracker, Name: d.ID}, d})
	}
	for _, p := range peers {
		if err := authority.Issue(filepath.Join(next, p.Name), p.Peer, time.Now(), time.Now().Add(24*time.Hour)); err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(before, p.Name)
		if err := errors.Join(os.CopyFS(to, os.DirFS(c.Certs(p.Role, p.Name))), os.Chmod(filepath.Join(to, identity.KeyFile), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for step := range 3 {
		for _, p := range peers {
			older, newer := filepath.Join(before, p.Name), filepath.Join(next, p.Name)
			replace := func(name string, from ...string) {
				for i, dir := range from {
					from[i] = filepath.Join(dir, name)
				}
				if p.daemon != nil || name != identity.GossipFile {
					c.write(p.Role, p.Name, name, from...)
				}
			}
			switch step {
			case 0:
				replace(identity.AuthorityFile, older, newer)
				replace(identity.GossipFile, older, newer)
			case 1:
				replace(identity.KeyFile, newer)
				replace(identity.CertFile, newer)
				replace(identity.GossipFile, newer, older)
			case 2:
				replace(identity.AuthorityFile, newer)
				replace(identity.GossipFile, newer)
			}
		}
		for _, p := range peers[1:] {
			for _, line := range []string{"new certificate", "gossip: new keys"} {
				c.await(p.Name+" to log "+line, func() bool {
					text, err := os.ReadFile(p.daemon.Log())
					return err == nil && bytes.Count(text, []byte(`msg="`+line+`"`)) > step
				})
			}
		}
	}
	// The streams have used certificates of the old authority.
	c.await("the end of the streams", func() bool {
		for _, d := range c.JobTrackers {
			if d.Logged("its peer is no longer admitted") {
				return true
			}
		}
		return false
	})
	c.awaitTrackers(2)
	j.OpenGate()
	j.checkSuccess()
	j.CheckOnce("m", "r")

	old, err := identity.Load(filepath.Join(before, processes.User), identity.Client, nil)
	if err != nil {
		t.Fatal(err)
	}
	unchecked := old.Dialer(identity.JobTracker)
	unchecked.VerifyConnection = nil // so that only the job tracker can refuse
	if status, text := request(t, unchecked, "GET", "https://"+c.JobTrackers[0].Addr+"/v1/jobs", "", ""); status != 0 {
		t.Errorf("a user with a certificate of the old authority gets status %d: %s", status, strings.TrimSpace(text))
	}
	c.mrsubmit("list").Succeed()
}
