package tasktracker

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/tasktracker/process"
	"github.com/quernmr/quern/tasktracker/workers"
	"github.com/quernmr/quern/wire"
)

// mustEnd waits until a process has ended. It need not be a child of this process.
func mustEnd(t *testing.T, pid int) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return
	} else if err != nil {
		t.Fatalf("open process %d: %v", pid, err)
	}
	defer unix.Close(fd)
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(deadline.Milliseconds()))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if n != 1 || err != nil {
			t.Fatalf("process %d still runs: %v", pid, err)
		}
		return
	}
}

// TestProgramIsSealed: a job cannot change the program of the workers that are still to start, nor
// reach the tracker's copy.
func TestProgramIsSealed(t *testing.T) {
	l := startTracker(t, "t1", t.TempDir())
	l.staging, _, _ = stageHashed(t)
	pid := l.succeed(wire.Map, 0, doSucceed).Counters.Get("pid", "self")
	exe := fmt.Sprintf("/proc/%d/exe", pid)
	if target, err := os.Readlink(exe); err != nil || !strings.HasPrefix(target, "/memfd:quern-") {
		t.Fatalf("the worker runs %s, %v", target, err)
	}
	copied, err := os.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	const sealed = unix.F_SEAL_WRITE | unix.F_SEAL_GROW | unix.F_SEAL_SHRINK | unix.F_SEAL_SEAL
	if seals, err := unix.FcntlInt(copied.Fd(), unix.F_GET_SEALS, 0); err != nil || seals&sealed != sealed {
		t.Errorf("seals %#x, %v, want %#x", seals, err, sealed) // it must not change while nothing executes it
	}
	for _, name := range []string{exe, fmt.Sprintf("/proc/%d/fd/5", pid)} {
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if _, err := f.WriteAt([]byte("x"), 0); err == nil {
			t.Errorf("%s can be written", name)
		}
		f.Close()
	}
}

func mustBeGone(t *testing.T, pid int) {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return
	}
	// The state follows the name, which is in parentheses. An ended process may not be
	// reaped yet.
	if state := strings.TrimSpace(string(stat[bytes.LastIndexByte(stat, ')')+1:])); state[0] != 'Z' && state[0] != 'X' {
		t.Fatalf("process %d still runs", pid)
	}
}

func TestIdleWorkerIsReused(t *testing.T) {
	t.Setenv("QUERN_SECRET", "of the tracker")
	l := startTracker(t, "t1", t.TempDir())
	first := l.succeed(wire.Map, 0, doSucceed)
	if got := first.Counters.Get("env", "QUERN_MODE=worker"); got != 1 {
		t.Errorf("the worker sees %v", first.Counters["env"])
	}
	second := l.launch(wire.Reduce, 0, doCommit) // without a home
	l.final(second, wire.AttemptKilled)
	committing := l.launch(wire.Map, 1, doCommit)
	await(l, func(r *wire.Report) bool { return r.Attempt == committing && r.State == wire.AttemptReady })
	l.send(&wire.Grant{Epoch: 1, Attempt: committing})
	third := l.final(committing, wire.AttemptSucceeded)
	if a, b := first.Counters.Get("pid", "self"), third.Counters.Get("pid", "self"); a != b {
		t.Errorf("the second attempt ran in process %d, the first in %d", b, a)
	}
	// A stopped tracker leaves no process.
	if err := l.stop(); err != nil {
		t.Error(err)
	}
	mustBeGone(t, int(first.Counters.Get("pid", "self")))
}

