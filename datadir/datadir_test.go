package datadir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var layout = Layout{Daemon: "tester", Marker: "quern-tester", Dirs: []string{"jobs", "tracker*"}, Files: []string{"cluster"}}

// newBase makes a directory that other users can enter, even if TMPDIR is private.
func newBase(t *testing.T) string {
	t.Helper()
	for _, parent := range []string{os.TempDir(), "/tmp", "/var/tmp"} {
		dir, err := os.MkdirTemp(parent, "")
		if err != nil {
			continue
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := checkPath(dir, false); err == nil && !private(t, dir) {
			return dir
		}
	}
	t.Skip("there is no temporary directory that others can enter")
	return ""
}

// private reports whether other users cannot enter a directory, or one above it.
func private(t *testing.T, dir string) bool {
	t.Helper()
	for ; dir != "/"; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		if owner(info) == os.Geteuid() && info.Mode().Perm()&0o011 == 0 {
			return true
		}
	}
	return false
}

func write(t *testing.T, elem ...string) {
	t.Helper()
	name := filepath.Join(elem...)
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte("x"), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// mark makes the marker file.
func mark(t *testing.T, dir string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, layout.Marker), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func mustOpen(t *testing.T, dir string) *Dir {
	t.Helper()
	d, err := Open(dir, layout)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// TestPaths opens directories with different modes, owners and links on their path.
func TestPaths(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(t *testing.T, base string) error
		want string // empty: Open succeeds
	}{
		{"missing", func(*testing.T, string) error { return nil }, ""},
		{"empty", func(_ *testing.T, base string) error { return os.MkdirAll(base+"/a/data", 0o755) }, ""},
		{"sticky parent", func(_ *testing.T, base string) error {
			return errors.Join(os.Mkdir(base+"/a", 0o777), os.Chmod(base+"/a", 0o777|fs.ModeSticky))
		}, ""},
		{"parent that every user may write to", func(_ *testing.T, base string) error {
			return errors.Join(os.Mkdir(base+"/a", 0o777), os.Chmod(base+"/a", 0o777))
		}, "/a ("},
		{"parent that a group may write to", func(_ *testing.T, base string) error {
			return errors.Join(os.Mkdir(base+"/a", 0o777), os.Chmod(base+"/a", 0o775))
		}, "/a ("},
		{"parent that every user may write to, in a private directory", func(_ *testing.T, base string) error {
			return errors.Join(os.Chmod(base, 0o700), os.Mkdir(base+"/a", 0o777), os.Chmod(base+"/a", 0o777))
		}, ""},
		{"directory that others may write to", func(_ *testing.T, base string) error {
			return errors.Join(os.MkdirAll(base+"/a/data", 0o777), os.Chmod(base+"/a/data", 0o777))
		}, "chmod go-w"},
		{"sticky directory", func(_ *testing.T, base string) error {
			return errors.Join(os.MkdirAll(base+"/a/data", 0o777), os.Chmod(base+"/a/data", 0o777|fs.ModeSticky))
		}, "chmod go-w"},
		{"link", func(_ *testing.T, base string) error {
			return errors.Join(os.MkdirAll(base+"/other", 0o755), os.Mkdir(base+"/a", 0o755), os.Symlink(base+"/other", base+"/a/data"))
		}, "a/data is a symbolic link"},
		{"link above", func(_ *testing.T, base string) error {
			return errors.Join(os.MkdirAll(base+"/other", 0o755), os.Symlink(base+"/other", base+"/a"))
		}, "/a is a symbolic link"},
		{"file", func(t *testing.T, base string) error { write(t, base, "a", "data"); return nil }, "not a directory"},
		{"file above", func(t *testing.T, base string) error { write(t, base, "a"); return nil }, "not a directory"},
		{"parent of another user", func(t *testing.T, base string) error {
			needRoot(t)
			return errors.Join(os.MkdirAll(base+"/a", 0o755), os.Chown(base+"/a", 4711, 4711))
		}, "/a belongs to user 4711"},
		{"directory of another user", func(t *testing.T, base string) error {
			needRoot(t)
			return errors.Join(os.MkdirAll(base+"/a/data", 0o755), os.Chown(base+"/a/data", 4711, 4711))
		}, "it belongs to user 4711"},
	} {
		t.Run(c.name, func(t *testing.T) {
			base := newBase(t)
			if err := c.make(t, base); err != nil {
				t.Fatal(err)
			}
			d, err := Open(base+"/a/data", layout)
			if err == nil {
				d.Close()
			}
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), base+"/a/data")):
				t.Errorf("got %v, want %q", err, c.want)
			}
			if exists(base + "/other/data") {
				t.Error("a directory was made where the link leads")
			}
		})
	}
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can change owners")
	}
}

