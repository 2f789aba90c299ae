package local

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
)

// TestConfined: a file of a directory below the root is opened, also by a link in it. A link out of it, and a
// named pipe, are not opened. Other files are as without the root.
func TestConfined(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"own/sub/file", "other/file", "programs/day/program", "file"} {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(name), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	outside := filepath.Join(t.TempDir(), "secret")
	err := errors.Join(os.WriteFile(outside, []byte("secret"), 0o600), os.Symlink("sub/file", root+"/own/near"), os.Symlink("../other/file", root+"/own/far"),
		os.Symlink(outside, root+"/own/absolute"), os.Symlink(filepath.Dir(outside), root+"/own/dir"), os.Symlink(outside, root+"/link"), syscall.Mkfifo(root+"/own/pipe", 0o600))
	if err != nil {
		t.Fatal(err)
	}
	f := Confined(New(), url(root))
	for name, want := range map[string]string{
		"/own/sub/file": "own/sub/file", "/own/near": "own/sub/file", "/programs/day/program": "programs/day/program", "/file": "file",
		"/link":    "secret", // only this process's account writes there
		"/own/far": "", "/own/absolute": "", "/own/dir/secret": "", "/own/pipe": "", "/own/sub": "", "/own/none": "", "/none/file": "",
	} {
		file, err := f.Open(url(root) + name)
		if err != nil {
			if want != "" || (name == "/own/none" || name == "/none/file") != errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if got, err := io.ReadAll(file); err != nil || string(got) != want || file.Info().Name != url(root)+name || file.Info().Size != int64(len(want)) {
			t.Errorf("%s: %q, %v, %+v", name, got, err, file.Info())
		}
		file.Close()
	}
	if file, err := f.Open(outside); err != nil {
		t.Errorf("a file elsewhere: %v", err)
	} else {
		file.Close()
	}
	if _, ok := Confined(New(), "hdfs://nn/staging").(confined); ok {
		t.Error("in another file system it is another FS")
	}
}

// TestConfinedList: a directory below the root is listed as by the file system, but a link in it or in its place is refused
// by its name, wherever it leads.
func TestConfinedList(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	for _, name := range []string{"own/a/part-1", "own/a/part-0", "own/a/sub/file", "own/linked/part-0", "file"} {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(name), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	err := errors.Join(os.WriteFile(outside+"/secret", nil, 0o600), os.Symlink(outside, root+"/own/far"), os.Symlink("a", root+"/own/near"),
		os.Symlink(outside+"/secret", root+"/own/linked/part-1"))
	if err != nil {
		t.Fatal(err)
	}
	f := Confined(New(), url(root))
	for _, name := range []string{"/own/a", "/own/a/sub", ""} {
		got, err := f.List(url(root + name))
		want, err2 := New().List(url(root + name))
		if err != nil || err2 != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v\nwant %v, %v", name, got, err, want, err2)
		}
	}
	for name, link := range map[string]string{"/own/far": "/own/far", "/own/near": "/own/near", "/own/linked": "/own/linked/part-1"} {
		if got, err := f.List(url(root + name)); err == nil || !strings.Contains(err.Error(), root+link+": it is a symbolic link") {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if _, err := f.List(url(root) + "/own/far/x"); err == nil {
		t.Error("a directory behind a link was listed")
	}
	if _, err := f.List(url(root) + "/own/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing directory: %v", err)
	}
}
