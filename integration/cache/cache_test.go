package cache

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestDir: a directory is filled once, and never partly; another key has another directory.
func TestDir(t *testing.T) {
	root := filepath.Join(t.TempDir(), "cache")
	t.Setenv("QUERN_CACHE", root)
	broken := errors.New("no network")
	if _, err := Dir("x", "1", func(dir string) error { return errors.Join(os.WriteFile(dir+"/half", nil, 0o666), broken) }); !errors.Is(err, broken) {
		t.Errorf("a failure gives %v", err)
	}
	if left, err := os.ReadDir(root); err != nil || len(left) > 0 {
		t.Errorf("a failure leaves %v, %v", left, err)
	}
	fills := 0
	fill := func(dir string) error {
		fills++
		return os.WriteFile(dir+"/file", nil, 0o666)
	}
	dirs := make(map[string]bool)
	for _, key := range []string{"1", "1", "2"} {
		dir, err := Dir("x", key, fill)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(dir + "/file"); err != nil {
			t.Error(err)
		}
		dirs[dir] = true
	}
	if fills != 2 || len(dirs) != 2 {
		t.Errorf("%d fills of %d directories, want 2 of 2", fills, len(dirs))
	}
	// Another process fills the directory first: Dir returns that one.
	dir, err := Dir("x", "3", func(string) error {
		_, err := Dir("x", "3", fill)
		return err
	})
	if _, missing := os.Stat(dir + "/file"); err != nil || missing != nil {
		t.Errorf("%v, %v", err, missing)
	}
}
