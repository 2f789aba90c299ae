package process

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// echo is a process group with a process that echoes lines.
type echo struct {
	cmd *exec.Cmd // the leader of the group
	pid int       // the process that echoes
	in  io.Writer
	out *bufio.Reader
}

// startEcho starts a group. If leaderEnds is set, only a child of the leader remains in it.
func startEcho(t *testing.T, leaderEnds bool, env ...string) *echo {
	t.Helper()
	theirIn, in, errIn := os.Pipe()
	out, theirOut, errOut := os.Pipe()
	if errIn != nil || errOut != nil {
		t.Fatal(errIn, errOut)
	}
	script := "echo $$; exec cat"
	if leaderEnds {
		script = "exec 3<&0; cat <&3 & echo $!"
	}
	e := &echo{cmd: exec.Command("sh", "-c", script), in: in, out: bufio.NewReader(out)}
	e.cmd.Stdin, e.cmd.Stdout = theirIn, theirOut
	e.cmd.Env = append(os.Environ(), env...)
	e.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := e.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirIn.Close()
	theirOut.Close()
	if err := out.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	line, err := e.out.ReadString('\n')
	if err == nil {
		e.pid, err = strconv.Atoi(strings.TrimSpace(line))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // a process that lives ends with its input
		in.Close()
		if !leaderEnds {
			e.cmd.Wait()
		}
		out.Close()
	})
	return e
}

// lives reports whether the process echoes a line.
func (e *echo) lives() bool {
	_, err := io.WriteString(e.in, "line\n")
	if err != nil {
		return false
	}
	line, err := e.out.ReadString('\n')
	return err == nil && line == "line\n"
}

// TestOthersAreSpared: KillLeftover kills no process that only has the number of a worker or of
// its group.
func TestOthersAreSpared(t *testing.T) {
	boot, err := bootID()
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		leaderEnds bool
		env        string
		boot       string
		start      int64 // change of the recorded start time
		lives      bool
	}{
		"a worker":                              {boot: boot},
		"a worker's child":                      {leaderEnds: true, env: workerMode, boot: boot},
		"a process with a worker's number":      {boot: boot, start: -1, lives: true},
		"a process in a group with its number":  {leaderEnds: true, boot: boot, lives: true},
		"a process that is older than a worker": {leaderEnds: true, env: workerMode, boot: boot, start: 1 << 40, lives: true},
		"a process after the machine's restart": {boot: strings.Repeat("0", len(boot)), lives: true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel() // KillLeftover waits for the end of a group
			e := startEcho(t, c.leaderEnds, c.env)
			if !e.lives() { // a process that has not executed cat yet has no environment at times
				t.Fatal("it does not echo")
			}
			p, err := readProcess(e.pid)
			if err != nil {
				t.Fatal(err)
			}
			if c.leaderEnds {
				if err := e.cmd.Wait(); err != nil {
					t.Fatal(err)
				}
			}
			dir := t.TempDir()
			record := fmt.Sprintf("%s\n%d %d\n", c.boot, e.cmd.Process.Pid, int64(p.start)+c.start)
			if err := os.WriteFile(filepath.Join(dir, RecordFile), []byte(record), 0o666); err != nil {
				t.Fatal(err)
			}
			if err := KillLeftover(dir, slog.New(slog.DiscardHandler)); err != nil {
				t.Fatal(err)
			}
			if e.lives() != c.lives {
				t.Errorf("it lives: %v", !c.lives)
			}
		})
	}
}

// TestSignalAfterEnd: no signal is sent once the number may belong to another process.
func TestSignalAfterEnd(t *testing.T) {
	for _, reaped := range []bool{true, false} {
		e := startEcho(t, false)
		w := &process{cmd: e.cmd, reaped: reaped}
		w.Kill()
		if e.lives() != reaped {
			t.Errorf("after a kill it lives: %v, want %v", !reaped, reaped)
		}
	}
}

// TestOtherControlGroup: KillLeftover leaves a control group alone that no tracker made. A
// directory takes its place.
func TestOtherControlGroup(t *testing.T) {
	dir, group := t.TempDir(), filepath.Join(t.TempDir(), "system.slice")
	if err := os.Mkdir(group, 0o777); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{filepath.Join(group, "cgroup.procs"): "", filepath.Join(dir, GroupFile): group + "\n"} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := KillLeftover(dir, slog.New(slog.DiscardHandler)); err != nil {
		t.Error(err)
	}
	if files, err := os.ReadDir(group); err != nil || len(files) != 1 {
		t.Errorf("files of the group: %v, %v", files, err)
	}
	if _, err := os.Stat(filepath.Join(dir, GroupFile)); !os.IsNotExist(err) {
		t.Errorf("the record of the group: %v, want %v", err, fs.ErrNotExist)
	}
}

// TestExceeded: a worker may have as much as its limits.
func TestExceeded(t *testing.T) {
	job := core.Limit{Kind: wire.Reduce, Memory: 2 << 20, Processes: 3}
	limit := new(Maximum).Of(job)
	own := (&Maximum{Memory: 1 << 20, Processes: 2}).Of(job)
	for _, c := range []struct {
		use   usage
		limit Limits
		want  string
	}{
		{usage{2 << 20, 3}, limit, ""},
		{usage{2<<20 + 1, 3}, limit, "its 3 processes have 2 MiB of memory, more than the 2 MiB it may have (mapreduce.reduce.memory.mb)"},
		{usage{2 << 20, 4}, limit, "it has 4 processes, more than the 3 it may have (quern.task.processes)"},
		{usage{1 << 40, 1000}, Limits{}, ""},
		{usage{1<<20 + 1, 1}, own, "its 1 processes have 1 MiB of memory, more than the 1 MiB it may have (tasktracker -max-memory)"},
		{usage{1 << 20, 3}, own, "it has 3 processes, more than the 2 it may have (tasktracker -max-processes)"},
	} {
		if got := c.use.exceeded(&c.limit); got != c.want {
			t.Errorf("%+v of %+v: %q, want %q", c.use, c.limit, got, c.want)
		}
	}
}

// TestReportedOnce: a worker that exceeds its limit is reported once. Its end kills processes
// that have left its group.
func TestReportedOnce(t *testing.T) {
	worker, left := startEcho(t, false), startEcho(t, false)
	p, err := readProcess(left.pid)
	if err != nil {
		t.Fatal(err)
	}
	w := &process{cmd: worker.cmd}
	var reports []string
	m := &meter{workers: map[*process]*workerLimits{w: {
		limit: Limits{Limit: core.Limit{Memory: 1}}, exceeded: func(reason string) { reports = append(reports, reason) },
		detached: map[int]uint64{left.pid: p.start},
	}}}
	for range 3 {
		for _, act := range m.measure() {
			act()
		}
	}
	if len(reports) != 1 || worker.lives() || left.lives() {
		t.Errorf("reports %q; the worker lives: %v, and the other process: %v", reports, worker.lives(), left.lives())
	}

	left = startEcho(t, false)
	if p, err = readProcess(left.pid); err != nil {
		t.Fatal(err)
	}
	m.workers[w].detached = map[int]uint64{left.pid: p.start}
	m.forget(w)
	if left.lives() || len(m.workers) > 0 {
		t.Errorf("after the worker's end, the other process lives: %v; %d workers are measured", left.lives(), len(m.workers))
	}
}
