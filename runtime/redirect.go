//go:build unix

package runtime

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// redirect sends the stdout and stderr of the process, and of the processes it starts, to
// files in a directory.
func redirect(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("make log directory: %w", err)
	}
	for fd, name := range map[int]string{1: "stdout", 2: "stderr"} {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
		if err != nil {
			return fmt.Errorf("open log: %w", err)
		}
		err = duplicate(int(f.Fd()), fd)
		f.Close()
		if err != nil {
			return fmt.Errorf("redirect %s: %w", name, err)
		}
	}
	return nil
}

// keepOutput duplicates the process's stdout and stderr for restoreOutput. It returns nil
// on failure.
func keepOutput() (saved []int) {
	syscall.ForkLock.RLock() // processes started now must not inherit the duplicates
	defer syscall.ForkLock.RUnlock()
	for _, fd := range []int{1, 2} {
		fdCopy, err := syscall.Dup(fd)
		if err != nil {
			return nil
		}
		syscall.CloseOnExec(fdCopy)
		saved = append(saved, fdCopy)
	}
	return saved
}

// restoreOutput undoes redirect, so that the next attempt can use the pipes. If it fails,
// the tracker finds the pipes in use and makes new ones.
func restoreOutput(saved []int) {
	for i, fdCopy := range saved {
		_ = duplicate(fdCopy, i+1)
	}
}
