package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/quernmr/quern/dfs"
)

// TestPrivate checks that only the user can access private files and directories, in any
// directory.
func TestPrivate(t *testing.T) {
	top := t.TempDir()
	mux := dfs.Mux{"file": New()}
	for name, c := range map[string]struct {
		f         dfs.FS
		dir, file os.FileMode // permission bits that must be off
	}{
		"open":    {mux, 0, 0},
		"private": {dfs.Private(mux), 0o077, 0o177},
	} {
		root := "file://" + filepath.Join(top, name)
		for _, err := range []error{
			c.f.MkdirAll(root + "/a/b"), c.f.Mkdir(root + "/a/c"), write(c.f, root+"/a/file"),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, dir := range []string{"", "a", "a/b", "a/c"} {
			checkMode(t, filepath.Join(top, name, dir), c.dir)
		}
		checkMode(t, filepath.Join(top, name, "a/file"), c.file)
	}
}

// TestCreating: with settings, new files and directories have the allowed permissions whatever the umask of the
// process, also directories made on the way. Existing ones keep theirs.
func TestCreating(t *testing.T) {
	top := t.TempDir()
	if err := os.Mkdir(filepath.Join(top, "old"), 0o711); err != nil {
		t.Fatal(err)
	}
	for _, volatile := range []bool{false, true} {
		f := dfs.Creating(dfs.Mux{"file": New()}, dfs.Creation{Allowed: 0o772, Replication: 2})
		if volatile {
			f = dfs.Creating(dfs.Volatile(dfs.Mux{"file": New()}), dfs.Creation{Allowed: 0o772})
		}
		dir := fmt.Sprintf("old/%v", volatile)
		root := "file://" + filepath.Join(top, dir)
		if err := errors.Join(f.MkdirAll(root+"/a/b"), f.Mkdir(root+"/a/c"), write(f, root+"/a/file")); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]os.FileMode{"": 0o772, "a": 0o772, "a/b": 0o772, "a/c": 0o772, "a/file": 0o662, "..": 0o711} {
			info, err := os.Stat(filepath.Join(top, dir, name))
			if err != nil || info.Mode().Perm() != want {
				t.Errorf("%s/%s has mode %v, %v, want %v", dir, name, info.Mode(), err, want)
			}
		}
	}
}

func write(f dfs.FS, name string) error {
	w, err := f.Create(name)
	if err != nil {
		return err
	}
	return w.Close()
}

func checkMode(t *testing.T, name string, not os.FileMode) {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil || info.Mode().Perm()&not != 0 {
		t.Errorf("%s has mode %v, %v", name, info.Mode(), err)
	}
}
