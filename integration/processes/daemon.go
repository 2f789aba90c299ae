package processes

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/quernmr/quern/identity"
)

// Daemon is a job tracker or a task tracker, running or not.
type Daemon struct {
	ID     string
	Addr   string // of its HTTP service
	Gossip string
	Raft   string // address of a job tracker's log

	// Env is added to its environment, NAME=value, from the next start.
	Env []string

	program  string
	dir      string
	user     []string           // environment variables, before Env
	identity *identity.Identity // of this process, for requests to the daemon; nil: none
	args     []string

	raftProxy, httpProxy *Proxy
	gossipProxy          *gossipProxy
	stopped              bool         // by Stop
	endExpected          bool         // Kill or Terminate has caused the end, or Ended has reported it
	pid                  atomic.Int64 // 0: not started yet
	cmd                  *exec.Cmd
	ready                chan struct{} // closed when it is ready
	ended                chan struct{} // closed when the process has ended
	err                  error         // of Wait, once ended is closed
}

// Data returns its -data directory.
func (d *Daemon) Data() string { return filepath.Join(d.dir, "data") }

// Log returns the file of its standard error.
func (d *Daemon) Log() string { return filepath.Join(d.dir, "log") }

// Start starts the process; Ready waits until it serves.
func (d *Daemon) Start() error {
	if d.Running() {
		return fmt.Errorf("%s runs already", d.ID)
	}
	log, err := os.OpenFile(d.Log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(d.program, d.args...)
	cmd.Stderr, cmd.Dir = log, d.dir
	cmd.Env = append(append(os.Environ(), d.user...), d.Env...)
	// Its own process group keeps Ctrl-C of the tests from interrupting it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", d.ID, err)
	}
	d.pid.Store(int64(cmd.Process.Pid))
	ready, ended := make(chan struct{}), make(chan struct{})
	d.cmd, d.ready, d.ended, d.err, d.stopped, d.endExpected = cmd, ready, ended, nil, false, false
	go func() {
		lines := bufio.NewScanner(out)
		for printed := false; lines.Scan(); {
			if !printed && strings.HasPrefix(lines.Text(), "ready") {
				printed = true
				close(ready)
			}
		}
		io.Copy(io.Discard, out)
		d.err = cmd.Wait()
		close(ended)
	}()
	return nil
}

// Ready waits until the daemon prints that it is ready.
func (d *Daemon) Ready(ctx context.Context) error {
	timeout := time.NewTimer(startWait)
	defer timeout.Stop()
	select {
	case <-d.ready:
		return nil
	case <-d.ended:
		d.endExpected = true
		return fmt.Errorf("%s ended before it was ready: %w\n%s", d.ID, d.err, d.LastLines())
	case <-timeout.C:
		return fmt.Errorf("%s is not ready after %v\n%s", d.ID, startWait, d.LastLines())
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Running reports whether the process runs, even if stopped.
func (d *Daemon) Running() bool {
	if d.cmd == nil {
		return false
	}
	select {
	case <-d.ended:
		return false
	default:
		return true
	}
}

// Crashed reports whether the process has ended unexpectedly.
func (d *Daemon) Crashed() bool { return d.cmd != nil && !d.Running() && !d.endExpected }

// Pid returns the process's number.
func (d *Daemon) Pid() int { return d.cmd.Process.Pid }

// Signal sends a signal.
func (d *Daemon) Signal(s syscall.Signal) error {
	if !d.Running() {
		return fmt.Errorf("signal %s: it does not run", d.ID)
	}
	return d.cmd.Process.Signal(s)
}

// Kill kills the process as kill -9 does, and waits for its end.
func (d *Daemon) Kill() error {
	if err := d.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	d.endExpected = true
	<-d.ended
	return nil
}

// Stop stops the process; Continue continues it.
func (d *Daemon) Stop() error {
	d.stopped = true
	return d.Signal(syscall.SIGSTOP)
}

// Continue continues a stopped process.
func (d *Daemon) Continue() error {
	d.stopped = false
	return d.Signal(syscall.SIGCONT)
}

// Healthy reports whether the process runs and is not stopped.
func (d *Daemon) Healthy() bool { return d.Running() && !d.stopped }

// Terminate sends SIGTERM and waits for the end. It fails if the exit code is not 0. If the
// process does not end, it kills the process and fails.
func (d *Daemon) Terminate() error {
	if err := errors.Join(d.Continue(), d.Signal(syscall.SIGTERM)); err != nil {
		return err
	}
	d.endExpected = true
	timeout := time.NewTimer(startWait)
	defer timeout.Stop()
	select {
	case <-d.ended:
		if d.err != nil {
			return fmt.Errorf("%s ended with %w\n%s", d.ID, d.err, d.LastLines())
		}
		return nil
	case <-timeout.C:
		printed := d.LastLines()
		return errors.Join(fmt.Errorf("%s did not end within %v of SIGTERM\n%s", d.ID, startWait, printed), d.Kill())
	}
}

// Ended waits for the process's end and returns its exit code.
func (d *Daemon) Ended(ctx context.Context) (exit int, err error) {
	select {
	case <-d.ended:
		d.endExpected = true
		return d.cmd.ProcessState.ExitCode(), nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// LastLines returns the end of its log.
func (d *Daemon) LastLines() string {
	text, err := os.ReadFile(d.Log())
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-8<<10):])
}

// Logged reports whether the daemon's log has a text.
func (d *Daemon) Logged(text string) bool {
	log, err := os.ReadFile(d.Log())
	return err == nil && strings.Contains(string(log), text)
}
