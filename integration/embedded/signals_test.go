package embedded_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/integration/trial"
	"golang.org/x/sys/unix"
)

// children lists the live child processes of a process.
func children(parent int) []int {
	return slices.DeleteFunc(processes.Children(parent), func(pid int) bool { return !running(pid) })
}

// running reports whether a child process has not ended.
func running(pid int) bool {
	_, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return err == nil
}

func missing(name string) bool {
	_, err := os.Stat(name)
	return errors.Is(err, os.ErrNotExist)
}

func killWorkers(parent int) {
	for _, pid := range children(parent) {
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

// startHanging starts a job with a map that never returns, and waits until the map runs.
func startHanging(t *testing.T, stderr *bytes.Buffer, out string) (pid int, end func() outcome) {
	t.Helper()
	in := write(t, t.TempDir()+"/in", "a\n")
	cmd := start(t, stderr, "faulty", "-at", "map", "-do", "hang", "-input", in, "-output", out)
	if !whileRuns(cmd, filePoll, func() bool { return len(attemptDirs(t)) > 0 }) {
		t.Fatalf("ended early\n%s", wait(t, cmd, stderr).stderr)
	}
	return cmd.Process.Pid, func() outcome { return wait(t, cmd, stderr) }
}

// attemptDirs lists the directories of map attempts in the test's TMPDIR.
func attemptDirs(t *testing.T) []string {
	var found []string
	filepath.Walk(tempDir(t), func(path string, info os.FileInfo, err error) error {
		if err == nil && info.IsDir() && strings.Contains(info.Name(), "_m_000000_") {
			found = append(found, path)
		}
		return nil
	})
	return found
}

func TestInterrupted(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			var stderr bytes.Buffer
			out := t.TempDir() + "/out"
			pid, end := startHanging(t, &stderr, out)
			workers := children(pid)
			syscall.Kill(pid, sig)
			if o := end(); o.exit != 1 || !strings.Contains(o.stderr, "killed") {
				t.Errorf("exit %d\n%s", o.exit, o.stderr)
			}
			if _, err := os.Stat(out); !os.IsNotExist(err) {
				t.Errorf("output is left behind: %v", err)
			}
			checkNoLeftovers(t)
			for _, w := range workers {
				if syscall.Kill(w, 0) == nil {
					t.Errorf("worker %d still runs after its job", w)
				}
			}
		})
	}
}

// TestAttemptsLearnOfTheirEnd: when an attempt is ended, Done of its Task is closed and its
// deferred functions run. Its output is not committed, even if its code returns no error.
func TestAttemptsLearnOfTheirEnd(t *testing.T) {
	for name, inProcess := range map[string]string{"processes": "false", "in process": "true"} {
		for _, at := range []string{"map", "reduce"} {
			t.Run(at+" "+name, func(t *testing.T) {
				var stderr bytes.Buffer
				dir := t.TempDir()
				in, out, ended := write(t, dir+"/in", "a\n"), dir+"/out", dir+"/ended"
				cmd := start(t, &stderr, "faulty", "-at", at, "-do", "await-end", "-ended", ended,
					"-D", "quern.task.inprocess="+inProcess, "-input", in, "-output", out)
				if !whileRuns(cmd, filePoll, func() bool { return !missing(ended + ".began") }) {
					t.Fatalf("ended early\n%s", wait(t, cmd, &stderr).stderr)
				}
				syscall.Kill(cmd.Process.Pid, syscall.SIGTERM)
				if o := wait(t, cmd, &stderr); o.exit != 1 || !strings.Contains(o.stderr, "killed") {
					t.Errorf("exit %d\n%s", o.exit, o.stderr)
				}
				if missing(ended) {
					t.Error("its deferred functions did not run")
				}
				if !missing(out) {
					t.Error("output is left behind")
				}
				checkNoLeftovers(t)
			})
		}
	}
}

