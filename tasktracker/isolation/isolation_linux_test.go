package isolation

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/quernmr/quern/tasktracker/isolation/enter"
	"github.com/quernmr/quern/wire"
)

// probeVariable makes the test binary hide its memory, as a daemon does, and probe in a directory.
const probeVariable = "QUERN_TEST_PROBE"

// keyringVariable makes the test binary print the number of its session's keyring.
const keyringVariable = "QUERN_TEST_KEYRING"

func TestMain(m *testing.M) {
	if os.Getenv(keyringVariable) != "" {
		fmt.Print(unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, true))
		os.Exit(0)
	}
	if dir := os.Getenv(probeVariable); dir != "" {
		unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
		for data, c := range map[string]Config{
			dir:                              {Hidden: []string{dir}},
			filepath.Join(dir, ".x", "data"): {Hidden: []string{dir + "/.x/data"}, Home: dir}, // as by default
		} {
			if err := c.Probe(filepath.Join(data, "run", "probe"), nil); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// skipIfNotPermitted skips the test if the machine permits no namespaces at all.
func skipIfNotPermitted(t *testing.T) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "-test.run=^$")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS}
	if err := cmd.Run(); err != nil {
		t.Skipf("this machine permits no namespaces: %v", err)
	}
}

// TestProbe: a daemon that hides its memory isolates programs, also if it is not root's.
func TestProbe(t *testing.T) {
	skipIfNotPermitted(t)
	for _, user := range []uint32{uint32(os.Geteuid()), 2001} {
		dir, err := os.MkdirTemp("", "probe")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), probeVariable+"="+dir)
		if int(user) != os.Geteuid() {
			if err := os.Chown(dir, int(user), int(user)); err != nil {
				t.Skipf("only root can try other users: %v", err)
			}
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			if strings.Contains(string(out), "mount") || strings.Contains(string(out), "proc /proc") {
				t.Skipf("this machine does not isolate jobs: %s", out)
			}
			t.Errorf("user %d: %v: %s", user, err, out)
		}
	}
}

// TestStartCopiesNothing: the start of a helper does not copy the memory of the daemon, which would then have a page fault
// for each page that it writes.
func TestStartCopiesNothing(t *testing.T) {
	skipIfNotPermitted(t)
	const pages = 4096
	held, err := unix.Mmap(-1, 0, pages*os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(held) }()
	_ = unix.Madvise(held, unix.MADV_NOHUGEPAGE) // fails without huge pages
	write := func() (faults int64) {
		var before, after unix.Rusage
		_ = unix.Getrusage(unix.RUSAGE_SELF, &before) // never fails
		for i := 0; i < len(held); i += os.Getpagesize() {
			held[i]++
		}
		_ = unix.Getrusage(unix.RUSAGE_SELF, &after)
		return after.Minflt - before.Minflt
	}
	write()
	if err := (&Config{}).Probe(filepath.Join(t.TempDir(), "probe"), nil); err != nil {
		t.Skipf("this machine does not isolate jobs: %v", err)
	}
	if faults := write(); faults > pages/2 {
		t.Errorf("%d pages needed %d page faults after the start of a helper", pages, faults)
	}
}

// TestProbeNamesStep: an error of the helper names the step that failed.
func TestProbeNamesStep(t *testing.T) {
	skipIfNotPermitted(t)
	dir := t.TempDir()
	plan := &enter.Plan{UID: os.Geteuid(), GID: os.Getegid(), Root: dir, Dir: dir, Steps: []enter.Step{{Kind: enter.Bind, At: "/x", From: dir + "/none"}}}
	from, err := Pipe(plan)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	cmd := exec.Command("true")
	cmd.ExtraFiles = []*os.File{from, from, from}
	cmd.SysProcAttr = new(syscall.SysProcAttr)
	Command(cmd, from, false)
	out, err := cmd.CombinedOutput()
	if want := enter.Failed + " show " + dir + "/none: no such file or directory\n"; err == nil || string(out) != want {
		t.Errorf("%v: %q, want %q", err, out, want)
	}
}

// render writes steps as text, without those that every plan has.
func render(steps []enter.Step, below string) (lines []string) {
	for _, s := range steps {
		if !strings.HasPrefix(s.At, below) {
			continue
		}
		line := string(s.Kind) + " " + strings.TrimPrefix(s.At, below)
		if s.Write {
			line += " write"
		}
		if s.From != s.At && s.From != "" {
			line += " from " + strings.TrimPrefix(s.From, below)
		}
		lines = append(lines, line)
	}
	return lines
}

