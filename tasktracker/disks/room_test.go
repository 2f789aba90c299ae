package disks

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestTreeBytes: a tree with many files and directories is measured, up to the given sum.
func TestTreeBytes(t *testing.T) {
	root := t.TempDir()
	const files, size = 3 * dirBatch, 4096
	for i := range files {
		dir := filepath.Join(root, fmt.Sprint(i%50))
		if i%2 == 0 {
			dir = root
		}
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d", i)), make([]byte, size), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if n := treeBytes(root, math.MaxInt64); n < files*size || n > 2*files*size {
		t.Errorf("the tree has %d bytes, want about %d", n, files*size)
	}
	if n := treeBytes(root, 10*size); n <= 10*size || n >= files*size {
		t.Errorf("it measured %d bytes, want a few more than %d", n, 10*size)
	}
	if n := treeBytes(filepath.Join(root, "missing"), math.MaxInt64); n != 0 {
		t.Errorf("a missing tree has %d bytes", n)
	}
}

// TestReplacedTree: a job may replace its directory while it is measured. The measurement does not
// wait for a pipe, and does not follow a link.
func TestReplacedTree(t *testing.T) {
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "f"), make([]byte, 1<<16), 0o666); err != nil {
		t.Fatal(err)
	}
	link, pipe := filepath.Join(t.TempDir(), "link"), filepath.Join(t.TempDir(), "pipe")
	if err := errors.Join(os.Symlink(other, link), syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{link, pipe} {
		if n := treeBytes(dir, math.MaxInt64); n != 0 {
			t.Errorf("%s has %d bytes, want 0", dir, n)
		}
	}
}