// TestTimeoutShowsGoroutines: the log of an attempt without progress has its goroutines, that of
// the job's code first.
func TestTimeoutShowsGoroutines(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	dir := t.TempDir()
	o := wait(t, start(t, &stderr, "faulty", "-at", "map", "-do", "hang", "-D", "mapreduce.task.timeout=5000",
		"-D", "mapreduce.map.maxattempts=1", "-input", write(t, dir+"/in", "a\n"), "-output", dir+"/out"), &stderr)
	if o.exit != 1 || !strings.Contains(o.stderr, "no progress for 5s (mapreduce.task.timeout)") || !strings.Contains(o.stderr, "main.misbehave") {
		t.Errorf("exit %d\n%s", o.exit, o.stderr)
	}
}

// TestTerminalClosed: a job continues after its terminal is closed, though writes to it fail. The
// kernel sends SIGHUP to the program, which is the session leader, and to its process group.
func TestTerminalClosed(t *testing.T) {
	for name, program := range map[string][]string{
		"program":    {"paced"},
		"mrsubmit":   {"mrsubmit", "run", filepath.Join(programs, "paced")},
		"in process": {"paced", "-D", "quern.task.inprocess=true"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			content := text(50_000)
			in, out, traces := write(t, dir+"/in", content), dir+"/out", dir+"/traces"
			if err := os.Mkdir(traces, 0o777); err != nil {
				t.Fatal(err)
			}
			controller, terminal := openTerminal(t)
			cmd := command(t, nil, program[0], append(program[1:], trial.Flags(in, out, traces, "-gate")...)...)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			terminal.Close()
			job := trial.NewJob(nil, out, traces)
			if !whileRuns(cmd, filePoll, func() bool { return len(job.Traces("m", "began")) > 0 }) {
				t.Fatalf("ended early: %v", cmd.Wait())
			}
			controller.Close()
			write(t, traces+"/gate", "")
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
			checkEqual(t, "counts", sortedLines(readParts(t, out)), sortedLines(countWords(content)))
			checkNoLeftovers(t)
		})
	}
}

// openTerminal opens a pseudoterminal and returns its controlling end and the program's end.
func openTerminal(t *testing.T) (controller, terminal *os.File) {
	t.Helper()
	controller, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { controller.Close() })
	fd := int(controller.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return controller, terminal
}

// TestSIGKILL: after SIGKILL of the program, all workers end, and the next run removes leftover
// files.
func TestSIGKILL(t *testing.T) {
	var stderr bytes.Buffer
	pid, end := startHanging(t, &stderr, t.TempDir()+"/out")
	workers := children(pid)
	syscall.Kill(pid, syscall.SIGKILL)
	end()
	for _, w := range workers {
		if !trial.Poll(deadline, filePoll, func() bool { return syscall.Kill(w, 0) != nil }) { // it ends when its pipe closes
			t.Errorf("worker %d still runs", w)
		}
	}
	in := write(t, t.TempDir()+"/in", "a\n")
	succeed(t, "wordcount", "-input", in, "-output", t.TempDir()+"/out")
	checkNoLeftovers(t)
}

// TestCorruptSegment: a finished map's output is corrupted before the reduce reads it. The map
// reruns, and the output is right.
func TestCorruptSegment(t *testing.T) {
	content := text(50_000)
	dir := t.TempDir()
	in := write(t, dir+"/in", content)
	o := succeed(t, "faulty", "-at", "map", "-do", "corrupt", "-times", "1", "-input", in, "-output", dir+"/out",
		"-D", "quern.embedded.slots=1", "-D", "mapreduce.input.fileinputformat.split.maxsize=20000")
	checkEqual(t, "counts", readParts(t, dir+"/out"), countWords(content))
	if !strings.Contains(o.stderr, "checksum") {
		t.Errorf("no message about the corruption:\n%s", o.stderr)
	}
}

// TestBrokenStderr: a broken pipe on standard error does not end a job.
func TestBrokenStderr(t *testing.T) {
	dir := t.TempDir()
	content := text(50_000)
	in := write(t, dir+"/in", content)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	cmd := command(t, nil, "wordcount", "-input", in, "-output", dir+"/out")
	cmd.Stderr = w
	if err := cmd.Run(); err != nil {
		t.Error(err)
	}
	w.Close()
	checkEqual(t, "counts", readParts(t, dir+"/out"), countWords(content))
	checkNoLeftovers(t)
}