func TestWorkerEnds(t *testing.T) {
	l := startTracker(t, "t1", t.TempDir())
	for _, c := range []struct {
		name   string
		action int
		error  string
		check  func(t *testing.T, r *wire.Result)
	}{
		{"killed", doDie, "its worker ended before it did: signal: killed", nil},
		{"exited", doExit, "its worker ended before it did: exit status 3", func(t *testing.T, r *wire.Result) {
			lines := strings.Split(r.Log, "\n")
			if len(lines) != 20 || lines[0] != "line 10" || lines[19] != "line 29" {
				t.Errorf("log is %q", r.Log)
			}
		}},
		{"failed with a long log", doFailWithLongLog, "hoarse", func(t *testing.T, r *wire.Result) {
			if want := "last lines of standard output:\none\ntwo\nlast lines of standard error:\n" + strings.TrimSuffix(strings.Repeat("much ado about nothing\n", 18), "\n"); r.Log != want {
				t.Errorf("log is %q", r.Log)
			}
		}},
		{"sent a malformed message", doSendMalformed, "its worker sent a malformed message", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := l.fail(c.action)
			if !strings.Contains(r.Error, c.error) {
				t.Errorf("error is %q, want %q", r.Error, c.error)
			}
			if c.check != nil {
				c.check(t, r)
			}
		})
	}
	l.succeed(wire.Map, 0, doSucceed) // the tracker still works
	if err := l.stop(); err != nil {
		t.Error(err)
	}
	// An attempt that failed, or succeeded without an output, leaves only its logs.
	mustBeEmpty(t, l.path(core.JobsDir, job1.String()))
}

func TestWorkerThatDoesNotStart(t *testing.T) {
	crash := startTracker(t, "t1", t.TempDir(), "-crash")
	r := crash.fail(doSucceed)
	if !strings.Contains(r.Error, "exit status 7 before mapreduce.Main (a worker runs in ") || r.Log != "crash before the first message" {
		t.Errorf("crash: %q, log %q", r.Error, r.Log)
	}
	l := startTracker(t, "t2", t.TempDir())
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("no program"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"file:///no/such/program", plain, "hdfs://nn/program", "relative"} {
		l.staging = stageProgram(t, program)
		if r := l.fail(doSucceed); !strings.Contains(r.Error, strings.TrimPrefix(program, "file://")) {
			t.Errorf("%s: %q", program, r.Error)
		}
	}
	l.staging = "file://" + t.TempDir()
	if r := l.fail(doSucceed); !strings.Contains(r.Error, strings.TrimPrefix(l.staging, "file://")) {
		t.Errorf("no submission: %q", r.Error)
	}
}

func TestChildLeftBehind(t *testing.T) {
	l := startTracker(t, "t1", t.TempDir())
	first := l.succeed(wire.Map, 0, doLeaveChild)
	second := l.succeed(wire.Map, 1, doSucceed)
	if a, b := first.Counters.Get("pid", "self"), second.Counters.Get("pid", "self"); a == b {
		t.Errorf("process %d was used again", a)
	}
	mustEnd(t, int(first.Counters.Get("pid", "child")))
}

// TestEndedChildLeftBehind: a worker is used again if the child that it adopted has ended.
func TestEndedChildLeftBehind(t *testing.T) {
	l := startTracker(t, "t1", t.TempDir())
	first := l.succeed(wire.Map, 0, doLeaveEnded)
	second := l.succeed(wire.Map, 1, doSucceed)
	if a, b := first.Counters.Get("pid", "self"), second.Counters.Get("pid", "self"); a != b {
		t.Errorf("process %d was not used again", a)
	}
}

func TestKillEndsTheGroup(t *testing.T) {
	t.Run("ends", func(t *testing.T) { testKillEndsTheGroup(t, doHang, time.Minute, "not wanted") })
	t.Run("ignores SIGTERM", func(t *testing.T) {
		testKillEndsTheGroup(t, doIgnoreTERM, time.Second, "not wanted; killed 1s after SIGTERM")
	})
}

func testKillEndsTheGroup(t *testing.T, do int, grace time.Duration, want string) {
	l := startUnregistered(t, Config{ID: "t1", Dir: t.TempDir(), StopGrace: grace})
	l.connect(1)
	id := l.launch(wire.Map, 0, do)
	awaitProgress(l, id)
	text, err := os.ReadFile(l.path(core.JobsDir, job1.String(), id.String(), "work", "child"))
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(string(text))
	if err != nil {
		t.Fatal(err)
	}
	l.send(&wire.Kill{Epoch: 1, Attempt: id, Reason: "not wanted"})
	if r := l.final(id, wire.AttemptKilled); r.Error != want {
		t.Errorf("error is %q, want %q", r.Error, want)
	}
	mustBeGone(t, child) // before the report
}

