package streaming

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quernmr/quern/archive"
	"github.com/quernmr/quern/dfs/local"
)

// TestPackDirectory: a packed directory is unpacked with the same files, which may be executable, and packing it again writes the
// same bytes. A directory with a link that leads out is refused.
func TestPackDirectory(t *testing.T) {
	dir, to := filepath.Join(t.TempDir(), "d*r"), t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("a", "one", 0o644)
	write("sub/.run", "two", 0o755)
	if err := os.Symlink("../a", filepath.Join(dir, "sub/link")); err != nil {
		t.Fatal(err)
	}
	var first, second bytes.Buffer
	for _, packed := range []*bytes.Buffer{&first, &second} {
		if err := PackDirectory(local.New(), dir, packed); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("packed twice, it differs")
	}
	if err := archive.Unpack(context.Background(), "x.tar", bytes.NewReader(first.Bytes()), int64(first.Len()), filepath.Join(to, "x"), archive.DefaultLimits); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "one", "sub/.run": "two", "sub/link": "one"} {
		name = filepath.Join(to, "x", name)
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if info, err := os.Stat(name); err != nil || info.Mode()&0o100 != 0 != strings.HasSuffix(name, ".run") {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	if err := PackDirectory(local.New(), dir, &first); err == nil || !strings.Contains(err.Error(), "out leads out of the directory") {
		t.Errorf("a link that leads out: %v", err)
	}
}
