package runtime

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// redirect lets the process's stdout and stderr go to files of a directory, also
// those of what it starts.
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

// keepOutput duplicates the process's stdout and stderr for restoreOutput; nil: it cannot.
func keepOutput() (kept []int) {
	syscall.ForkLock.RLock() // what is started just now must not inherit these
	defer syscall.ForkLock.RUnlock()
	for _, fd := range []int{1, 2} {
		own, err := syscall.Dup(fd)
		if err != nil {
			return nil
		}
		syscall.CloseOnExec(own)
		kept = append(kept, own)
	}
	return kept
}

// restoreOutput undoes redirect, so that the attempt's pipes are free for the next one.
// Where it fails, the tracker finds them in use, and makes others.
func restoreOutput(kept []int) {
	for i, own := range kept {
		_ = duplicate(own, i+1)
	}
}
