package runtime

import (
	"fmt"
	"os"
	"path/filepath"
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
