package tasktracker

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/quernmr/quern/tasktracker/account"
	"github.com/quernmr/quern/tasktracker/isolation"
	"github.com/quernmr/quern/tasktracker/workers"
	"github.com/quernmr/quern/wire"
)

// exploits are what a job tries with the arguments of its program.
var exploits = map[string]func(arg string) bool{
	"read": func(path string) bool {
		text, _ := os.ReadFile(path)
		return len(text) > 0
	},
	"list": func(dir string) bool {
		entries, _ := os.ReadDir(dir)
		return len(entries) > 0
	},
	"writable": func(dir string) bool { return unix.Access(dir, unix.W_OK) == nil }, // without harm to the machine
	"write":    func(path string) bool { return os.WriteFile(path, []byte("by a job"), 0o666) == nil },
	// A job of root must not configure the machine by files of the system, which no process needs to change. They are opened,
	// but not written.
	"settings": func(dir string) bool { return len(writableFiles(dir)) > 0 },
	"connect": func(name string) bool {
		conn, err := net.Dial("unix", name)
		if err == nil {
			conn.Close()
		}
		return err == nil
	},
	"listen-and-connect": func(name string) bool {
		l, err := net.Listen("unix", name)
		if err != nil {
			return false
		}
		defer l.Close()
		conn, err := net.Dial("unix", name)
		if err == nil {
			conn.Close()
		}
		return err == nil
	},
	"key": readKey,
	// In namespaces of its own, a process may mount a new /proc.
	"nested": func(setting string) bool {
		cmd := exec.Command("/proc/self/exe", setting)
		cmd.Env = append(os.Environ(), modeVariable+"=nested")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS}
		return cmd.Run() == nil
	},
	"signal": func(text string) bool {
		pid, _ := strconv.Atoi(text)
		return syscall.Kill(pid, 0) == nil
	},
	"trace": func(text string) bool {
		pid, _ := strconv.Atoi(text)
		return unix.PtraceSeize(pid) == nil
	},
	"mount": func(at string) bool { return unix.Mount("tmpfs", at, "tmpfs", 0, "") == nil },
	"remount": func(at string) bool {
		return unix.Mount("", at, "", unix.MS_REMOUNT|unix.MS_BIND, "") == nil
	},
	"unmount": func(at string) bool { return unix.Unmount(at, unix.MNT_DETACH) == nil },
	"link": func(text string) bool {
		target, name, _ := strings.Cut(text, ":")
		return os.Symlink(target, name) == nil
	},
}

// nested mounts a new /proc, and exits with 0 if it can open a setting there for writing.
func nested() {
	const at = "/tmp/nested-proc"
	err := os.MkdirAll(at, 0o700)
	if err == nil {
		err = unix.Mount("proc", at, "proc", 0, "")
	}
	if err == nil {
		_, err = os.OpenFile(at+os.Args[1], os.O_WRONLY, 0)
	}
	fmt.Fprintln(os.Stderr, err)
	if err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// readKey reads a key in the keyring of the daemon's user. Its own session keyring gets all keyrings that it can see.
func readKey(description string) bool {
	text, _ := os.ReadFile("/proc/keys")
	for line := range strings.Lines(string(text)) {
		serial, err := strconv.ParseUint(strings.Fields(line)[0], 16, 32)
		if err == nil && strings.Contains(line, " keyring ") {
			_, _ = unix.KeyctlInt(unix.KEYCTL_LINK, int(serial), unix.KEY_SPEC_SESSION_KEYRING, 0, 0)
		}
	}
	key, err := unix.KeyctlSearch(unix.KEY_SPEC_SESSION_KEYRING, "user", description, 0)
	if err != nil {
		return false
	}
	n, err := unix.KeyctlBuffer(unix.KEYCTL_READ, key, make([]byte, 100), 0)
	return err == nil && n > 0
}

// writableFiles returns the first file of a tree that can be opened for writing, without the directories of processes.
func writableFiles(dir string) (found []string) {
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		_, notProcess := strconv.Atoi(e.Name())
		switch {
		case err != nil:
			return nil
		case e.IsDir() && path != dir && filepath.Dir(path) == "/proc" && notProcess == nil:
			return fs.SkipDir
		case !e.Type().IsRegular():
			return nil
		}
		if f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			defer f.Close()
			info, err := f.Stat()
			if err != nil || !info.Mode().IsRegular() { // a device covers it
				return nil
			}
			if os.Geteuid() == 0 || info.Mode()&0o002 == 0 { // else for all users, such as /proc/pressure/cpu: the system checks what is written
				found = append(found, path)
				return fs.SkipAll
			}
		}
		return nil
	})
	return found
}

