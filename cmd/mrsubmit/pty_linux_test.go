package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// screen is a process on a terminal of its own, and what it has written there.
type screen struct {
	t        *testing.T
	terminal *os.File
	cmd      *exec.Cmd
	mu       sync.Mutex
	written  bytes.Buffer
	grown    chan struct{} // gets a value after more was written
}

// onTerminal starts a command on a new terminal of some size.
func onTerminal(t *testing.T, cmd *exec.Cmd, columns, rows uint16) *screen {
	t.Helper()
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { terminal.Close() })
	fd := int(terminal.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows}); err != nil {
		t.Fatal(err)
	}
	own, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = own, own, own
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	own.Close()
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	s := &screen{t: t, terminal: terminal, cmd: cmd, grown: make(chan struct{}, 1)}
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := terminal.Read(buf)
			s.mu.Lock()
			s.written.Write(buf[:n])
			s.mu.Unlock()
			select {
			case s.grown <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	return s
}

func (s *screen) send(keys string) {
	s.t.Helper()
	if _, err := s.terminal.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written.String()
}

// await waits until the terminal has got a text since an offset, and returns the offset after it.
func (s *screen) await(from int, want string) int {
	s.t.Helper()
	for deadline := time.After(2 * time.Minute); ; {
		if at := strings.Index(s.text()[from:], want); at >= 0 {
			return from + at + len(want)
		}
		select {
		case <-s.grown:
		case <-deadline:
			got := s.text()[from:]
			s.t.Fatalf("the terminal does not show %q: %q", want, got[max(0, len(got)-2000):])
		}
	}
}
