package process

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quernmr/quern/tasktracker/attemptlog"
	"github.com/quernmr/quern/tasktracker/core"
)

// receive waits for a worker's end.
func receive(t *testing.T, ended <-chan error) error {
	t.Helper()
	select {
	case err := <-ended:
		return err
	case <-time.After(30 * time.Second):
		t.Fatal("waited too long for the worker's end")
		return nil
	}
}

// TestLimitAfterEnd: after its end a worker is not measured, because another process may
// have its number.
func TestLimitAfterEnd(t *testing.T) {
	trackerEnd, workerEnd, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer trackerEnd.Close()
	defer workerEnd.Close()
	stderr, theirStderr, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	theirStderr.Close()
	logs, err := new(attemptlog.Captures).Start(stderr, t.TempDir(), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	w := &process{meter: new(meter), cmd: exec.Command("true"), in: trackerEnd, logs: logs}
	w.cmd.SysProcAttr = processAttributes()
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := w.Wait(); err != nil {
		t.Fatal(err)
	}
	w.Limit(core.Limit{Memory: 1}, func(string) { t.Error("it has exceeded its limit") })
	if n := len(w.meter.workers); n != 0 || w.meter.running {
		t.Errorf("%d workers are measured", n)
	}
}

// TestLogDiskHangs: a worker's end is reported even if its log cannot be written.
func TestLogDiskHangs(t *testing.T) {
	log := filepath.Join(t.TempDir(), "stderr")
	if err := syscall.Mkfifo(log, 0o600); err != nil { // writes to a full pipe hang, as on a bad disk
		t.Fatal(err)
	}
	fd, err := syscall.Open(log, syscall.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = syscall.Write(fd, make([]byte, 1<<16))
	}
	t.Cleanup(func() { syscall.Close(fd) })
	stderr, workerEnd, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	logs, err := new(attemptlog.Captures).Start(stderr, filepath.Dir(log), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(workerEnd, "last line"); err != nil {
		t.Fatal(err)
	}
	workerEnd.Close()
	trackerEnd, _, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer trackerEnd.Close()
	w := &process{meter: new(meter), cmd: exec.Command("true"), in: trackerEnd, logs: logs}
	w.cmd.SysProcAttr = processAttributes()
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- w.Wait() }()
	if err := receive(t, ended); err != nil {
		t.Error(err)
	}
}

// TestKillLeftover: KillLeftover kills the workers of a dead tracker, and no other
// processes.
func TestKillLeftover(t *testing.T) {
	dir := t.TempDir()
	if err := StartRecord(dir); err != nil {
		t.Fatal(err)
	}
	start := func(script string) *exec.Cmd {
		cmd := exec.Command("sh", "-c", script)
		cmd.Env = workerEnvironment(os.Environ())
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if err := appendRecord(filepath.Join(dir, RecordFile), cmd.Process.Pid); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	leftover := start("sleep 1000 & wait")
	orphaned := start("sleep 1000 & echo $! > " + filepath.Join(dir, "orphan"))
	if err := orphaned.Wait(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "orphan"))
	if err != nil {
		t.Fatal(err)
	}
	orphan, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	// Another process has this number.
	unrelated := exec.Command("sleep", "1000")
	unrelated.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := unrelated.Start(); err != nil {
		t.Fatal(err)
	}
	defer unrelated.Wait()
	defer unrelated.Process.Kill()
	record, err := os.OpenFile(filepath.Join(dir, RecordFile), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(record, "%d 1\nnonsense\n%d", unrelated.Process.Pid, unrelated.Process.Pid)
	record.Close()
	if err := KillLeftover(dir); err != nil {
		t.Fatal(err)
	}
	if p, err := readProcess(orphan); err == nil && p.alive() {
		t.Error("the orphan still runs")
	}
	if err := leftover.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("the leftover ended: %v", err)
	}
	if p, err := readProcess(unrelated.Process.Pid); err != nil || !p.alive() {
		t.Errorf("another process was killed: %v", err)
	}
}