// TestNotOwn: another user cannot use a directory of root as data directory.
func TestNotOwn(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root owns it")
	}
	if _, err := Open("/usr", layout); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "belongs to user 0") {
		t.Errorf("got %v", err)
	}
}

func TestRelativePath(t *testing.T) {
	if _, err := Open("data", layout); err == nil || !strings.Contains(err.Error(), "not absolute") {
		t.Errorf("got %v", err)
	}
}

// TestSystemLinks: the check follows links that only root can have made.
func TestSystemLinks(t *testing.T) {
	for _, c := range []struct {
		onlyRoot bool
		owner    int
		want     bool
	}{{true, 0, true}, {false, 0, false}, {true, 4711, false}} {
		dir := t.TempDir()
		if err := os.Symlink("x", dir+"/link"); err != nil {
			t.Fatal(err)
		}
		if os.Geteuid() != 0 {
			t.Skip("only root can make such a link")
		}
		if err := os.Lchown(dir+"/link", c.owner, 0); err != nil {
			t.Fatal(err)
		}
		info, err := os.Lstat(dir + "/link")
		if err != nil {
			t.Fatal(err)
		}
		if got := (&pathState{onlyRoot: c.onlyRoot}).mayFollow(info); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestNames opens directories with different contents.
func TestNames(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(t *testing.T, dir string) error
		want string // empty: Open succeeds
	}{
		{"lost+found", func(_ *testing.T, dir string) error { return os.Mkdir(dir+"/lost+found", 0o700) }, ""},
		{"a user's file", func(t *testing.T, dir string) error { write(t, dir, "thesis.tex"); return nil }, "move these files out of it: thesis.tex"},
		{"many files of a user", func(t *testing.T, dir string) error {
			for _, name := range []string{"e", "d", "c", "b", "a"} {
				write(t, dir, name)
			}
			return nil
		}, "it has no file quern-tester, so it is probably not the directory of a tester, which would remove files in it: name a new or an empty directory; if a tester of an older build has used this one, move these files out of it: a, b, c and 2 more"},
		{"a user's file in a directory of the layout", func(t *testing.T, dir string) error { write(t, dir, "jobs", "thesis.tex"); return nil }, "make an empty file lock in it"},
		{"of an older build", func(t *testing.T, dir string) error {
			write(t, dir, "jobs", "x")
			write(t, dir, "cluster")
			return os.WriteFile(dir+"/lock", nil, 0o600)
		}, ""},
		{"of an older build, and more", func(t *testing.T, dir string) error {
			write(t, dir, "jobs", "x")
			write(t, dir, "more")
			return os.WriteFile(dir+"/lock", nil, 0o600)
		}, "move these files out of it: more"},
		{"with a lock file that is not empty", func(t *testing.T, dir string) error { write(t, dir, "lock"); return nil }, "neither a file quern-tester"},
		{"of another kind of daemon", func(t *testing.T, dir string) error {
			other := layout
			other.Marker = "quern-embedded"
			d, err := Open(dir, other)
			if err != nil {
				return err
			}
			return d.Close()
		}, "it has the file quern-embedded of another kind of daemon"},
		{"with a user's file that begins with quern-", func(t *testing.T, dir string) error { write(t, dir, "quern-tt1.log"); return nil }, "move these files out of it: quern-tt1.log"},
		{"of another kind of daemon, where cluster is a directory", func(t *testing.T, dir string) error {
			write(t, dir, "quern-embedded")
			return os.Mkdir(dir+"/cluster", 0o700)
		}, "it has the file quern-embedded of another kind of daemon"},
		{"marked, and more", func(t *testing.T, dir string) error { mark(t, dir); write(t, dir, "more"); return nil }, ""},
		{"marked, with a link", func(t *testing.T, dir string) error {
			mark(t, dir)
			return os.Symlink("/usr", dir+"/jobs")
		}, "jobs in it is a symbolic link"},
		{"marked, with a file for a directory", func(t *testing.T, dir string) error {
			mark(t, dir)
			write(t, dir, "jobs")
			return nil
		}, "jobs in it is a file"},
		{"of a later build", func(t *testing.T, dir string) error { write(t, dir, "quern-tester"); return nil }, "quern-tester in it is not empty: a later build of the tester uses the directory in another way; start that build"},
		{"marked by a link", func(t *testing.T, dir string) error { return os.Symlink("/etc/passwd", dir+"/quern-tester") }, "quern-tester in it is a symbolic link"},
		{"marked, with another user's directory", func(t *testing.T, dir string) error {
			needRoot(t)
			mark(t, dir)
			return errors.Join(os.Mkdir(dir+"/jobs", 0o755), os.Chown(dir+"/jobs", 4711, 4711))
		}, "of user 4711"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := newBase(t)
			if err := c.make(t, dir); err != nil {
				t.Fatal(err)
			}
			before := list(t, dir)
			d, err := Open(dir, layout)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (!errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), dir)):
				t.Errorf("got %v, want %q", err, c.want)
			}
			if err != nil {
				if after := list(t, dir); after != before {
					t.Errorf("it had %s, has %s", before, after)
				}
				return
			}
			d.Close()
			mustOpen(t, dir).Close()
		})
	}
}

