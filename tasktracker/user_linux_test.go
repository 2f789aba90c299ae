package tasktracker

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/quernmr/quern/tasktracker/account"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/tasktracker/isolation"
	"github.com/quernmr/quern/wire"
)

// Accounts of the tests. No account of the machine has them.
const (
	annUID, bobUID = 23001, 23005
	userMap        = "ann 23001 23002\nbob 23005 23006\nlow 999 1000\n"
)

// startAsOwners starts a tracker that runs jobs as their owners, or skips the test.
func startAsOwners(t *testing.T, sub *wire.Submission) *leader {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can run jobs as other users")
	}
	alone := exec.Command("true")
	alone.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC}
	if err := alone.Run(); err != nil {
		t.Skipf("this machine permits root no namespaces: %v", err)
	}
	probe := isolation.Config{}
	switch err := probe.Probe(filepath.Join(t.TempDir(), "probe"), &account.Account{UID: annUID, GID: annUID}); {
	case err == nil:
	case strings.Contains(err.Error(), "mount") || strings.Contains(err.Error(), "proc /proc"):
		t.Skipf("this machine does not run jobs as other users: %v", err)
	default:
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(file, []byte(userMap), 0o600); err != nil {
		t.Fatal(err)
	}
	return startSubmission(t, Config{Isolation: Isolation{Level: isolation.User, Users: account.Users{Map: file, Min: 1000}}}, sub)
}

// launchFor launches a map of job 1 for an owner.
func (l *leader) launchFor(owner string, n, action int) wire.AttemptID {
	l.t.Helper()
	return l.launchAs(wire.TaskID{Job: job1, Kind: wire.Map, N: n}, wire.Launch{Index: action, Owner: owner})
}