// TestPlan: outer directories come before inner ones, hidden ones after what shows them, and the worker's own
// directories last. The new root has the links on the way to a path, too.
func TestPlan(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"data/run/7", "disk/in", "disk/quern", "staging/sub", "staging/other", "home/.ssh", "home/.kube"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("disk/in", filepath.Join(top, "books")); err != nil {
		t.Fatal(err)
	}
	url := "file://" + top
	sub := &wire.Submission{Staging: url + "/staging/sub", Plan: wire.Plan{Jobs: []wire.JobPlan{
		{Inputs: []wire.InputPlan{{Paths: []string{url + "/books/{a,b}*"}}}, Output: url + "/out/x/job"},
		{Inputs: []wire.InputPlan{{From: 1}, {Paths: []string{url + "/disk", "hdfs:///elsewhere"}}}, Output: url + "/disk/out"},
		{Inputs: []wire.InputPlan{{Paths: []string{url + "/missing"}}}},
	}}}
	c := Config{Hidden: []string{top + "/data", top + "/disk/quern"}, Home: top + "/home"}
	plan, err := c.Plan(&Worker{Submission: sub, Dir: top + "/data/run/7", Jobs: []string{top + "/disk/quern/jobs/job_1_1"}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"link /books from disk/in", "bind /disk write", "bind /disk/in", "empty /home", "bind /out/x write",
		"empty /disk/quern", "bind /data/run/7", "bind /disk/quern/jobs/job_1_1 write", "bind /staging/sub write",
	}
	if got := render(plan.Steps, top); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the steps are\n%s", strings.Join(got, "\n"))
	}
	for _, path := range []string{"/home/.ssh/id", "/data/run/8", "/staging/other", "/staging", "/disk/quern"} {
		sub.Plan.Jobs = []wire.JobPlan{{Inputs: []wire.InputPlan{{Paths: []string{url + path}}}}}
		if _, err := c.Plan(&Worker{Submission: sub, Dir: top + "/data/run/7"}); err == nil {
			t.Errorf("input %s is shown", path)
		}
	}
}

// TestPlanSockets: no job sees processes, devices and sockets of the machine by naming them as inputs. A path that the
// operator shows is permitted.
func TestPlanSockets(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink("/run", link); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "socket")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for input, refused := range map[string]bool{
		"/proc": true, "/proc/*": true, "/proc/1/environ": true, "/run": true, "/run/user/1000/*": true, link + "/user": true, "/dev/*": true, "/dev/fuse": true,
		"/dev/shm/in": false, "/dev/shm/x/*": false, "/dev/shm/*": true, "/tmp/*": true, "/tmp": true, "/var/tmp/a?": true, socket: true, "/runs/in": false, dir: false,
	} {
		sub := &wire.Submission{Staging: "hdfs:///s/sub", Plan: wire.Plan{Jobs: []wire.JobPlan{{Inputs: []wire.InputPlan{{Paths: []string{"file://" + input}}}}}}}
		_, err := new(Config).Plan(&Worker{Submission: sub, Dir: filepath.Join(dir, "run")})
		if (err != nil) != refused || err != nil && !strings.Contains(err.Error(), "socket") {
			t.Errorf("input %s: %v", input, err)
		}
		if _, err := (&Config{Shown: []string{"/proc", "/run", "/dev"}}).Plan(&Worker{Submission: sub, Dir: filepath.Join(dir, "run")}); err != nil && strings.Contains(err.Error(), "processes, devices and sockets") {
			t.Errorf("input %s in a shown directory: %v", input, err)
		}
	}
}

