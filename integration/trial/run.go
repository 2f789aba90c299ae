package trial

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Deadline is generous: it only ends a test that hangs.
const Deadline = 3 * time.Minute

// Intervals for polling files and daemons. A look at a daemon costs a connection with TLS.
const (
	filePoll   = 10 * time.Millisecond
	daemonPoll = 100 * time.Millisecond
)

// Within polls until a condition holds. It returns false if that takes longer than limit.
func Within(limit time.Duration, holds func() bool) bool { return Poll(limit, daemonPoll, holds) }

// Poll is Within with another interval than for daemons.
func Poll(limit, every time.Duration, holds func() bool) bool {
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-timeout.C:
			return holds()
		}
	}
	return true
}

// Await waits until a condition holds, or fails the test.
func Await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	if !Within(Deadline, holds) {
		t.Fatalf("waited %v without success for: %s", Deadline, what)
	}
}

// Output collects the output of a running program.
type Output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Run is a running command.
type Run struct {
	Stdout, Stderr Output
	Ended          chan struct{} // closed when the command has ended

	t   testing.TB
	cmd *exec.Cmd
}

// Begin starts a command.
func Begin(t testing.TB, cmd *exec.Cmd) *Run {
	t.Helper()
	r := &Run{t: t, cmd: cmd, Ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &r.Stdout, &r.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(r.Ended)
		cmd.Wait()
	}()
	return r
}

// Pid returns the process's number.
func (r *Run) Pid() int { return r.cmd.Process.Pid }

// Signal sends a signal to a command that still runs.
func (r *Run) Signal(s os.Signal) {
	r.t.Helper()
	if !r.TrySignal(s) {
		r.t.Fatalf("%v: the command has ended before", s)
	}
}

// TrySignal sends a signal and reports whether the command was still running.
func (r *Run) TrySignal(s os.Signal) bool {
	r.t.Helper()
	err := r.cmd.Process.Signal(s)
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		r.t.Fatal(err)
	}
	return err == nil
}

// Exit waits for the command's end and returns its exit code.
func (r *Run) Exit() int {
	<-r.Ended
	return r.cmd.ProcessState.ExitCode()
}

// Succeed waits for the command, which must exit with 0, and returns its standard output.
func (r *Run) Succeed() string {
	r.t.Helper()
	if code := r.Exit(); code != 0 {
		r.t.Fatalf("%s: exit %d\n%s", r, code, r.output())
	}
	return r.Stdout.String()
}

// Fail waits for the command, which must exit with code and print all texts on standard
// error.
func (r *Run) Fail(code int, wants ...string) {
	r.t.Helper()
	if got := r.Exit(); got != code || !ContainsAll(r.Stderr.String(), wants) {
		r.t.Errorf("%s: exit %d, want %d and %q:\n%s", r, got, code, wants, r.output())
	}
}

// Await waits until a condition holds. It fails the test if the command ends before.
func (r *Run) Await(what string, holds func() bool) {
	r.t.Helper()
	Poll(Deadline, filePoll, func() bool {
		select {
		case <-r.Ended:
			return true
		default:
			return holds()
		}
	})
	if !holds() {
		r.t.Fatalf("%s: waited without success for: %s\n%s", r, what, r.output())
	}
}

func (r *Run) String() string { return strings.Join(r.cmd.Args, " ") }

func (r *Run) output() string { return r.Stdout.String() + r.Stderr.String() }

// ContainsAll reports whether a text contains all wanted texts.
func ContainsAll(text string, wants []string) bool {
	return !slices.ContainsFunc(wants, func(want string) bool { return !strings.Contains(text, want) })
}

// Processes lists the numbers of processes with programs in a directory, and of those with programs that
// have no name and working directories in it. These are workers.
func Processes(dir string) (pids []string) {
	all, _ := filepath.Glob("/proc/[0-9]*") // the pattern is well-formed
	for _, process := range all {
		exe, _ := os.Readlink(filepath.Join(process, "exe")) // empty: it has ended
		cwd, _ := os.Readlink(filepath.Join(process, "cwd"))
		nameless := strings.HasPrefix(exe, "/memfd:") || strings.HasSuffix(exe, " (deleted)")
		if strings.HasPrefix(exe, dir) || nameless && strings.HasPrefix(cwd, dir) {
			pids = append(pids, filepath.Base(process))
		}
	}
	return pids
}
