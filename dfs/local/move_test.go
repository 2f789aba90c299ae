package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quernmr/quern/dfs/dfstest"
)

// tree makes a tree with a link, a private file, a read-only directory and old times.
func tree(t *testing.T, dir string) {
	t.Helper()
	at := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	err := errors.Join(os.MkdirAll(filepath.Join(dir, "sub", "empty"), 0o777), os.WriteFile(filepath.Join(dir, "sub", "a"), []byte("text"), 0o600),
		os.Chmod(filepath.Join(dir, "sub", "a"), 0o640), os.Symlink("nowhere", filepath.Join(dir, "link")),
		os.Chtimes(filepath.Join(dir, "sub", "a"), at, at), os.Chtimes(filepath.Join(dir, "sub"), at, at), os.Chmod(filepath.Join(dir, "sub"), 0o750))
	if err != nil {
		t.Fatal(err)
	}
}

// describeTree has names, modes and times below a directory.
func describeTree(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		text := name[len(dir):] + " " + info.Mode().String()
		switch d.Type() {
		case fs.ModeSymlink:
			to, _ := os.Readlink(name)
			text += " " + to
		case 0:
			content, _ := os.ReadFile(name)
			text += " " + string(content)
			fallthrough
		default:
			if name != dir {
				text += " " + info.ModTime().String()
			}
		}
		all = append(all, text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestMove moves a tree to another mount: all of it, or nothing.
func TestMove(t *testing.T) {
	here := t.TempDir()
	there := dfstest.OtherMount(t, here)
	f := New()
	source, target := filepath.Join(here, "s"), filepath.Join(there, "t")
	tree(t, source)
	before := describeTree(t, source)
	stays := func(what string, err error, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
		if got := describeTree(t, source); !slices.Equal(got, before) {
			t.Errorf("%s: the source is %q, was %q", what, got, before)
		}
		if left, err := os.ReadDir(there); err != nil || len(left) > 0 && left[0].Name() != "t" {
			t.Errorf("%s: left %v, %v", what, left, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	stays("an ended context", f.Move(ctx, source, target), context.Canceled)
	if err := syscall.Mkfifo(filepath.Join(source, "sub", "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := f.Move(t.Context(), source, target)
	if err == nil || !strings.Contains(err.Error(), "sub/pipe: it is no file") {
		t.Errorf("a pipe: %v", err)
	}
	if err := os.Remove(filepath.Join(source, "sub", "pipe")); err != nil {
		t.Fatal(err)
	}
	before = describeTree(t, source)
	if err := os.Mkdir(target, 0o777); err != nil {
		t.Fatal(err)
	}
	stays("a target that exists", f.Move(t.Context(), source, target), fs.ErrExist)
	if err := os.Remove(target); err != nil {
		t.Fatal(err)
	}
	stays("a missing directory", f.Move(t.Context(), source, filepath.Join(there, "none", "t")), fs.ErrNotExist)

	if err := f.Move(t.Context(), source, target); err != nil {
		t.Fatal(err)
	}
	if got := describeTree(t, target); !slices.Equal(got, before) {
		t.Errorf("moved %q, want %q", got, before)
	}
	if _, err := os.Lstat(source); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the source is there: %v", err)
	}
	for _, file := range []string{"sub/a", "link"} { // back
		if err := f.Move(t.Context(), filepath.Join(target, file), filepath.Join(here, "f")); err != nil {
			t.Fatal(err)
		}
		if err := f.Move(t.Context(), filepath.Join(here, "f"), filepath.Join(target, file)); err != nil {
			t.Fatal(err)
		}
	}
	if got := describeTree(t, target); !slices.Equal(got[:2], before[:2]) || got[len(got)-2] != before[len(before)-2] {
		t.Errorf("files moved to and fro: %q, want %q", got, before)
	}
}

// TestMoveOfGrowingFile: what is written while a file is copied would be lost with the source.
func TestMoveOfGrowingFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "log")
	if err := os.WriteFile(name, []byte("one"), 0o666); err != nil {
		t.Fatal(err)
	}
	before, err := os.Lstat(name)
	if err != nil {
		t.Fatal(err)
	}
	m := mover{ctx: t.Context()}
	if err := m.copyFile(name, filepath.Join(dir, "a"), before); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte("one two"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := m.copyFile(name, filepath.Join(dir, "b"), before); err == nil || !strings.Contains(err.Error(), "has changed") {
		t.Errorf("a growing file: %v", err)
	}
}

// TestApart: a directory is below itself by any path to it.
func TestApart(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "a", "b"), 0o777), os.Symlink("a/b", filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	for to, want := range map[string]error{"": nil, "a": fs.ErrInvalid, "a/b": fs.ErrInvalid, "link": fs.ErrInvalid} {
		if err := apart(filepath.Join(dir, "a"), filepath.Join(dir, to)); !errors.Is(err, want) {
			t.Errorf("into %q: %v, want %v", to, err, want)
		}
	}
}