// TestPlanPins: a job can rename no directory around a hidden one, and cannot write around a hidden file.
func TestPlanPins(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"run", "disk/a/b/quern", "logs/a"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(top+"/logs/a/audit", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := Config{Hidden: []string{top + "/disk/a/b/quern", top + "/logs/a/audit"}}
	sub := &wire.Submission{Staging: "hdfs:///s/sub", Plan: wire.Plan{Jobs: []wire.JobPlan{{
		Inputs: []wire.InputPlan{{Paths: []string{"file://" + top + "/disk/a/b"}}}, Output: "file://" + top + "/disk/out",
	}}}}
	plan, err := c.Plan(&Worker{Submission: sub, Dir: top + "/run"})
	if err != nil {
		t.Fatal(err)
	}
	want := "bind /disk write\nbind /disk/a write\nbind /disk/a/b\nempty /disk/a/b/quern"
	if got := strings.Join(render(plan.Steps, top+"/disk"), "\n"); strings.ReplaceAll(want, " /disk", " ") != got {
		t.Errorf("the steps are\n%s", got)
	}
	for _, output := range []string{"/logs/out", "/logs/a/out"} {
		sub.Plan.Jobs[0].Output = "file://" + top + output
		if _, err := c.Plan(&Worker{Submission: sub, Dir: top + "/run"}); err == nil {
			t.Errorf("output %s is permitted beside the audit log", output)
		}
	}
	c.Replaced = []string{top + "/logs/a/audit", top + "/logs/a/audit.1"}
	sub.Plan.Jobs[0].Output = "file://" + top + "/disk/out"
	for input, refused := range map[string]bool{"/logs": true, "/logs/a": true, "/logs/a/audit*": true, "/logs/b": false, "/disk/a/b": false} {
		sub.Plan.Jobs[0].Inputs = []wire.InputPlan{{Paths: []string{"file://" + top + input}}}
		if _, err := c.Plan(&Worker{Submission: sub, Dir: top + "/run"}); (err != nil) != refused || err != nil && !strings.Contains(err.Error(), top+"/logs/a/audit") {
			t.Errorf("input %s, where the audit log is: %v", input, err)
		}
	}
}

// TestPlanHomeIsNone: an account may have a file as its home directory, which the worker does not see as an empty directory.
func TestPlanHomeIsNone(t *testing.T) {
	c := Config{Home: os.DevNull}
	plan, err := c.Plan(&Worker{Submission: &wire.Submission{Staging: "hdfs:///s/sub"}, Dir: t.TempDir()})
	if err != nil || slices.Contains(render(plan.Steps, "/dev"), "empty /null") {
		t.Errorf("%v: %v", plan, err)
	}
}

// TestPlanHome: no job writes in the home directory of the daemon's account, or in a directory that has it in it. There it
// could write scripts that the account executes. Directories in it are permitted. Links change nothing.
func TestPlanHome(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"run", "srv/accounts/ann/.ssh", "srv/accounts/bob"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("srv/accounts", top+"/home"); err != nil {
		t.Fatal(err)
	}
	for _, home := range []string{"/srv/accounts/ann", "/home/ann", "/home/ann/"} {
		for output, want := range map[string]string{
			"/srv/accounts/ann/out": "/ann is the home directory of the task tracker's account (-isolation namespace): choose an output in a directory in " + top + "/srv/accounts/ann, such as " + top + "/srv/accounts/ann/jobs/out",
			"/home/ann/out":         "is the home directory", "/srv/accounts/out": "has the home directory", "/home/out": "has the home directory",
			"/srv/out": "has the home directory", "/out": "has the home directory", "/home/ann/.new/out": "begins with a dot", "/home/ann/.ssh/out": "where jobs cannot write",
			"/home/ann/jobs/out": "", "/home/ann/a/b/out": "", "/home/bob/out": "", "/srv/accounts/anna/out": "", "/data/out": "",
		} {
			c := Config{Home: top + home}
			sub := &wire.Submission{Staging: "hdfs:///s/sub", Plan: wire.Plan{Jobs: []wire.JobPlan{{Output: "file://" + top + output}}}}
			_, err := c.Plan(&Worker{Submission: sub, Dir: top + "/run"})
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("home %s, output %s: %v, want %q", home, output, err, want)
			}
		}
		plan, err := (&Config{Home: top + home}).Plan(&Worker{Submission: &wire.Submission{Staging: "hdfs:///s/sub"}, Dir: top + "/run"})
		if err != nil || !slices.Contains(render(plan.Steps, top), "empty /srv/accounts/ann") {
			t.Errorf("home %s is not empty: %v, %v", home, plan, err)
		}
	}
}

// TestPlanSession: a step of a driver reads and writes in the results of the driver's session, which is in the staging
// directory. It sees nothing else there.
func TestPlanSession(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"run", "staging/sub", "staging/sessions/s/results/1", "staging/sessions/other/results/1"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	staging := "file://" + top + "/staging"
	plan := func(result, input string) (string, error) {
		sub := &wire.Submission{Staging: staging + "/sub", Plan: wire.Plan{Jobs: []wire.JobPlan{{
			Inputs: []wire.InputPlan{{Paths: []string{staging + input}}}, Output: staging + result,
		}}}}
		c := Config{}
		plan, err := c.Plan(&Worker{Submission: sub, Dir: top + "/run", Results: top + "/staging/sessions/s/results"})
		if err != nil {
			return "", err
		}
		return strings.Join(render(plan.Steps, top+"/staging/sessions"), "\n"), nil
	}
	got, err := plan("/sessions/s/results/2", "/sessions/s/results/1")
	if err != nil || got != "bind /s/results write" {
		t.Errorf("steps %q, %v", got, err)
	}
	for _, c := range [][2]string{
		{"/sessions/s/results/2", "/sessions/other/results/1"}, {"/sessions/s/results/2", "/sessions/s"}, {"/sessions/other/results/2", "/sub"},
		{"/sessions/s/program", "/sub"}, {"/sessions/data-2", "/sub"}, {"/sessions/s/results/../../../x", "/sub"},
	} {
		if got, err := plan(c[0], c[1]); err == nil {
			t.Errorf("result %s, input %s: %s", c[0], c[1], got)
		}
	}
}