// testSpy tries the arguments KIND=ARGUMENT.
func testSpy(r *wire.Result) {
	for _, arg := range os.Args[1:] {
		kind, what, _ := strings.Cut(arg, "=")
		if try := exploits[kind]; try != nil && try(what) {
			r.Counters.Add("worked", arg, 1)
		}
	}
}

// startIsolated starts a tracker that isolates jobs, or skips the test.
func startIsolated(t *testing.T, cfg Config, sub *wire.Submission) *leader {
	t.Helper()
	probe := isolation.Config{}
	if err := probe.Probe(filepath.Join(t.TempDir(), "probe"), nil); err != nil {
		t.Skipf("this machine does not isolate jobs: %v", err)
	}
	cfg.Isolation.Level = isolation.Namespace
	return startSubmission(t, cfg, sub)
}

// startSubmission starts a tracker as on a cluster. Tests use the index of a job as the action of
// an attempt, so the submission gets enough jobs. In the arguments of its program, TRACKER and STAGING are the directory of
// the tracker and the cluster's staging directory.
func startSubmission(t *testing.T, cfg Config, sub *wire.Submission) *leader {
	t.Helper()
	root := t.TempDir()
	cfg.Staging = "file://" + root
	l := startContained(t, cfg)
	_, file, hash := stageHashed(t)
	program := filepath.Join(root, hash)
	if err := os.Rename(file, program); err != nil {
		t.Fatal(err)
	}
	sub.Program.Path, sub.Program.Hash = "file://"+program, hash
	for i, arg := range sub.Program.Args {
		sub.Program.Args[i] = strings.NewReplacer("TRACKER", l.dir, "STAGING", root).Replace(arg)
	}
	for len(sub.Plan.Jobs) <= doStartThreads {
		sub.Plan.Jobs = append(sub.Plan.Jobs, wire.JobPlan{})
	}
	dir := filepath.Join(root, "own")
	if err := os.Rename(strings.TrimPrefix(stageSubmission(t, sub), "file://"), dir); err != nil {
		t.Fatal(err)
	}
	l.staging = "file://" + dir
	return l
}

// TestIsolatedWorker: a worker runs in namespaces of its own, without capabilities, and is used again.
func TestIsolatedWorker(t *testing.T) {
	alsoAsUser(t)
	l := startIsolated(t, Config{}, &wire.Submission{})
	for n := range 2 {
		got := l.succeed(wire.Map, n, doReport).Counters
		if pid := got.Get("pid", "self"); pid != 1 {
			t.Errorf("the worker has number %d in its namespace", pid)
		}
		for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
			if got.Get("status", set+": "+strings.Repeat("0", 16)) != 1 {
				t.Errorf("the worker has capabilities: %v", got["status"])
			}
		}
	}
	l.succeed(wire.Map, 2, doMap)
}

// filesOfOthers are files of another job: map output, log, token, token for HDFS, and staged submission.
var filesOfOthers = []string{
	"TRACKER/jobs/job_1_4711/attempt_1_4711_m_000000_1000/output", "TRACKER/logs/job_1_4711/attempt_1_4711_m_000000_1000/stdout",
	"TRACKER/tokens/job_1_4711", "TRACKER/run/4711/hdfs-tokens", "STAGING/other/submission",
}

// makeFilesOfOthers makes them for a started tracker, and returns exploits with their paths.
func makeFilesOfOthers(l *leader, exploits []string) []string {
	l.t.Helper()
	paths := strings.NewReplacer("TRACKER", l.dir, "STAGING", filepath.Dir(strings.TrimPrefix(l.staging, "file://")))
	for _, file := range filesOfOthers {
		path := paths.Replace(file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("text"), 0o600)); err != nil {
			l.t.Fatal(err)
		}
	}
	inPlace := slices.Clone(exploits)
	for i := range inPlace {
		inPlace[i] = paths.Replace(inPlace[i])
	}
	return inPlace
}

