// Package dfstest is the conformance test of file systems. A file system that passes gives
// the guarantees of package dfs that the commit of a job's output relies on.
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
		{"missing", (*tree).missing}, {"taken", (*tree).taken}, {"abort", (*tree).abort},
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

func (t *tree) at(name string) string {
	if name == "" {
		return t.root
	}
	return dfs.Join(t.root, strings.Split(name, "/")...)
}

// ok fails the test on an error.
func (t *tree) ok(err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refused checks that an error matches the sentinel and names the path exactly once.
func (t *tree) refused(err, sentinel error, name string) {
	t.Helper()
	if sentinel == nil && err == nil || sentinel != nil && !errors.Is(err, sentinel) {
		t.Fatalf("%s: got error %v, want %v", name, err, sentinel)
	}
	_, path, _ := strings.Cut(t.at(name), "://")
	text := err.Error() + " "
	if n := strings.Count(text, path+" ") + strings.Count(text, path+":"); n != 1 {
		t.Errorf("error %q names %s %d times", err, path, n)
	}
}

func (t *tree) write(name, content string) {
	t.Helper()
	w, err := t.fs.Create(t.at(name))
	t.ok(err)
	_, err = io.WriteString(w, content)
	t.ok(err)
	t.ok(w.Close())
}

func (t *tree) holds(name, content string) {
	t.Helper()
	f, err := t.fs.Open(t.at(name))
	t.ok(err)
	defer f.Close()
	got, err := io.ReadAll(f)
	t.ok(err)
	if string(got) != content {
		t.Fatalf("%s holds %q, want %q", name, got, content)
	}
}

func (t *tree) lists(name, want string) {
	t.Helper()
	infos, err := t.fs.List(t.at(name))
	t.ok(err)
	var got []string
	for _, info := range infos {
		if dfs.Dir(info.Name) != t.at(name) {
			t.Errorf("List of %s gave %s", t.at(name), info.Name)
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
	t.holds("a", "one")
	t.write("b", "")
	t.holds("b", "")
	info, err := t.fs.Stat(t.at("a"))
	t.ok(err)
	if info.Name != t.at("a") || info.Size != 3 || info.Dir || info.BlockSize <= 0 || info.Modified.IsZero() {
		t.Errorf("Stat gave %+v", info)
	}
	w, err := t.fs.Create(t.at("c"))
	t.ok(err)
	for range 100 {
		_, err := w.Write(bytes.Repeat([]byte("x"), 1000))
		t.ok(err)
	}
	t.ok(w.Close())
	t.lists("", "a:3 b:0 c:100000")
}

func (t *tree) reading() {
	t.write("a", "0123456789")
	f, err := t.fs.Open(t.at("a"))
	t.ok(err)
	defer f.Close()
	if info := f.Info(); info.Name != t.at("a") || info.Size != 10 || info.BlockSize <= 0 {
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
	rest, err := io.ReadAll(f) // not moved by ReadAt
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
	t.ok(t.fs.Mkdir(t.at("d")))
	t.ok(t.fs.MkdirAll(t.at("d/x/y")))
	t.ok(t.fs.MkdirAll(t.at("d/x/y")))
	t.write("d/f", "12")
	t.write("d/B", "1")
	t.lists("d", "B:1 f:2 x/")
	t.lists("d/x/y", "")
	t.ok(t.fs.SyncDir(t.at("d")))
	info, err := t.fs.Stat(t.at("d"))
	t.ok(err)
	if !info.Dir || info.Size != 0 {
		t.Errorf("Stat gave %+v", info)
	}
	_, err = t.fs.Open(t.at("d"))
	t.refused(err, nil, "d")
}

func (t *tree) missing() {
	gone := func(err error, name string) { t.Helper(); t.refused(err, fs.ErrNotExist, name) }
	_, err := t.fs.Open(t.at("no"))
	gone(err, "no")
	_, err = t.fs.Stat(t.at("no"))
	gone(err, "no")
	_, err = t.fs.List(t.at("no"))
	gone(err, "no")
	_, err = t.fs.Create(t.at("no/f"))
	gone(err, "no/f")
	gone(t.fs.Mkdir(t.at("no/d")), "no/d")
	gone(t.fs.Remove(t.at("no")), "no")
	gone(t.fs.RenameFile(t.at("no"), t.at("x")), "no")
	gone(t.fs.RenameDir(t.at("no"), t.at("x")), "no")
	t.ok(t.fs.RemoveAll(t.at("no")))
	t.ok(t.fs.RemoveAll(t.at("no/no")))
	t.lists("", "")
}

func (t *tree) taken() {
	t.write("f", "1")
	t.ok(t.fs.Mkdir(t.at("d")))
	for _, name := range []string{"f", "d"} {
		_, err := t.fs.Create(t.at(name))
		t.refused(err, fs.ErrExist, name)
		t.refused(t.fs.Mkdir(t.at(name)), fs.ErrExist, name)
	}
	if t.fs.MkdirAll(t.at("f")) == nil || t.fs.MkdirAll(t.at("f/x")) == nil {
		t.Error("MkdirAll accepted a file as a directory")
	}
	t.holds("f", "1")
}

func (t *tree) abort() {
	w, err := t.fs.Create(t.at("f"))
	t.ok(err)
	_, err = io.WriteString(w, "part")
	t.ok(err)
	t.ok(w.Abort())
	if err := t.fs.Remove(t.at("f")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	t.write("f", "whole")
	t.holds("f", "whole")
}

func (t *tree) renameFile() {
	t.write("a", "A")
	t.write("b", "B")
	t.ok(t.fs.Mkdir(t.at("d")))
	t.refused(t.fs.RenameFile(t.at("a"), t.at("b")), fs.ErrExist, "b")
	t.refused(t.fs.RenameFile(t.at("a"), t.at("d")), fs.ErrExist, "d")
	t.lists("d", "")
	t.holds("a", "A")
	t.holds("b", "B")
	t.refused(t.fs.RenameFile(t.at("a"), t.at("no/a")), fs.ErrNotExist, "no/a")
	t.ok(t.fs.RenameFile(t.at("a"), t.at("d/a")))
	t.holds("d/a", "A")
	t.refused(t.fs.RenameFile(t.at("a"), t.at("d/a")), fs.ErrNotExist, "a") // done by the call before
	t.lists("", "b:1 d/")
}

func (t *tree) renameDir() {
	t.ok(t.fs.MkdirAll(t.at("a/s")))
	t.write("a/f", "A")
	t.ok(t.fs.Mkdir(t.at("b")))
	t.write("b/f", "B")
	t.write("f", "F")
	t.refused(t.fs.RenameDir(t.at("a"), t.at("b")), fs.ErrExist, "b")
	if t.fs.RenameDir(t.at("a"), t.at("f")) == nil {
		t.Error("a directory replaced a file")
	}
	t.refused(t.fs.RenameDir(t.at("a"), t.at("no/a")), fs.ErrNotExist, "no/a")
	if t.fs.RenameDir(t.at("a"), t.at("a/s/a")) == nil {
		t.Error("a directory moved below itself")
	}
	t.holds("a/f", "A")
	t.holds("b/f", "B")
	t.holds("f", "F")
	t.ok(t.fs.RenameDir(t.at("a"), t.at("c")))
	t.lists("c", "f:1 s/")
	t.refused(t.fs.RenameDir(t.at("a"), t.at("c")), fs.ErrNotExist, "a")
	t.lists("c", "f:1 s/")
	t.lists("", "b/ c/ f:1")
}

func (t *tree) removal() {
	t.ok(t.fs.MkdirAll(t.at("a/b")))
	t.write("a/f", "1")
	t.write("a/b/f", "1")
	if t.fs.Remove(t.at("a")) == nil {
		t.Error("Remove removed a tree")
	}
	t.ok(t.fs.Remove(t.at("a/f")))
	t.ok(t.fs.RemoveAll(t.at("a/b")))
	t.lists("a", "")
	t.ok(t.fs.Remove(t.at("a")))
	t.lists("", "")
}

// oneWinner races several creates or renames of one name: exactly one must succeed.
func (t *tree) oneWinner() {
	const racers = 8
	for i := range racers {
		t.ok(t.fs.Mkdir(t.at(fmt.Sprint("d", i))))
		t.write(fmt.Sprint("d", i, "/id"), fmt.Sprint(i))
		t.write(fmt.Sprint("f", i), fmt.Sprint(i))
	}
	races := map[string]func(i int) error{
		"create": func(int) error {
			w, err := t.fs.Create(t.at("made"))
			if err == nil {
				err = w.Close()
			}
			return err
		},
		"mkdir":       func(int) error { return t.fs.Mkdir(t.at("dir")) },
		"rename file": func(i int) error { return t.fs.RenameFile(t.at(fmt.Sprint("f", i)), t.at("file")) },
		"rename dir":  func(i int) error { return t.fs.RenameDir(t.at(fmt.Sprint("d", i)), t.at("task")) },
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
