package dfstest

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// OtherMount returns an empty directory of this machine on another mount than dir. If there is none, it skips the test.
func OtherMount(t testing.TB, dir string) string {
	t.Helper()
	probe := filepath.Join(dir, "probe")
	if err := os.WriteFile(probe, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(probe)
	for _, parent := range []string{"/dev/shm", "/var/tmp", "/tmp"} {
		other, err := os.MkdirTemp(parent, "mount")
		if err != nil {
			continue
		}
		t.Cleanup(func() { os.RemoveAll(other) })
		if errors.Is(os.Rename(probe, filepath.Join(other, "probe")), syscall.EXDEV) {
			return other
		}
	}
	t.Skip("no second mount: neither /dev/shm nor /var/tmp nor /tmp is another one")
	return ""
}