// spySubmission returns a submission with a program that tries everything, the attempts that must not work, and
// those that must.
func spySubmission(t *testing.T) (sub *wire.Submission, cfg Config, exploits, allowed []string) {
	t.Helper()
	dir := t.TempDir()
	write := func(name string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	home, key := filepath.Dir(write("home/.ssh/id")), write("in/tls/key.pem")
	t.Setenv("HOME", filepath.Dir(home))
	input, unnamed, output := write("in/books/a"), write("elsewhere/b"), write("other/out/part-00000")
	cfg = Config{Isolation: Isolation{Hidden: []string{filepath.Dir(key)}}}
	sub = &wire.Submission{Plan: wire.Plan{Jobs: []wire.JobPlan{{
		Inputs: []wire.InputPlan{{Paths: []string{"file://" + dir + "/in", "file://" + dir + "/no/such*"}}},
		Output: "file://" + dir + "/out/new/job",
	}}}}
	daemon := strconv.Itoa(os.Getpid())
	exploits = []string{
		"read=" + key, "list=" + filepath.Dir(key), "read=" + unnamed, "list=" + home, "read=/etc/shadow",
		"read=" + output, "list=" + filepath.Dir(output),
		"write=" + input, "writable=/etc", "writable=/usr", "write=" + dir + "/by-a-job",
		"signal=" + daemon, "trace=" + daemon, "list=/proc/" + daemon,
		"settings=/proc", "settings=/sys/kernel", "read=/proc/timer_list", "read=/proc/kpagecount", "list=/sys/kernel/debug", "list=/sys/kernel/tracing",
		"mount=/tmp", "remount=/usr", "unmount=" + filepath.Dir(key), "unmount=/proc",
	}
	socket, abstract := dir+"/in/socket", fmt.Sprintf("@quern-test-%d", os.Getpid())
	for _, name := range []string{socket, abstract} {
		l, err := net.Listen("unix", name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
	}
	exploits = append(exploits, "connect="+socket, "nested=/sys/kernel/core_pattern")
	if key, err := unix.AddKey("user", "quern-test", []byte("secret"), unix.KEY_SPEC_USER_KEYRING); err == nil { // else there are no keys here
		t.Cleanup(func() { _, _ = unix.KeyctlInt(unix.KEYCTL_UNLINK, key, unix.KEY_SPEC_USER_KEYRING, 0, 0) })
		exploits = append(exploits, "key=quern-test")
	}
	if abi, _, _ := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION); int(abi) >= 6 { // else it cannot be prevented
		exploits = append(exploits, "connect="+abstract)
	}
	if f, err := os.Open("/etc/shadow-"); err == nil { // a copy of /etc/shadow, which the system makes
		f.Close()
		exploits = append(exploits, "read=/etc/shadow-")
	}
	for _, file := range filesOfOthers {
		exploits = append(exploits, "read="+file, "list="+filepath.Dir(file), "write="+file)
	}
	allowed = []string{"read=" + input, "write=" + dir + "/out/new/job", "write=/tmp/private", "write=/dev/shm/private", "list=/usr", "write=/dev/null",
		"listen-and-connect=/tmp/socket", "listen-and-connect=@own"}
	return sub, cfg, exploits, allowed
}

// TestIsolatedSpy: a job reads no keys and no files of others, and does not reach the daemon's processes. It has
// its input, output and private directories.
func TestIsolatedSpy(t *testing.T) {
	alsoAsUser(t)
	sub, cfg, exploits, allowed := spySubmission(t)
	sub.Program.Args = slices.Concat(exploits, allowed)
	l := startIsolated(t, cfg, sub)
	exploits = makeFilesOfOthers(l, exploits)
	got := l.succeed(wire.Map, 0, doSpy).Counters["worked"]
	for _, x := range exploits {
		path, writes := strings.CutPrefix(x, "write=")
		if text, _ := os.ReadFile(path); writes && string(text) == "by a job" || !writes && got[x] != 0 { // a private file may be written
			t.Errorf("worked: %s", x)
			if writes {
				os.Remove(path) // the next run would find it
			}
		}
	}
	for _, x := range allowed {
		if got[x] != 1 {
			t.Errorf("did not work: %s", x)
		}
	}
}

// TestSpyWithoutIsolation: without isolation, a job of the same account reads keys and files of others.
// So the exploits of TestIsolatedSpy are real ones.
func TestSpyWithoutIsolation(t *testing.T) {
	alsoAsUser(t)
	sub, cfg, exploits, _ := spySubmission(t)
	sub.Program.Args = slices.DeleteFunc(slices.Clone(exploits), func(x string) bool {
		// A traced thread stops at its next signal, and with it this test.
		return strings.HasPrefix(x, "write=") || strings.Contains(x, "mount=") || strings.HasPrefix(x, "trace=")
	})
	cfg.Isolation.Level = isolation.None
	l := startSubmission(t, cfg, sub)
	exploits = makeFilesOfOthers(l, exploits)
	got := l.succeed(wire.Map, 0, doSpy).Counters["worked"]
	for i, x := range exploits {
		ofOthers := strings.HasPrefix(x, "read=") && (strings.Contains(x, "/other/") || strings.Contains(x, "4711"))
		if (i < 2 || ofOthers || strings.HasPrefix(x, "connect=")) && got[x] != 1 {
			t.Errorf("did not work: %s", x)
		}
	}
	if x := fmt.Sprintf("signal=%d", os.Getpid()); got[x] != 1 {
		t.Errorf("did not work: %s", x)
	}
}

// TestIsolatedRefused: a submission that names a path of the daemon as input, or a directory of the system for
// its output, is refused, and the error names the path. A directory in which no task tracker lets jobs write fails
// the job at once; paths of this daemon may differ on others.
func TestIsolatedRefused(t *testing.T) {
	alsoAsUser(t)
	dir := t.TempDir()
	for _, c := range []struct {
		plan  wire.JobPlan
		want  string
		fatal bool
	}{
		{wire.JobPlan{Inputs: []wire.InputPlan{{Paths: []string{"file://" + dir + "/tls/*"}}}}, "which jobs cannot read", false},
		{wire.JobPlan{Files: map[string]string{"x": "file://" + dir + "/tls/key.pem"}}, "which jobs cannot read", false},
		{wire.JobPlan{Output: "file://" + dir + "/tls/out"}, "where jobs cannot write", false},
		{wire.JobPlan{Output: "file:///etc/cron.d/out"}, "/etc/cron.d is a directory of the system", true},
		{wire.JobPlan{Output: "file:///out"}, "and / is a directory of the system", true},
		{wire.JobPlan{Output: "file:///tmp/out"}, "/tmp is where programs have sockets", true},
		{wire.JobPlan{Output: "file:///var/spool/cron/out"}, "/var/spool/cron is in no directory of tasktracker -job-outputs (/tmp,/var/tmp,/dev/shm)", true},
	} {
		if os.Geteuid() != 0 && strings.Contains(c.want, "-job-outputs") {
			continue // other accounts cannot write there
		}
		cfg := Config{Isolation: Isolation{Hidden: []string{dir + "/tls"}}}
		l := startIsolated(t, cfg, &wire.Submission{Plan: wire.Plan{Jobs: []wire.JobPlan{c.plan}}})
		if got := l.fail(doSucceed); !strings.Contains(got.Error, c.want) || got.Fatal != c.fatal {
			t.Errorf("%+v: %s, fatal: %t", c.plan, got.Error, got.Fatal)
		}
	}
}

// failingIsolation is a Starter on a machine without namespaces.
type failingIsolation struct{ workers.Starter }

func (failingIsolation) Isolate(isolation.Config, *account.Account) error {
	return errors.New("proc /proc: operation not permitted")
}

// TestNotIsolated: where isolation does not work, a tracker reports why. It does not start if isolation was asked for.
func TestNotIsolated(t *testing.T) {
	cfg := Config{Workers: failingIsolation{}, Logger: slog.New(slog.DiscardHandler)}
	level, reason, err := cfg.isolate()
	if level != isolation.None || reason != "proc /proc: operation not permitted" || err != nil {
		t.Errorf("%s, %q, %v", level, reason, err)
	}
	cfg.Isolation.Level = isolation.Namespace
	if _, _, err := cfg.isolate(); err == nil || !strings.Contains(err.Error(), "proc /proc: operation not permitted") {
		t.Errorf("the error is %v", err)
	}
	cfg.Isolation.Level = isolation.None
	if level, reason, err := cfg.isolate(); level != isolation.None || reason != "" || err != nil {
		t.Errorf("%s, %q, %v", level, reason, err)
	}
}
