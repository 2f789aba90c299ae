package local

import (
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
