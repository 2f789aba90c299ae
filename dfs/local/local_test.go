package local

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/dfstest"
)

func TestConformance(t *testing.T) {
	dfstest.Run(t, func(t *testing.T) (dfs.FS, string) { return New(), "file://" + t.TempDir() })
}

// TestRenameByLink renames by links, as on a kernel without RENAME_NOREPLACE.
func TestRenameByLink(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	write := func(path, content string) {
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write(a, "A")
	write(b, "B")
	if err := renameByLink(a, b); !errors.Is(err, fs.ErrExist) {
		t.Fatalf("onto another file: %v", err)
	}
	if err := os.Remove(b); err != nil {
		t.Fatal(err)
	}
	// An interrupted rename left both names; the next call finishes it.
	if err := os.Link(a, b); err != nil {
		t.Fatal(err)
	}
	if err := renameByLink(a, b); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(a); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("source after the rename: %v", err)
	}
	if err := renameByLink(a, b); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a second time: %v", err)
	}
	if err := renameByLink(b, b); !errors.Is(err, fs.ErrExist) {
		t.Errorf("onto itself: %v", err)
	}
	if got, _ := os.ReadFile(b); string(got) != "A" {
		t.Errorf("target holds %q", got)
	}
}

func TestAbort(t *testing.T) {
	dir := t.TempDir()
	w, err := New().Create(filepath.Join(dir, "f"))
	if err == nil {
		_, err = w.Write([]byte("part"))
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Abort(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestNames(t *testing.T) {
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"file:///a/b": "/a/b", "file://localhost/a//b": "/a/b", "/a/../b": "/b", "x/y": wd + "/x/y",
		"file:/a/b": "/a/b", "/a:b": "/a:b", "./a:b": wd + "/a:b",
		"file://host/a": "", "hdfs://nn/a": "", "hdfs:/a": "", "file:a": "", "a:b": "", "": "",
	} {
		got, err := Path(name)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("Path(%q) = %q, %v; want %q", name, got, err, want)
		}
	}
}

func TestOddFiles(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := New().Open(pipe); err == nil {
		t.Error("a named pipe was opened as a file")
	}
	if err := os.WriteFile(filepath.Join(dir, "real"), []byte("123"), 0o666); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"good": "real", "lost": "nowhere"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	infos, err := New().List(dir)
	if err != nil || len(infos) != 4 {
		t.Fatalf("List gave %v, %v", infos, err)
	}
	if infos[0].Size != 3 {
		t.Errorf("a link's size is %d, want its target's", infos[0].Size)
	}
	if _, err := New().Open(infos[1].Name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("opening a dangling link: %v", err)
	}
}