// reachable returns a directory that other users can reach. Those of testing are for root alone.
func reachable(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "quern-user-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// fileOf makes a file of a user, in a directory of the user with a mode.
func fileOf(t *testing.T, name string, uid int, dirMode, mode os.FileMode) string {
	t.Helper()
	dir := filepath.Dir(name)
	err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(name, []byte("text"), 0o600),
		os.Chown(dir, uid, uid+1), os.Chown(name, uid, uid+1), os.Chmod(name, mode), os.Chmod(dir, dirMode))
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func uidOf(t *testing.T, name string) uint32 {
	t.Helper()
	info, err := os.Lstat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Uid
}

// TestRunAsOwner: a worker and what it makes have the user and group of the job's owner, without capabilities. It is
// used again, and the tracker keeps its map output.
func TestRunAsOwner(t *testing.T) {
	l := startAsOwners(t, &wire.Submission{})
	for n := range 2 {
		got := l.final(l.launchFor("ann", n, doReport), wire.AttemptSucceeded).Counters
		for _, line := range []string{
			"Uid: 23001 23001 23001 23001", "Gid: 23002 23002 23002 23002", "Groups:", "NoNewPrivs: 1",
			"CapInh: 0000000000000000", "CapPrm: 0000000000000000", "CapEff: 0000000000000000", "CapBnd: 0000000000000000", "CapAmb: 0000000000000000",
		} {
			if got.Get("status", line) != 1 {
				t.Errorf("its status is not %q: %v", line, got["status"])
			}
		}
		for _, v := range []string{"USER=ann", "LOGNAME=ann", "HOME=/tmp", "HADOOP_USER_NAME=root"} {
			if got.Get("env", v) != 1 {
				t.Errorf("no variable %s: %v", v, got["env"])
			}
		}
		if pid := got.Get("pid", "self"); pid != 1 {
			t.Errorf("the worker has number %d in its namespace", pid)
		}
	}
	id := l.launchFor("ann", 2, doMap)
	l.final(id, wire.AttemptSucceeded)
	dir := filepath.Dir(core.MapOutputPath(l.dir, job1, 2, id.N))
	for _, name := range []string{filepath.Dir(dir), dir, filepath.Join(dir, core.OutputFile), filepath.Join(dir, core.ReportFile)} {
		if uid := uidOf(t, name); uid != annUID {
			t.Errorf("%s belongs to user %d", name, uid)
		}
	}
	if info, err := os.Stat(filepath.Dir(dir)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the job's directory has mode %v", info.Mode())
	}
	// The staging directory is ann's now. A submission of another owner with the same one is refused.
	if r := l.final(l.launchFor("bob", 3, doReport), wire.AttemptFailed); !strings.Contains(r.Error, "belongs to user 23001, not to user 23005 of bob") {
		t.Errorf("another owner: %s", r.Error)
	}
}

// TestOwnersApart: a job has the rights of its owner for the files that it names, and no others, also where a mount would
// hide that a directory around a file is private.
func TestOwnersApart(t *testing.T) {
	dir := reachable(t)
	own := fileOf(t, dir+"/bob/file", bobUID, 0o700, 0o600)
	public := fileOf(t, dir+"/public/file", annUID, 0o755, 0o644)
	secret := fileOf(t, dir+"/public/secret", annUID, 0o755, 0o600)
	private := fileOf(t, dir+"/private/file", annUID, 0o700, 0o644)
	exploits := []string{"read=" + secret, "write=" + public, "write=" + dir + "/public/new", "read=" + private}
	allowed := []string{"read=" + own, "write=" + own, "read=" + public, "write=" + dir + "/bob/new"}
	sub := &wire.Submission{Program: wire.Program{Args: slices.Concat(exploits, allowed)}, Plan: wire.Plan{Jobs: []wire.JobPlan{{
		Inputs: []wire.InputPlan{{Paths: []string{"file://" + dir + "/public"}}}, Output: "file://" + dir + "/bob/out",
	}}}}
	l := startAsOwners(t, sub)
	got := l.final(l.launchFor("bob", 0, doSpy), wire.AttemptSucceeded).Counters["worked"]
	for _, x := range exploits {
		if got[x] != 0 {
			t.Errorf("worked: %s", x)
		}
	}
	for _, x := range allowed {
		if got[x] != 1 {
			t.Errorf("did not work: %s", x)
		}
	}
	if uid := uidOf(t, dir+"/bob/new"); uid != bobUID {
		t.Errorf("the new file belongs to user %d", uid)
	}
	for want, plan := range map[string]wire.JobPlan{
		"input file://" + private + ": lstat " + private + ": permission denied": {Inputs: []wire.InputPlan{{Paths: []string{"file://" + private}}}},
		"output file://" + dir + "/private/new/out: mkdir":                       {Output: "file://" + dir + "/private/new/out"},
		"output file://" + dir + "/public/new/out: mkdir":                        {Output: "file://" + dir + "/public/new/out"},
	} {
		l := startAsOwners(t, &wire.Submission{Plan: wire.Plan{Jobs: []wire.JobPlan{plan}}})
		if r := l.final(l.launchFor("bob", 0, doSucceed), wire.AttemptFailed); !strings.Contains(r.Error, want) {
			t.Errorf("%q: want %q", r.Error, want)
		}
	}
	for _, name := range []string{"/private/new", "/public/new"} {
		if _, err := os.Lstat(dir + name); err == nil {
			t.Errorf("%s exists", name)
		}
	}
}

// TestPlantedLinks: a job puts links where the tracker, which is root's, makes the directories of the next attempt and of a
// home. The tracker makes and changes nothing where they lead, and refuses to use them.
func TestPlantedLinks(t *testing.T) {
	victim := reachable(t)
	next := wire.AttemptID{Task: wire.TaskID{Job: job1, Kind: wire.Map, N: 1}, N: 1002}
	link := func(name string) string { return "link=" + victim + ":../../" + name }
	l := startAsOwners(t, &wire.Submission{Program: wire.Program{Args: []string{link(next.String()), link("home-00000")}}})
	if got := l.final(l.launchFor("ann", 0, doSpy), wire.AttemptSucceeded).Counters["worked"]; len(got) != 2 {
		t.Fatalf("the job could not put links into its directory: %v", got)
	}
	if id := l.launchFor("ann", 1, doMap); id != next {
		t.Fatalf("the next attempt is %v", id)
	}
	if r := l.final(next, wire.AttemptFailed); !strings.Contains(r.Error, "make the attempt's directories") {
		t.Errorf("the attempt with a planted directory: %s", r.Error)
	}
	other := startTracker(t, "t2", t.TempDir())
	output := *other.succeed(wire.Map, 2, doMap).Output
	l.send(&wire.SetHome{Epoch: 1, Job: job1, Partition: 0, Generation: wire.Generation{Epoch: 1, N: 1}, Maps: 1})
	l.send(wire.OutputsOf(1, job1, output))
	l.final(l.launchFor("ann", 3, doSucceed), wire.AttemptSucceeded) // the tracker still works
	mustBeEmpty(t, victim)
	if uid := uidOf(t, victim); uid != 0 {
		t.Errorf("the directory of root belongs to user %d", uid)
	}
}

// TestStagedLink: the owner of a submission replaces a staged file by a link. The tracker, which is root's, does not
// read where it leads, and its error tells nothing about that file.
func TestStagedLink(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := startAsOwners(t, &wire.Submission{})
	dir := strings.TrimPrefix(l.staging, "file://")
	staged := filepath.Join(dir, wire.StagedSubmission)
	if err := errors.Join(os.Remove(staged), os.Symlink(secret, staged), os.Lchown(staged, annUID, annUID+1), os.Chown(dir, annUID, annUID+1)); err != nil {
		t.Fatal(err)
	}
	r := l.final(l.launchFor("ann", 0, doSucceed), wire.AttemptFailed)
	if sum := fmt.Sprintf("%x", sha256.Sum256([]byte("text"))); strings.Contains(r.Error, sum[:8]) || !strings.Contains(r.Error, "path escapes from parent") {
		t.Errorf("the error is %s", r.Error)
	}
}

// TestOwnerWithoutAccount: the job of an owner without a permitted account fails for good. The error names the owner, the
// task tracker and the reason.
func TestOwnerWithoutAccount(t *testing.T) {
	l := startAsOwners(t, &wire.Submission{})
	for owner, reason := range map[string]string{
		"zoe":  `this machine has no account "zoe"`,
		"low":  "account low has user id 999, and the lowest one is 1000 (-min-uid)",
		"root": "account root is root's",
		"":     "the job has no owner",
	} {
		r := l.final(l.launchFor(owner, 0, doSucceed), wire.AttemptFailed)
		want := fmt.Sprintf("task tracker t1: jobs of %q do not run here (-isolation user): %s", owner, reason)
		if !strings.Contains(r.Error, want) || !r.Fatal {
			t.Errorf("%q, fatal %t; want %q", r.Error, r.Fatal, want)
		}
	}
}

// TestUserNeverFallsBack: a tracker that cannot run jobs as their owners does not start with -isolation user.
func TestUserNeverFallsBack(t *testing.T) {
	cfg := Config{Workers: failingIsolation{}, Isolation: Isolation{Level: isolation.User, Users: account.Users{Min: 1000}}}
	if level, _, err := cfg.isolate(); err == nil {
		t.Errorf("it starts with level %q", level)
	}
	if err := cfg.Isolation.checkUsers(1000); err == nil || !strings.Contains(err.Error(), "the task tracker must be root's, and has user id 1000") {
		t.Errorf("a tracker that is not root's: %v", err)
	}
	cfg.Isolation.Users.Map = filepath.Join(t.TempDir(), "missing")
	if err := cfg.Isolation.checkUsers(0); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing map: %v", err)
	}
}

// TestStagingBelowStaging: a staging directory in another submission's one is refused, as a job could put links there.
func TestStagingBelowStaging(t *testing.T) {
	l := startAsOwners(t, &wire.Submission{})
	own := strings.TrimPrefix(l.staging, "file://")
	inner := filepath.Join(filepath.Dir(own), "outer", "inner")
	if err := errors.Join(os.Mkdir(filepath.Dir(inner), 0o755), os.Rename(own, inner)); err != nil {
		t.Fatal(err)
	}
	l.staging = "file://" + inner
	if r := l.final(l.launchFor("ann", 0, doSucceed), wire.AttemptFailed); !strings.Contains(r.Error, "is not directly in") {
		t.Errorf("the error is %s", r.Error)
	}
}