// TestProgramRemoved: workers that start later run the submitted program, though its file is
// removed.
func TestProgramRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	content := text(50_000)
	in := write(t, dir+"/in", content)
	job := dir + "/job"
	// This process must not write it: a child that another test starts at that moment would hold it open, and it could not run.
	if out, err := exec.Command("cp", filepath.Join(programs, "faulty"), job).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var stderr bytes.Buffer
	cmd := command(t, &stderr, "faulty", "-at", "map", "-do", "kill", "-times", "2", "-input", in, "-output", dir+"/out",
		"-D", "mapreduce.input.fileinputformat.split.maxsize=20000")
	cmd.Path = job
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	whileRuns(cmd, filePoll, func() bool { return len(attemptDirs(t)) > 0 })
	if err := os.Remove(job); err != nil {
		t.Fatal(err)
	}
	if o := wait(t, cmd, &stderr); o.exit != 0 {
		t.Fatalf("exit %d\n%s", o.exit, o.stderr)
	}
	checkEqual(t, "counts", readParts(t, dir+"/out"), countWords(content))
	checkNoLeftovers(t)
}

// TestOrphans: after SIGKILL of the program, the next run ends processes that its workers have
// started.
func TestOrphans(t *testing.T) {
	var stderr bytes.Buffer
	in := write(t, t.TempDir()+"/in", "a\n")
	cmd := start(t, &stderr, "faulty", "-at", "map", "-do", "orphan", "-input", in, "-output", t.TempDir()+"/out")
	var orphans []int
	whileRuns(cmd, filePoll, func() bool {
		for _, worker := range children(cmd.Process.Pid) {
			orphans = append(orphans, children(worker)...)
		}
		return len(orphans) > 0
	})
	cmd.Process.Kill()
	wait(t, cmd, &stderr)
	succeed(t, "wordcount", "-input", in, "-output", t.TempDir()+"/out2")
	for _, pid := range orphans {
		if running(pid) {
			t.Errorf("process %d still runs", pid)
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	if len(orphans) == 0 {
		t.Error("no worker has started a process")
	}
	checkNoLeftovers(t)
}

// TestWorkersKilledAtRandom: whenever workers are killed, the output is right.
func TestWorkersKilledAtRandom(t *testing.T) {
	content := text(6_000_000)
	dir := t.TempDir()
	in := write(t, dir+"/in", content)
	var stderr bytes.Buffer
	cmd := start(t, &stderr, "sort", "-input", in, "-output", dir+"/out", "-D", "mapreduce.job.reduces=5",
		"-D", "mapreduce.input.fileinputformat.split.maxsize=200000",
		"-D", "mapreduce.map.maxattempts=100", "-D", "mapreduce.reduce.maxattempts=100")
	const seed, kills = 7, 25
	r := rand.New(rand.NewPCG(seed, 0))
	killed := 0
	// Do not kill setup and commit, which have few attempts.
	whileRuns(cmd, filePoll, func() bool { return len(attemptDirs(t)) > 0 })
	whileRuns(cmd, filePoll, func() bool {
		for _, worker := range children(cmd.Process.Pid) {
			if r.IntN(4) == 0 && syscall.Kill(worker, syscall.SIGKILL) == nil {
				killed++
			}
		}
		return killed >= kills || !missing(dir+"/out/part-r-00000")
	})
	if o := wait(t, cmd, &stderr); o.exit != 0 {
		t.Fatalf("exit %d after %d kills\n%s", o.exit, killed, o.stderr)
	}
	if killed == 0 {
		t.Error("no worker was killed")
	}
	checkEqual(t, "sorted", readParts(t, dir+"/out"), sortedLines(strings.TrimSuffix(content, "\n")+"\n"))
	checkNoLeftovers(t)
}
