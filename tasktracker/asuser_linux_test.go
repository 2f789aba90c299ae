package tasktracker

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/quernmr/quern/tasktracker/isolation"
	"github.com/quernmr/quern/wire"
)

// spyUID is a user without rights. No account of the machine has it.
const spyUID = 2001

// alsoAsUser runs the test that calls it again as a user without rights, if this process is root's: most task trackers
// are not root's, and their namespaces have other rights.
func alsoAsUser(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	t.Run("user", func(t *testing.T) {
		dir := reachable(t)
		program, home := filepath.Join(dir, "test"), filepath.Join(dir, "home")
		if err := errors.Join(copySelf(program), os.Mkdir(home, 0o700), os.Chown(home, spyUID, spyUID)); err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(t.Name(), "/")
		cmd := exec.Command(program, "-test.run=^"+name+"$", "-test.v")
		cmd.Dir = home
		cmd.Env = append(os.Environ(), "TMPDIR="+home, "HOME="+home)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: spyUID, Gid: spyUID}}
		out, err := cmd.CombinedOutput()
		switch {
		case err != nil:
			t.Errorf("%v:\n%s", err, out)
		case strings.Contains(string(out), "--- SKIP"):
			t.Skipf("%s", out)
		case !strings.Contains(string(out), "--- PASS: "+name):
			t.Errorf("the test did not run:\n%s", out)
		}
	})
}

// copySelf copies the program of this process, which the user cannot reach.
func copySelf(to string) error {
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer self.Close()
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, self)
	return errors.Join(err, f.Close())
}

// TestThreadsAreLimited: without control groups, the system limits the threads of a worker in namespaces of its own, by its limit of processes
// if it has one. The next attempt has its own limit.
func TestThreadsAreLimited(t *testing.T) {
	alsoAsUser(t)
	if os.Geteuid() == 0 {
		return // the system does not limit root
	}
	l := startIsolated(t, Config{Temporary: true}, &wire.Submission{})
	task := wire.TaskID{Job: job1, Kind: wire.Map}
	r := l.final(l.launchAs(task, wire.Launch{Index: doStartThreads, Processes: 2}), wire.AttemptFailed)
	if !strings.Contains(r.Error, "limits: quern.task.processes=2") {
		t.Errorf("600 threads of 2 processes: %q, %s", r.Error, r.Log)
	}
	limits := l.final(l.launchAs(task, wire.Launch{Index: doStartThreads}), wire.AttemptSucceeded).Counters
	if soft, hard := limits.Get("limits", "soft"), limits.Get("limits", "hard"); soft != hard || hard > isolation.MaxTasks {
		t.Errorf("the limits are %d and %d", soft, hard)
	}
}