func list(t *testing.T, dir string) string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		all = append(all, strings.TrimPrefix(name, dir))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}

// TestInUse: one process at a time can open a directory, even if several make it at once.
func TestInUse(t *testing.T) {
	dir := newBase(t)
	d := mustOpen(t, dir)
	if _, err := Open(dir, layout); !errors.Is(err, ErrInUse) {
		t.Errorf("second Open: %v", err)
	}
	d.Close()
	mustOpen(t, dir).Close()
	if _, err := Reopen(dir+"/missing", layout); !errors.Is(err, fs.ErrNotExist) || exists(dir+"/missing") {
		t.Errorf("Reopen of a missing directory: %v", err)
	}
	missing := dir + "/tracker1"
	results := make(chan *Dir, 8)
	for range cap(results) {
		go func() {
			d, err := Open(missing, layout)
			if err != nil && !errors.Is(err, ErrInUse) {
				t.Error(err)
			}
			results <- d
		}()
	}
	opened := 0
	for range cap(results) {
		if d := <-results; d != nil {
			opened++
			defer d.Close()
		}
	}
	if opened != 1 {
		t.Errorf("%d opened it, want 1", opened)
	}
}

// TestRemove: only files that the daemon made are removed, and links are not followed.
func TestRemove(t *testing.T) {
	dir, user := newBase(t), newBase(t)
	d := mustOpen(t, dir)
	write(t, user, "thesis.tex")
	write(t, dir, "mine")
	write(t, dir, "jobs", "1", "x")
	write(t, dir, "tracker7", "x")
	if err := errors.Join(os.Symlink(user, dir+"/jobs/1/out"), os.Symlink(user, dir+"/jobs/2"), os.Symlink(user, dir+"/tracker8")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"mine", "../" + filepath.Base(user), "/etc/passwd", ".", "", "jobs/../mine", "jobs/../../x"} {
		if err := d.Remove(name); err == nil {
			t.Errorf("removed %q", name)
		}
	}
	if err := d.Remove("jobs/2/thesis.tex"); err == nil {
		t.Error("removed a file behind a link")
	}
	if err := errors.Join(d.Remove("jobs/1"), d.Remove("jobs/missing")); err != nil {
		t.Error(err)
	}
	if exists(dir + "/jobs/1") {
		t.Error("jobs/1 was not removed")
	}
	if err := d.Destroy(); err == nil {
		t.Error("Destroy removed a directory with a user's file")
	}
	if !exists(dir+"/mine") || !exists(user+"/thesis.tex") {
		t.Error("a user's files were removed")
	}
	if exists(dir+"/jobs") || exists(dir+"/tracker7") || exists(dir+"/tracker8") {
		t.Errorf("remaining: %s", list(t, dir))
	}
	tracker9 := mustOpen(t, dir+"/tracker9")
	if err := tracker9.Destroy(); err != nil || exists(dir+"/tracker9") {
		t.Errorf("tracker9 was not removed: %v", err)
	}
}
