package datadir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// asOther calls f without the rights of root, so that modes of directories hold.
func asOther(t *testing.T, dir string, f func()) {
	t.Helper()
	const uid = 23001
	if os.Geteuid() != 0 {
		f()
		return
	}
	if err := os.Chown(dir, uid, uid); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocks: the thread ends with this goroutine
		_, _ = unix.SetfsuidRetUid(uid)
		f()
	}()
	<-done
}

// TestRemoveAll: a tree is removed although the job has taken the rights from its directories, and has nested more of them
// than this process can have open. Names that the removal uses itself may be there. Links are not followed.
func TestRemoveAll(t *testing.T) {
	base := t.TempDir()
	root, err := os.OpenRoot(base)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	const depth = 300
	asOther(t, base, func() {
		deep := "top" + strings.Repeat("/d", depth)
		for _, dir := range []string{"other", "top/none/inner", "top/read/inner", "top/removed-1/x", deep} {
			if err := errors.Join(root.MkdirAll(dir, 0o755), root.WriteFile(dir+"/file", nil, 0o600)); err != nil {
				t.Error(err)
			}
		}
		if err := errors.Join(root.Symlink("../other", "top/link"), root.Chmod("top/none/inner", 0), root.Chmod("top/none", 0), root.Chmod("top/read", 0o500),
			root.Chmod(deep, 0o555)); err != nil {
			t.Error(err)
		}
		if err := root.RemoveAll("top"); err == nil {
			t.Error("the modes do not hold")
		}
		defer limitFiles(t, depth/2)()
		for _, name := range []string{"top/none/inner", "top", "top", "missing/x"} {
			if err := RemoveAll(root, name); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := root.Lstat("top"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the tree is left: %v", err)
		}
		if _, err := root.Lstat("other/file"); err != nil {
			t.Errorf("what a link led to: %v", err)
		}
	})
}

// limitFiles limits the files that this process can have open beside those that it has.
func limitFiles(t *testing.T, more int) (restore func()) {
	open, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Error(err)
	}
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Error(err)
	}
	set := func(limit syscall.Rlimit) {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			t.Error(err)
		}
	}
	set(syscall.Rlimit{Cur: uint64(len(open) + more), Max: before.Max})
	return func() { set(before) }
}
