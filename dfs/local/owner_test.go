package local

import (
	"os"
	"path/filepath"
	"testing"
)

// TestOwnerWithoutName: a file of an owner without a name gives another file its owner and group.
func TestOwnerWithoutName(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root gives files to others")
	}
	f, dir := FS{}, t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	for _, name := range []string{from, to} {
		if err := os.WriteFile(name, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	const uid, gid = 987654, 987655
	if err := os.Chown(from, uid, gid); err != nil {
		t.Fatal(err)
	}
	a, err := f.Attributes(from)
	if err != nil || a.Owner != "987654" || a.Group != "987655" {
		t.Fatalf("%s %s, %v", a.Owner, a.Group, err)
	}
	if err := f.SetOwner(to, a.Owner, a.Group); err != nil {
		t.Fatal(err)
	}
	if b, err := f.Attributes(to); err != nil || b.Owner != a.Owner || b.Group != a.Group {
		t.Errorf("%s %s, %v", b.Owner, b.Group, err)
	}
	if err := f.SetOwner(to, "no such user", ""); err == nil {
		t.Error("an unknown user owns a file")
	}
}
