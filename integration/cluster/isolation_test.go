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

// TestJobsAsOwners: with -isolation user, a job reads and writes local files as its owner, also through the staging
// directory, a shuffle between machines and a commit. The job of an owner without an account fails at once.
func TestJobsAsOwners(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can run jobs as other users")
	}
	dir, err := os.MkdirTemp("/tmp", "quern-owners-") // other users can reach it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	const uid = 23001
	text, users := trial.Lines(4), dir+"/users"
	err = errors.Join(os.Chmod(dir, 0o755), os.WriteFile(users, fmt.Appendf(nil, "%s %d %d\n", processes.User, uid, uid), 0o600),
		os.Mkdir(dir+"/alice", 0o700), os.WriteFile(dir+"/alice/in", text, 0o600), os.Chown(dir+"/alice/in", uid, uid), os.Chown(dir+"/alice", uid, uid))
	if err != nil {
		t.Fatal(err)
	}
	c := start(t, func(cfg *processes.Config) {
		cfg.JobTrackers, cfg.TaskTrackers, cfg.TLS = 1, 2, true
		cfg.MapSlots, cfg.ReduceSlots = 1, 1
		cfg.TaskTrackerFlags = []string{"-isolation", "user", "-user-map", users}
	})
	in, out := dir+"/alice/in", dir+"/alice/out"
	c.mrsubmit(slices.Concat([]string{"run", "-D", "mapreduce.job.reduces=2"}, trial.LinePerSplit(), []string{c.Program("wordcount"), "-input", in, "-output", out})...).Succeed()
	checkCounts(t, out, text)
	err = filepath.WalkDir(out, func(path string, d fs.DirEntry, err error) error {
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
	c.asUser("zoe", "run", c.Program("wordcount"), "-input", in, "-output", dir+"/zoe/out").
		Fail(1, `jobs of "zoe" do not run here (-isolation user): this machine has no account "zoe"`)
}