func awaitProgress(l *leader, id wire.AttemptID) {
	l.t.Helper()
	await(l, func(h *wire.Heartbeat) bool {
		return slices.ContainsFunc(h.Attempts, func(r wire.Report) bool { return r.Attempt == id && r.Bytes.Done == 2 })
	})
}

// TestStopBySIGTERM: an attempt that is ended gets SIGTERM first, and can still write its log.
func TestStopBySIGTERM(t *testing.T) {
	l := startUnregistered(t, Config{ID: "t1", Dir: t.TempDir(), StopGrace: time.Minute})
	l.connect(1)
	id := l.launch(wire.Map, 0, doEndOnTERM)
	awaitProgress(l, id)
	l.send(&wire.Kill{Epoch: 1, Attempt: id, Reason: "not wanted"})
	if r := l.final(id, wire.AttemptKilled); r.Error != "not wanted" {
		t.Errorf("error is %q", r.Error)
	}
	log, err := os.ReadFile(filepath.Join(core.LogPath(l.path(), id), "stderr"))
	if err != nil || string(log) != "asked to end\n" {
		t.Errorf("log is %q, error %v", log, err)
	}
}

// TestTimeout: an attempt without progress is killed with its children.
func TestTimeout(t *testing.T) {
	l := startTracker(t, "t1", t.TempDir())
	task := wire.TaskID{Job: job1, Kind: wire.Map}
	id := l.launchAs(task, wire.Launch{Index: doFork, Timeout: time.Second})
	if r := l.final(id, wire.AttemptFailed); r.Error != "no progress for 1s (mapreduce.task.timeout)" {
		t.Errorf("error is %q", r.Error)
	}
	log, err := os.ReadFile(filepath.Join(core.LogPath(l.path(), id), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	children := 0
	for line := range strings.Lines(string(log)) {
		pid, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			break // the goroutines follow
		}
		children++
		if len(controlGroup(l)) > 0 {
			mustBeGone(t, pid)
		}
	}
	if children == 0 {
		t.Errorf("the log has no process ids: %q", log)
	}
	l.succeed(wire.Map, 0, doSucceed)
}

// TestLeftoverWorkers: a tracker kills the workers of an earlier process, and then removes
// their files.
func TestLeftoverWorkers(t *testing.T) {
	dir := trackerDir(t)
	runtime.LockOSThread() // at the end of this thread the kernel would kill the worker
	defer runtime.UnlockOSThread()
	if err := process.StartRecord(dir); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	workerDir := filepath.Join(dir, core.RunDir, "worker-1")
	attempt := filepath.Join(dir, core.JobsDir, job1.String(), "attempt")
	if err := errors.Join(os.MkdirAll(workerDir, 0o777), os.MkdirAll(attempt, 0o777)); err != nil {
		t.Fatal(err)
	}
	starter := process.New(process.Config{Dir: dir, Logs: DefaultAttemptLogs, Groups: true})
	leftover, err := starter.Start(&workers.Program{Submission: &wire.Submission{Program: wire.Program{Path: self}}}, workerDir)
	if err != nil {
		t.Fatal(err)
	}
	startTracker(t, "t1", dir)
	ended := make(chan error, 1)
	go func() { ended <- leftover.Wait() }()
	if err := receive(t, ended, "the leftover's end"); err == nil || err.Error() != "signal: killed" {
		t.Errorf("the leftover ended: %v", err)
	}
	leftover.Conn().Close()
	mustBeEmpty(t, filepath.Join(dir, core.RunDir))
	mustBeEmpty(t, filepath.Join(dir, core.JobsDir))
}
