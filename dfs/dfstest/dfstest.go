// Package dfstest is the conformance test of file systems. It tests the guarantees of
// package dfs that the commit of a job's output relies on.
package dfstest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"testing"

	"github.com/quernmr/quern/dfs"
)

// Run tests a file system. For each part of the test, newFS returns a file system and the
// URL of an empty directory in it.
func Run(t *testing.T, newFS func(t *testing.T) (dfs.FS, string)) {
	parts := []struct {
		name string
		test func(*tree)
	}{
		{"files", (*tree).files}, {"reading", (*tree).reading}, {"directories", (*tree).directories},
		{"missing", (*tree).missing}, {"taken", (*tree).existing}, {"abort", (*tree).abort},
		{"rename file", (*tree).renameFile}, {"rename directory", (*tree).renameDir},
		{"removal", (*tree).removal}, {"one winner", (*tree).oneWinner},
	}
	for _, part := range parts {
		t.Run(part.name, func(t *testing.T) {
			f, root := newFS(t)
			part.test(&tree{T: t, fs: f, root: root})
		})
	}
}

type tree struct {
	*testing.T
	fs   dfs.FS
	root string
}

func (t *tree) url(name string) string {
	if name == "" {
		return t.root
	}
	return dfs.Join(t.root, strings.Split(name, "/")...)
}

