//go:build unix

package runtime

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestStrangePositions: the reader of a position, which is another process, does not wait for a
// file that the job's code has made, follow its links or read much of it.
func TestStrangePositions(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good")
	if err := os.WriteFile(good, []byte("12345678"), 0o666); err != nil {
		t.Fatal(err)
	}
	if ReadPosition(good) == 0 {
		t.Error("a file with a number has no position")
	}
	for name, create := range map[string]func(file string) error{
		"pipe":      func(file string) error { return unix.Mkfifo(file, 0o600) },
		"link":      func(file string) error { return os.Symlink(good, file) },
		"endless":   func(file string) error { return os.Symlink("/dev/zero", file) },
		"directory": func(file string) error { return os.Mkdir(file, 0o700) },
		"huge": func(file string) error {
			if err := os.WriteFile(file, []byte("12345678"), 0o666); err != nil {
				return err
			}
			return os.Truncate(file, 1<<50)
		},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(dir, name)
			if err := create(file); err != nil {
				t.Skip(err)
			}
			if n := ReadPosition(file); n != 0 {
				t.Errorf("position %d", n)
			}
		})
	}
}
