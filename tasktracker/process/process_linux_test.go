package process

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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
	w := &process{meter: new(meter), cmd: exec.Command("true"), in: trackerEnd, logs: logs, forget: func() {}}
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
	w := &process{meter: new(meter), cmd: exec.Command("true"), in: trackerEnd, logs: logs, forget: func() {}}
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
	records := recordFile{name: filepath.Join(dir, RecordFile)}
	start := func(script string) *exec.Cmd {
		cmd := exec.Command("sh", "-c", script)
		cmd.Env = (&Config{}).workerEnvironment(os.Environ(), "", "")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if err := records.add(cmd.Process.Pid); err != nil {
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
	if err := KillLeftover(dir, slog.New(slog.DiscardHandler)); err != nil {
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

// TestLongRecord: however many workers an earlier process recorded, a start scans the machine's
// processes a few times, uses little memory, and kills what is recorded last.
func TestLongRecord(t *testing.T) {
	dir := t.TempDir()
	if err := StartRecord(dir); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, RecordFile)
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	const hole = 4 << 30 // of a damaged file
	if err := f.Truncate(hole); err != nil {
		t.Skipf("no large files here: %v", err)
	}
	text := []byte("\n")
	for n := range 50_000 {
		text = fmt.Appendf(text, "%d %d\n", 1<<23+n, n) // beyond the kernel's numbers
	}
	if _, err := f.Write(text); err != nil {
		t.Fatal(err)
	}
	f.Close()
	var leftovers []*exec.Cmd
	records := recordFile{name: file}
	for range 20 {
		cmd := exec.Command("sleep", "1000")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if err := records.add(cmd.Process.Pid); err != nil {
			t.Fatal(err)
		}
		leftovers = append(leftovers, cmd)
	}
	scans := 0
	var log bytes.Buffer
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err = killRecorded(file, func() map[int][]int { scans++; return groupMembers() }, slog.New(slog.NewTextHandler(&log, nil)))
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	if scans > 1+killRounds {
		t.Errorf("%d scans of the machine's processes", scans)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 4*maxRecordBytes {
		t.Errorf("it allocated %d bytes", n)
	}
	if !strings.Contains(log.String(), "the file of workers is too long") || !strings.Contains(log.String(), "processes=20") {
		t.Errorf("log:\n%s", &log)
	}
	for _, cmd := range leftovers {
		if err := cmd.Wait(); err == nil || err.Error() != "signal: killed" {
			t.Errorf("a leftover ended: %v", err)
		}
	}
}

// TestRecordStaysShort: the file of a running tracker loses the lines of dead workers.
func TestRecordStaysShort(t *testing.T) {
	dir := t.TempDir()
	if err := StartRecord(dir); err != nil {
		t.Fatal(err)
	}
	records := recordFile{name: filepath.Join(dir, RecordFile)}
	f, err := os.OpenFile(records.name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(f, "%d 1\n", os.Getpid()) // this number, but not this process
	f.Close()
	if err := records.add(os.Getpid()); err != nil {
		t.Fatal(err)
	}
	records.written = rewriteBytes + 1
	if err := records.add(os.Getppid()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(records.name)
	if err != nil {
		t.Fatal(err)
	}
	self, err := readProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) != 4 || lines[1] != fmt.Sprintf("%d %d", os.Getpid(), self.start) || !strings.HasPrefix(lines[2], fmt.Sprintf("%d ", os.Getppid())) {
		t.Errorf("it has\n%s", text)
	}
}
