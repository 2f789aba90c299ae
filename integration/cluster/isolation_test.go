//go:build linux

package cluster_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/integration/trial"
	"github.com/quernmr/quern/wire"
)

// TestIsolation: where the machine permits it, jobs run in namespaces without being asked. Otherwise the cluster's status
// names the reason. With -isolation none they run in the machine's namespaces.
func TestIsolation(t *testing.T) {
	for _, level := range []string{"", "none"} {
		t.Run(level, func(t *testing.T) {
			c := start(t, func(cfg *processes.Config) {
				cfg.JobTrackers, cfg.TaskTrackers, cfg.TLS = 1, 1, true
				if level != "" {
					cfg.TaskTrackerFlags = []string{"-isolation", level}
				}
			})
			if status := c.mrsubmit("cluster").Succeed(); strings.Contains(status, "jobs are not isolated") {
				t.Skipf("this machine does not isolate jobs: %s", status)
			}
			j := c.paced(2, "-gate")
			j.AwaitBegan("m", 2)
			daemon := c.TaskTrackers[0].Pid()
			for _, worker := range processes.Children(daemon) {
				for _, kind := range []string{"user", "pid", "mnt", "ipc"} {
					own, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", worker, kind))
					if err != nil {
						t.Fatal(err)
					}
					machine, _ := os.Readlink("/proc/self/ns/" + kind)
					if isolated := own != machine; isolated != (level == "") {
						t.Errorf("the worker has the machine's %s namespace: %v", kind, !isolated)
					}
				}
			}
			j.OpenGate()
			j.checkSuccess()
		})
	}
}

// ownerUID is the account of processes.User in asOwners; that of bob follows.
const ownerUID = 23001

// asOwners starts a cluster that runs jobs as their owners. Each owner has a private directory in dir.
func asOwners(t *testing.T) (c *cluster, dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can run jobs as other users")
	}
	dir, err := os.MkdirTemp("/tmp", "quern-owners-") // other users can reach it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	err = os.Chmod(dir, 0o755)
	var users []byte
	for i, name := range []string{processes.User, "bob"} {
		id := ownerUID + i
		users = fmt.Appendf(users, "%s %d %d\n", name, id, id)
		err = errors.Join(err, os.Mkdir(filepath.Join(dir, name), 0o700), os.Chown(filepath.Join(dir, name), id, id))
	}
	if err := errors.Join(err, os.WriteFile(dir+"/users", users, 0o600)); err != nil {
		t.Fatal(err)
	}
	return start(t, func(cfg *processes.Config) {
		cfg.JobTrackers, cfg.TaskTrackers, cfg.TLS = 1, 2, true
		cfg.MapSlots, cfg.ReduceSlots = 1, 1
		cfg.TaskTrackerFlags = []string{"-isolation", "user", "-user-map", dir + "/users"}
	}), dir
}

// ownFile writes a file that only one account can read.
func ownFile(t *testing.T, name string, text []byte, uid int) string {
	t.Helper()
	if err := errors.Join(os.WriteFile(name, text, 0o600), os.Chown(name, uid, uid)); err != nil {
		t.Fatal(err)
	}
	return name
}

// checkOwned checks that an account has a directory and all in it.
func checkOwned(t *testing.T, dir string, uid uint32) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Sys().(*syscall.Stat_t).Uid != uid {
			t.Errorf("%s belongs to user %d", path, info.Sys().(*syscall.Stat_t).Uid)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestJobsAsOwners: with -isolation user, a job reads and writes local files as its owner, also through the staging
// directory, a shuffle between machines and a commit. The job of an owner without an account fails at once.
func TestJobsAsOwners(t *testing.T) {
	c, dir := asOwners(t)
	text := trial.Lines(4)
	in, out := ownFile(t, dir+"/alice/in", text, ownerUID), dir+"/alice/out"
	c.mrsubmit(slices.Concat([]string{"run", "-D", "mapreduce.job.reduces=2"}, trial.LinePerSplit(), []string{c.Program("wordcount"), "-input", in, "-output", out})...).Succeed()
	checkCounts(t, out, text)
	checkOwned(t, out, ownerUID)
	c.asUser("zoe", "run", c.Program("wordcount"), "-input", in, "-output", dir+"/zoe/out").
		Fail(1, `jobs of "zoe" do not run here (-isolation user): this machine has no account "zoe"`)
}

// TestDriversAsOwners: with -isolation user, the results of a driver's steps are its owner's, and no other owner's job can
// read them. All else in the session stays the driver's. A driver that is killed takes up where it stopped, and the
// session is removed at its end. Sessions of two owners may have one name.
func TestDriversAsOwners(t *testing.T) {
	c, dir := asOwners(t)
	in := ownFile(t, dir+"/alice/in", []byte("a\nhang\n"), ownerUID)
	run := func() *trial.Run { return c.mrsubmit("run", c.Program("driven"), "-input", in, "-session", "s") }
	killed := run()
	killed.Await("the third job", func() bool {
		ids := c.submitted()
		return len(ids) == 3 && strings.Contains(c.mrsubmit("status", ids[2]).Succeed(), "1 running")
	})
	for _, pid := range processes.Children(killed.Pid()) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}
	killed.Fail(1, "killed")
	session := filepath.Join(strings.TrimPrefix(c.Staging(), "file://"), wire.StagingSessions, processes.User+"~s")
	kept, err := os.ReadDir(session)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range kept {
		if own := e.Name() == wire.SessionResults; own {
			checkOwned(t, filepath.Join(session, e.Name()), ownerUID)
		} else {
			checkOwned(t, filepath.Join(session, e.Name()), 0)
		}
	}
	results, _ := filepath.Glob(filepath.Join(session, wire.SessionResults, "*"))
	if len(results) < 2 {
		t.Fatalf("results %q", results)
	}
	// A result's records are binary, which wordcount refuses before it starts: a text beside the results stands for them.
	text := ownFile(t, filepath.Join(session, wire.SessionResults, "text"), []byte("a\n"), ownerUID)
	c.asUser("bob", "run", c.Program("wordcount"), "-input", text, "-output", dir+"/bob/out").Fail(1, "which jobs cannot read")
	if err := os.Remove(text); err != nil {
		t.Fatal(err)
	}
	bobs := ownFile(t, dir+"/bob/in", []byte("bob\n"), ownerUID+1)
	if printed := c.asUser("bob", "run", c.Program("driven"), "-input", bobs, "-session", "s").Succeed(); strings.Count(printed, "bob") != 4 {
		t.Errorf("the driver of another owner printed\n%s", printed)
	}
	ownFile(t, in, []byte("b\n"), ownerUID)
	printed := run().Succeed()
	if want := []string{"step 0 a", "step 1 hang", "step 2 b", "step 3 b"}; !trial.ContainsAll(printed, want) || strings.Contains(printed, "step 0 b") {
		t.Errorf("the driver printed\n%s", printed)
	}
	graph, out := ownFile(t, dir+"/alice/graph", []byte("a\tb c\nb\tc\nc\ta\n"), ownerUID), dir+"/alice/ranks"
	c.mrsubmit("run", c.Program("pagerank"), "-input", graph, "-output", out).Succeed()
	checkOwned(t, out, ownerUID)
}