// must fails the test on an error.
func (t *tree) must(err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// checkError checks that an error matches the sentinel and names the path exactly once.
func (t *tree) checkError(err, sentinel error, name string) {
	t.Helper()
	if sentinel == nil && err == nil || sentinel != nil && !errors.Is(err, sentinel) {
		t.Fatalf("%s: got error %v, want %v", name, err, sentinel)
	}
	_, path, _ := strings.Cut(t.url(name), "://")
	text := err.Error() + " "
	if n := strings.Count(text, path+" ") + strings.Count(text, path+":"); n != 1 {
		t.Errorf("error %q names %s %d times", err, path, n)
	}
}

func (t *tree) write(name, content string) {
	t.Helper()
	w, err := t.fs.Create(t.url(name))
	t.must(err)
	_, err = io.WriteString(w, content)
	t.must(err)
	t.must(w.Close())
}

func (t *tree) checkContent(name, content string) {
	t.Helper()
	f, err := t.fs.Open(t.url(name))
	t.must(err)
	defer f.Close()
	got, err := io.ReadAll(f)
	t.must(err)
	if string(got) != content {
		t.Fatalf("%s holds %q, want %q", name, got, content)
	}
}

func (t *tree) checkList(name, want string) {
	t.Helper()
	infos, err := t.fs.List(t.url(name))
	t.must(err)
	var got []string
	for _, info := range infos {
		if dfs.Dir(info.Name) != t.url(name) {
			t.Errorf("List of %s gave %s", t.url(name), info.Name)
		}
		line := fmt.Sprint(dfs.Base(info.Name), ":", info.Size)
		if info.Dir {
			line = dfs.Base(info.Name) + "/"
		}
		got = append(got, line)
	}
	if s := strings.Join(got, " "); s != want {
		t.Fatalf("%s lists %q, want %q", name, s, want)
	}
}

func (t *tree) files() {
	t.write("a", "one")
	t.checkContent("a", "one")
	t.write("b", "")
	t.checkContent("b", "")
	info, err := t.fs.Stat(t.url("a"))
	t.must(err)
	if info.Name != t.url("a") || info.Size != 3 || info.Dir || info.BlockSize <= 0 || info.Modified.IsZero() {
		t.Errorf("Stat gave %+v", info)
	}
	w, err := t.fs.Create(t.url("c"))
	t.must(err)
	for range 100 {
		_, err := w.Write(bytes.Repeat([]byte("x"), 1000))
		t.must(err)
	}
	t.must(w.Close())
	t.checkList("", "a:3 b:0 c:100000")
}

func (t *tree) reading() {
	t.write("a", "0123456789")
	f, err := t.fs.Open(t.url("a"))
	t.must(err)
	defer f.Close()
	if info := f.Info(); info.Name != t.url("a") || info.Size != 10 || info.BlockSize <= 0 {
		t.Errorf("Info gave %+v", info)
	}
	var buf [4]byte
	if n, err := f.ReadAt(buf[:], 3); n != 4 || err != nil || string(buf[:]) != "3456" {
		t.Errorf("ReadAt(3) gave %d %v %q", n, err, buf)
	}
	if n, err := f.ReadAt(buf[:], 8); n != 2 || err != io.EOF || string(buf[:2]) != "89" {
		t.Errorf("ReadAt(8) gave %d %v %q", n, err, buf)
	}
	if n, err := f.ReadAt(buf[:], 99); n != 0 || err != io.EOF {
		t.Errorf("ReadAt(99) gave %d %v", n, err)
	}
	rest, err := io.ReadAll(f) // ReadAt must not change the offset of Read
	if err != nil || string(rest) != "0123456789" {
		t.Errorf("reading gave %q %v", rest, err)
	}
	var wait sync.WaitGroup
	for i := range 10 {
		wait.Go(func() {
			var one [1]byte
			if _, err := f.ReadAt(one[:], int64(i)); (err != nil && err != io.EOF) || one[0] != byte('0'+i) {
				t.Errorf("concurrent ReadAt(%d) gave %q %v", i, one, err)
			}
		})
	}
	wait.Wait()
}

func (t *tree) directories() {
	t.must(t.fs.Mkdir(t.url("d")))
	t.must(t.fs.MkdirAll(t.url("d/x/y")))
	t.must(t.fs.MkdirAll(t.url("d/x/y")))
	t.write("d/f", "12")
	t.write("d/B", "1")
	t.checkList("d", "B:1 f:2 x/")
	t.checkList("d/x/y", "")
	t.must(t.fs.SyncDir(t.url("d")))
	info, err := t.fs.Stat(t.url("d"))
	t.must(err)
	if !info.Dir || info.Size != 0 {
		t.Errorf("Stat gave %+v", info)
	}
	_, err = t.fs.Open(t.url("d"))
	t.checkError(err, nil, "d")
	t.checkModified("d")
}

// checkModified checks that new and removed entries change a directory's time. Clocks may be
// coarse, so it repeats the change.
func (t *tree) checkModified(dir string) {
	before, err := t.fs.Stat(t.url(dir))
	t.must(err)
	for range 10_000 {
		t.write(dir+"/marker", "")
		t.must(t.fs.Remove(t.url(dir + "/marker")))
		now, err := t.fs.Stat(t.url(dir))
		t.must(err)
		if now.Modified.After(before.Modified) {
			return
		}
	}
	t.Errorf("%s is of %v after its entries have changed", dir, before.Modified)
}

func (t *tree) missing() {
	notExist := func(err error, name string) { t.Helper(); t.checkError(err, fs.ErrNotExist, name) }
	_, err := t.fs.Open(t.url("no"))
	notExist(err, "no")
	_, err = t.fs.Stat(t.url("no"))
	notExist(err, "no")
	_, err = t.fs.List(t.url("no"))
	notExist(err, "no")
	_, err = t.fs.Create(t.url("no/f"))
	notExist(err, "no/f")
	notExist(t.fs.Mkdir(t.url("no/d")), "no/d")
	notExist(t.fs.Remove(t.url("no")), "no")
	notExist(t.fs.RenameFile(t.url("no"), t.url("x")), "no")
	notExist(t.fs.RenameDir(t.url("no"), t.url("x")), "no")
	t.must(t.fs.RemoveAll(t.url("no")))
	t.must(t.fs.RemoveAll(t.url("no/no")))
	t.checkList("", "")
}

func (t *tree) existing() {
	t.write("f", "1")
	t.must(t.fs.Mkdir(t.url("d")))
	for _, name := range []string{"f", "d"} {
		_, err := t.fs.Create(t.url(name))
		t.checkError(err, fs.ErrExist, name)
		t.checkError(t.fs.Mkdir(t.url(name)), fs.ErrExist, name)
	}
	if t.fs.MkdirAll(t.url("f")) == nil || t.fs.MkdirAll(t.url("f/x")) == nil {
		t.Error("MkdirAll accepted a file as a directory")
	}
	t.checkContent("f", "1")
}

func (t *tree) abort() {
	w, err := t.fs.Create(t.url("f"))
	t.must(err)
	_, err = io.WriteString(w, "part")
	t.must(err)
	t.must(w.Abort())
	if err := t.fs.Remove(t.url("f")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	t.write("f", "whole")
	t.checkContent("f", "whole")
}

func (t *tree) renameFile() {
	t.write("a", "A")
	t.write("b", "B")
	t.must(t.fs.Mkdir(t.url("d")))
	t.checkError(t.fs.RenameFile(t.url("a"), t.url("b")), fs.ErrExist, "b")
	t.checkError(t.fs.RenameFile(t.url("a"), t.url("d")), fs.ErrExist, "d")
	t.checkList("d", "")
	t.checkContent("a", "A")
	t.checkContent("b", "B")
	t.checkError(t.fs.RenameFile(t.url("a"), t.url("no/a")), fs.ErrNotExist, "no/a")
	t.must(t.fs.RenameFile(t.url("a"), t.url("d/a")))
	t.checkContent("d/a", "A")
	t.checkError(t.fs.RenameFile(t.url("a"), t.url("d/a")), fs.ErrNotExist, "a") // the previous call renamed it
	t.checkList("", "b:1 d/")
}

func (t *tree) renameDir() {
	t.must(t.fs.MkdirAll(t.url("a/s")))
	t.write("a/f", "A")
	t.must(t.fs.Mkdir(t.url("b")))
	t.write("b/f", "B")
	t.write("f", "F")
	t.checkError(t.fs.RenameDir(t.url("a"), t.url("b")), fs.ErrExist, "b")
	if t.fs.RenameDir(t.url("a"), t.url("f")) == nil {
		t.Error("a directory replaced a file")
	}
	t.checkError(t.fs.RenameDir(t.url("a"), t.url("no/a")), fs.ErrNotExist, "no/a")
	if t.fs.RenameDir(t.url("a"), t.url("a/s/a")) == nil {
		t.Error("a directory moved below itself")
	}
	t.checkContent("a/f", "A")
	t.checkContent("b/f", "B")
	t.checkContent("f", "F")
	t.must(t.fs.RenameDir(t.url("a"), t.url("c")))
	t.checkList("c", "f:1 s/")
	t.checkError(t.fs.RenameDir(t.url("a"), t.url("c")), fs.ErrNotExist, "a")
	t.checkList("c", "f:1 s/")
	t.checkList("", "b/ c/ f:1")
}

func (t *tree) removal() {
	t.must(t.fs.MkdirAll(t.url("a/b")))
	t.write("a/f", "1")
	t.write("a/b/f", "1")
	if t.fs.Remove(t.url("a")) == nil {
		t.Error("Remove removed a tree")
	}
	t.must(t.fs.Remove(t.url("a/f")))
	t.must(t.fs.RemoveAll(t.url("a/b")))
	t.checkList("a", "")
	t.must(t.fs.Remove(t.url("a")))
	t.checkList("", "")
}

// oneWinner runs several creates or renames of one name at once: exactly one must succeed.
func (t *tree) oneWinner() {
	const racers = 8
	for i := range racers {
		t.must(t.fs.Mkdir(t.url(fmt.Sprint("d", i))))
		t.write(fmt.Sprint("d", i, "/id"), fmt.Sprint(i))
		t.write(fmt.Sprint("f", i), fmt.Sprint(i))
	}
	races := map[string]func(i int) error{
		"create": func(int) error {
			w, err := t.fs.Create(t.url("made"))
			if err == nil {
				err = w.Close()
			}
			return err
		},
		"mkdir":       func(int) error { return t.fs.Mkdir(t.url("dir")) },
		"rename file": func(i int) error { return t.fs.RenameFile(t.url(fmt.Sprint("f", i)), t.url("file")) },
		"rename dir":  func(i int) error { return t.fs.RenameDir(t.url(fmt.Sprint("d", i)), t.url("task")) },
	}
	for name, race := range races {
		errs := make([]error, racers)
		var wait sync.WaitGroup
		for i := range racers {
			wait.Go(func() { errs[i] = race(i) })
		}
		wait.Wait()
		winners := 0
		for _, err := range errs {
			if err == nil {
				winners++
			} else if !errors.Is(err, fs.ErrExist) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if winners != 1 {
			t.Errorf("%s: %d winners", name, winners)
		}
	}
}
