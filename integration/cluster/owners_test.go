package cluster_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/integration/trial"
	"github.com/quernmr/quern/wire"
)

// asUser starts a command of mrsubmit with another user's certificate.
func (c *cluster) asUser(user string, args ...string) *trial.Run {
	c.t.Helper()
	// Issued once: a command that starts while its files are replaced finds a key of another certificate.
	if _, err := os.Stat(c.Certs(identity.Client, user)); err != nil {
		if err := c.Issue(identity.Client, user, time.Now()); err != nil {
			c.t.Fatal(err)
		}
	}
	cmd := c.Command(c.ctx, "mrsubmit", args...)
	cmd.Env = append(cmd.Env, "QUERN_TLS_DIR="+c.Certs(identity.Client, user))
	return trial.Begin(c.t, cmd)
}

// Only the owner and administrators may kill or change a job and read its logs, under
// any leader. A pool accepts jobs only from users in its ACL.
func TestOwners(t *testing.T) {
	var groups string
	c := start(t, withTLS, func(cfg *processes.Config) {
		pools := filepath.Join(cfg.Dir, "pools.xml")
		groups = filepath.Join(cfg.Dir, "groups")
		if err := os.WriteFile(groups, []byte("ops:x:1:olga\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(pools, []byte(`<allocations><pool name="bobs"><aclSubmitApps>bob</aclSubmitApps></pool></allocations>`), 0o666); err != nil {
			t.Fatal(err)
		}
		cfg.JobTrackerFlags = append(cfg.JobTrackerFlags, "-pools", pools, "-admins", "root,eve ops", "-groups", groups)
		cfg.TaskTrackers = 2
	})
	c.await("pools", func() bool {
		status, err := c.client.Cluster(c.ctx)
		return err == nil && strings.HasSuffix(status.Pools.Status, "pools.xml")
	})
	c.mrsubmit("run", "-pool", "bobs", c.Program("paced"), "-input", filepath.Join(c.dir, "pools.xml"), "-output", filepath.Join(c.dir, "none")).
		Fail(1, `pool bobs is not open to "`+processes.User+`"`)
	j := c.paced(3, "-gate", "-gated-map", "1")
	j.AwaitTraces("m", "ended", 2)
	id := jobID.FindString(c.mrsubmit("list").Succeed())
	job, err := wire.ParseJobID(id)
	if err != nil {
		t.Fatal(err)
	}
	denied := []string{"not allowed: bob cannot", id + ", which is alice's: only alice or an administrator, or a user in mapreduce.job.acl-modify-job can"}
	awaitAttempts := func() { // a new leader does not know the attempts yet
		t.Helper()
		c.await("attempts", func() bool {
			a, err := c.client.Attempts(c.ctx, job)
			return err == nil && len(a.Items) > 2
		})
	}
	for range 2 { // two leaders
		awaitAttempts()
		c.asUser("bob", "kill", id).Fail(1, append(denied, "kill")...)
		c.asUser("bob", "suspend", id).Fail(1, append(denied, "change")...)
		c.asUser("bob", "set", id, "priority=HIGH").Fail(1, append(denied, "change")...)
		for _, command := range []string{"logs", "status", "counters", "explain", "wait"} {
			c.asUser("bob", command, id).Fail(1, "not allowed: bob cannot see "+id+", which is alice's: only alice or an administrator, or a user in mapreduce.job.acl-view-job can")
		}
		c.asUser("bob", "cluster", "scheduler", "fifo").Fail(1, "bob may not change the scheduler", "administrators (root, eve, group ops)")
		c.asUser("bob", "cluster", "remove", "jt2").Fail(1, "bob may not remove voters", "administrators (root, eve, group ops)")
		c.mrsubmit("cluster", "scheduler", "fifo").Fail(1, "alice may not change the scheduler")
		c.mrsubmit("set", id, "pool=bobs").Fail(1, `pool bobs is not open to "alice"`)
		if printed := c.asUser("bob", "list").Succeed(); !trial.ContainsAll(printed, []string{"OWNER", processes.User, "(hidden)"}) {
			t.Errorf("mrsubmit list prints\n%s", printed)
		}
		c.mrsubmit("set", id, "weight=2").Succeed()
		c.mrsubmit("logs", id).Succeed()
		if err := c.leader().Kill(); err != nil {
			t.Fatal(err)
		}
		for _, d := range c.JobTrackers {
			if !d.Running() {
				if err := errors.Join(d.Start(), d.Ready(c.ctx)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	awaitAttempts()
	c.asUser("root", "logs", id).Succeed()
	c.asUser("eve", "cluster", "scheduler", "fair").Succeed()
	c.asUser("olga", "cluster", "scheduler", "fifo").Succeed()
	c.asUser("olga", "status", id).Succeed()
	if err := errors.Join(os.WriteFile(groups+".new", []byte("ops:x:1:oscar\n"), 0o600), os.Rename(groups+".new", groups)); err != nil {
		t.Fatal(err)
	}
	c.await("new groups", func() bool {
		return !slices.ContainsFunc(c.JobTrackers, func(d *processes.Daemon) bool { return !d.Logged("new groups") })
	})
	c.asUser("olga", "status", id).Fail(1, "olga cannot see "+id)
	if printed := c.asUser("root", "set", id, "pool=bobs", "priority=HIGH").Succeed(); !trial.ContainsAll(printed, []string{"pool bobs", "priority HIGH"}) {
		t.Errorf("mrsubmit set prints %s", printed)
	}
	if !slices.ContainsFunc(c.JobTrackers, func(d *processes.Daemon) bool {
		return d.Logged("a request is refused") && d.Logged("client bob") && d.Logged("bob cannot kill "+id)
	}) {
		t.Error("no job tracker has logged the refused user")
	}
	j.OpenGate()
	j.checkSuccess()
	c.asUser("bob", "logs", id).Fail(1, "bob cannot see") // from the history
	c.asUser("bob", "history", id).Fail(1, "bob cannot see "+id)
	if printed := c.asUser("bob", "history").Succeed(); !trial.ContainsAll(printed, []string{id, processes.User, "(hidden)"}) {
		t.Errorf("mrsubmit history prints\n%s", printed)
	}
	c.mrsubmit("history", id).Succeed()
	c.mrsubmit("logs", id).Succeed()
	c.asUser("root", "logs", id).Succeed()
}

// Only the daemons' user can read staged files and data directories.
func TestPrivateFiles(t *testing.T) {
	c := start(t, func(cfg *processes.Config) { cfg.JobTrackers, cfg.TaskTrackers = 1, 1 })
	j := c.paced(2, "-gate")
	j.AwaitBegan("m", 2)
	staging := filepath.Join(c.dir, "staging")
	checkModes := func(wants ...string) {
		t.Helper()
		var found []string
		err := filepath.WalkDir(staging, func(path string, e fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // removed meanwhile
			}
			if err != nil || path == staging { // the test itself has created it
				return err
			}
			info, err := e.Info()
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			found = append(found, strings.TrimPrefix(path, staging))
			if open := info.Mode().Perm() & 0o077; open != 0 {
				t.Errorf("%s has mode %v", path, info.Mode())
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if all := strings.Join(found, "\n"); !trial.ContainsAll(all, wants) {
			t.Errorf("the staging directory has\n%s\nwant also %q", all, wants)
		}
	}
	checkModes("/clusters/", "/programs/", "/"+wire.StagedSubmission, "/"+wire.StagedSplits)
	j.OpenGate()
	j.checkSuccess()
	checkModes("/clusters/", "/history/")
	for _, d := range c.All() {
		info, err := os.Stat(d.Data())
		if err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", d.Data(), info.Mode(), err)
		}
		if d.Logged("is open to other users") {
			t.Errorf("%s logs that its directory is open", d.ID)
		}
	}
}

// Daemons and mrsubmit refuse keys that are missing or readable by others, and name them.
func TestKeyFiles(t *testing.T) {
	dir := t.TempDir()
	authority, err := identity.OpenAuthority(filepath.Join(dir, "authority"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	commands := map[identity.Role]struct {
		code int
		args []string
	}{
		identity.JobTracker:  {2, []string{"jobtracker", "-id", "a", "-data", filepath.Join(dir, "data"), "-listen", "127.0.0.1:0", "-raft", "127.0.0.1:0", "-gossip", "127.0.0.1:0"}},
		identity.TaskTracker: {2, []string{"tasktracker", "-id", "a", "-data", filepath.Join(dir, "data"), "-listen", "127.0.0.1:0", "-gossip", "127.0.0.1:0", "-join", "127.0.0.1:1"}},
		identity.Client:      {1, []string{"mrsubmit", "list", "-jobtracker", "127.0.0.1:1"}},
	}
	n := 0
	for role, command := range commands {
		files := []string{identity.KeyFile, identity.CertFile, identity.AuthorityFile}
		if role != identity.Client {
			files = append(files, identity.GossipFile)
		}
		for _, file := range files {
			for what, damage := range map[string]func(name string) error{
				"no such file": os.Remove,
				"chmod 600":    func(name string) error { return os.Chmod(name, 0o644) },
			} {
				if what == "chmod 600" && (file == identity.CertFile || file == identity.AuthorityFile) {
					continue // no secrets
				}
				n++
				certs := filepath.Join(dir, fmt.Sprint(n))
				if err := authority.Issue(certs, identity.Peer{Role: role, Name: "a"}, time.Now(), time.Time{}); err != nil {
					t.Fatal(err)
				}
				name := filepath.Join(certs, file)
				if err := damage(name); err != nil {
					t.Fatal(err)
				}
				checkRefused(t, command.code, []string{name, what}, command.args[0], append(slices.Clone(command.args[1:]), "-tls-dir", certs)...)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "data")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a refused daemon has created its data directory: %v", err)
	}
}
