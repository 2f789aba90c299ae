package hdfs_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/quernmr/quern/dfs"
)

// Other users cannot read private files, but can read public ones.
func TestPrivate(t *testing.T) {
	c := cluster(t)
	f := client(t, c)
	other := client(t, c, asUser(otherUser))
	top := newDir(t, c, f)
	private := dfs.Private(f)
	if err := errors.Join(private.MkdirAll(dfs.Join(top, "a", "b")), private.Mkdir(dfs.Join(top, "c"))); err != nil {
		t.Fatal(err)
	}
	write(t, private, dfs.Join(top, "file"), []byte("1"))
	write(t, private, dfs.Join(top, "a", "b", "file"), []byte("1"))
	write(t, f, dfs.Join(top, "open"), []byte("1"))
	if err := f.Mkdir(dfs.Join(top, "d")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "c", "d"} {
		_, err := other.List(dfs.Join(top, name))
		if name == "d" && err != nil || name != "d" && !errors.Is(err, fs.ErrPermission) {
			t.Errorf("another user lists %s: %v", name, err)
		}
		if _, err := f.List(dfs.Join(top, name)); err != nil {
			t.Error(err)
		}
	}
	if _, err := other.Stat(dfs.Join(top, "a", "b", "file")); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("another user calls Stat below a private directory: %v", err)
	}
	for name, want := range map[string]error{"file": fs.ErrPermission, "open": nil} {
		in, err := other.Open(dfs.Join(top, name))
		if err == nil {
			_, err = in.Read(make([]byte, 1))
			in.Close()
		}
		if !errors.Is(err, want) {
			t.Errorf("another user reads %s: %v, want %v", name, err, want)
		}
	}
}
