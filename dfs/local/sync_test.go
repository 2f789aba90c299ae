package local

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/quernmr/quern/dfs"
)

// TestSync checks the order of synced files and directories. Volatile syncs nothing.
func TestSync(t *testing.T) {
	top := t.TempDir()
	var synced []string
	recording := New()
	recording.sync = func(f *os.File) error {
		name, err := filepath.Rel(top, f.Name())
		info, statErr := f.Stat()
		if err == nil && statErr == nil && !info.IsDir() {
			name += ":" + string(rune('0'+info.Size())) // the size when synced
		}
		synced = append(synced, name)
		return errors.Join(err, statErr, f.Sync())
	}
	work := func(f dfs.FS, root string) {
		t.Helper()
		err := errors.Join(
			f.MkdirAll(dfs.Join(root, "b", "c")), f.MkdirAll(dfs.Join(root, "b", "c")), f.Mkdir(dfs.Join(root, "b", "d")),
			dfs.Private(f).MkdirAll(dfs.Join(root, "e")))
		w, createErr := dfs.Private(f).Create(dfs.Join(root, "b", "file"))
		if err = errors.Join(err, createErr); err != nil {
			t.Fatal(err)
		}
		_, err = w.Write([]byte("123"))
		err = errors.Join(err, w.Close(), f.RenameFile(dfs.Join(root, "b", "file"), dfs.Join(root, "file")), f.SyncDir(root))
		if err != nil {
			t.Fatal(err)
		}
	}
	mux := dfs.Mux{"file": recording}
	work(mux, "file://"+filepath.Join(top, "a"))
	if want := strings.Fields("a/b a . a a/b/file:3 a"); !slices.Equal(synced, want) {
		t.Errorf("synced %q, want %q", synced, want)
	}
	synced = nil
	work(dfs.Volatile(mux), "file://"+filepath.Join(top, "volatile"))
	if synced != nil {
		t.Errorf("a volatile FS synced %q", synced)
	}
}

// TestSyncFails checks that an error of fsync names the path, and that a second Close does
// not hide it. A file system without fsync of directories is accepted.
func TestSyncFails(t *testing.T) {
	failing := New()
	var fails error
	failing.sync = func(f *os.File) error { return &os.PathError{Op: "sync", Path: f.Name(), Err: fails} }
	top := t.TempDir()
	for _, fails = range []error{syscall.EIO, syscall.EINVAL, syscall.ENOTSUP} {
		name := filepath.Join(t.TempDir(), "file")
		w, err := failing.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); !errors.Is(err, fails) || !strings.Contains(err.Error(), name) {
			t.Errorf("Close of a file: %v", err)
		}
		if err := w.Close(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("a second Close: %v", err)
		}
		err = failing.SyncDir(top)
		if fails == syscall.EIO && (!errors.Is(err, fails) || !strings.Contains(err.Error(), top)) || fails != syscall.EIO && err != nil {
			t.Errorf("%v of a directory: %v", fails, err)
		}
	}
	if err := New().SyncDir(filepath.Join(top, "no")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of a directory that is not there: %v", err)
	}
}
