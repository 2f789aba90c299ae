// Package healthscript runs an operator's script that says whether this machine is healthy, like the
// health checker of YARN's NodeManager. A line of its output that begins with ERROR means that it is
// not. The exit code means nothing: a script with a mistake must not stop a cluster. A script that
// does not end in time, or cannot be run, means unhealthy too.
//
// The script runs without a shell and without arguments, in a process group of its own, which is
// killed when the time is over. At most maxOutput bytes of its output are read.
package healthscript

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/quernmr/quern/wire"
)

// maxOutput is how many bytes of standard output and standard error are read together.
const maxOutput = 64 << 10

// pipeWait is how long processes of an ended script may hold its output.
const pipeWait = time.Second

// mark begins a line about a fault.
const mark = "ERROR"

// Check refuses a path that is no script, or that other users could change or replace.
func Check(path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("%s is not an absolute path", path)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", path)
	case info.Mode()&0o111 == 0:
		return fmt.Errorf("%s is not executable: chmod +x it", path)
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	if err := checkUsers(path); err != nil || target == path {
		return err
	}
	return checkUsers(target)
}

// checkUsers refuses a path if other users may write the file or a directory above it. In a sticky
// directory they cannot replace files of this user.
func checkUsers(path string) error {
	for at := path; ; at = filepath.Dir(at) {
		info, err := os.Lstat(at)
		if err != nil {
			return err
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid != 0 && int(st.Uid) != os.Geteuid() {
			return fmt.Errorf("%s belongs to user %d, who could change the script: only root and user %d may own it and the directories above", at, st.Uid, os.Geteuid())
		}
		mode := info.Mode()
		if mode.Type() != fs.ModeSymlink && mode&0o022 != 0 && !(mode.IsDir() && mode&fs.ModeSticky != 0) {
			return fmt.Errorf("group or others may write %s: chmod go-w it", at)
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}

// Start starts a process, and returns a function to call after its Wait.
type Start = func(*exec.Cmd) (ended func(), err error)

// Run runs the script once, and returns why the machine is unhealthy; empty: it is healthy, or ctx has
// ended.
func Run(ctx context.Context, path string, timeout time.Duration, start Start) string {
	if err := Check(path); err != nil {
		return fmt.Sprintf("its health script cannot be used: %v", err)
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var out output
	script := exec.CommandContext(limited, path)
	script.Dir, script.Stdout, script.Stderr = "/", &out, &out
	script.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	kill := func() error { return syscall.Kill(-script.Process.Pid, syscall.SIGKILL) }
	script.Cancel, script.WaitDelay = kill, pipeWait
	ended, err := start(script)
	if err == nil {
		err = script.Wait()
		ended()
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return ""
	case limited.Err() != nil:
		return fmt.Sprintf("its health script %s did not end within %v", path, timeout)
	case errors.Is(err, exec.ErrWaitDelay):
		kill() // its children hold the output, so that the group still exists
	case err != nil && !errors.As(err, &exit):
		return fmt.Sprintf("its health script cannot be run: %v", err)
	}
	return out.fault()
}

// output keeps the first maxOutput bytes. One goroutine copies to it, since both streams are the same.
type output struct{ data []byte }

func (o *output) Write(p []byte) (int, error) {
	o.data = append(o.data, p[:min(len(p), maxOutput-len(o.data))]...)
	return len(p), nil
}

// fault returns the lines that begin with mark, in one line.
func (o *output) fault() string {
	var lines []string
	for line := range bytes.Lines(o.data) {
		if bytes.HasPrefix(line, []byte(mark)) {
			lines = append(lines, strings.TrimSpace(strings.ToValidUTF8(string(line), "?")))
		}
	}
	return wire.Truncate(strings.Join(lines, "; "), wire.MaxTrouble)
}
