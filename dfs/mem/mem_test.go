package mem

import (
	"errors"
	"io"
	"io/fs"
	"syscall"
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/dfstest"
)

func TestConformance(t *testing.T) {
	dfstest.Run(t, func(t *testing.T) (dfs.FS, string) {
		f := New(1 << 20)
		if err := f.MkdirAll("mem://t/deep/root"); err != nil {
			t.Fatal(err)
		}
		return f, "mem://t/deep/root"
	})
}

func create(f *FS, name, content string) error {
	w, err := f.Create(name)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, content); err != nil {
		return err
	}
	return w.Close()
}

func TestFaults(t *testing.T) {
	f := New(1 << 20)
	set := func(spec string) {
		t.Helper()
		if err := f.SetFaults(spec); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.MkdirAll("mem://t/out/deep"); err != nil {
		t.Fatal(err)
	}
	set("create /out/* error=enospc after=1 # the second\n\n")
	if err := create(f, "mem://t/out/a", "A"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := create(f, "mem://t/out/b", ""); !errors.Is(err, syscall.ENOSPC) || !errors.Is(err, ErrFault) {
			t.Fatalf("create on a full disk: %v", err)
		}
	}
	if err := create(f, "mem://t/out/deep/b", ""); err != nil {
		t.Fatalf("the pattern matched a deeper path: %v", err)
	}

	set("renamefile /out/** done times=1")
	if err := f.RenameFile("mem://t/out/a", "mem://t/c"); !errors.Is(err, ErrFault) {
		t.Fatalf("ambiguous rename: %v", err)
	}
	if err := f.RenameFile("mem://t/out/a", "mem://t/c"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the rename had no effect: %v", err)
	}

	set("write ** torn=2 times=1")
	if err := create(f, "mem://t/d", "12345"); !errors.Is(err, syscall.EIO) {
		t.Fatalf("torn write: %v", err)
	}
	if info, err := f.Stat("mem://t/d"); err != nil || info.Size != 2 {
		t.Errorf("after a torn write: %+v %v", info, err)
	}

	set("any /c")
	if _, err := f.Open("mem://t/c"); err == nil {
		t.Error("the fault any did not affect Open")
	}
	for _, bad := range []string{"create", "make /x", "create [", "create /x error=no", "create /x after=x", "create /x maybe"} {
		if f.SetFaults(bad) == nil {
			t.Errorf("fault %q was accepted", bad)
		}
	}
}
