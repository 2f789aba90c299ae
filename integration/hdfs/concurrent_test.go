package hdfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/integration/trial"
)

// Goroutines write and read many files at once through one FS, and read one file at once. The FS
// has few connections, and none after Close.
func TestConcurrentUse(t *testing.T) {
	c := cluster(t)
	before := runtime.NumGoroutine()
	f := client(t, c)
	top := newDir(t, c, f)
	const workers = 8
	content := randomBytes(2*blockSize + 77)
	report := func(errs []error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	report(concurrently(workers, func(i int) error {
		name := dfs.Join(top, fmt.Sprint(i))
		w, err := f.Create(name)
		if err != nil {
			return err
		}
		if _, err := f.Create(name); !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("create a file that another writer has open: %w", err)
		}
		if _, err := w.Write(content[i:]); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		got, err := readAll(f, name)
		if err == nil && !bytes.Equal(got, content[i:]) {
			err = fmt.Errorf("%s has wrong content of %d bytes", name, len(got))
		}
		return err
	}))
	file, err := f.Open(dfs.Join(top, "0"))
	if err != nil {
		t.Fatal(err)
	}
	report(concurrently(workers, func(i int) error {
		got := make([]byte, 1000)
		for n := range 10 {
			off := (i*7919 + n*100_003) % (len(content) - len(got))
			if _, err := file.ReadAt(got, int64(off)); err != nil {
				return err
			}
			if !bytes.Equal(got, content[off:off+len(got)]) {
				return fmt.Errorf("wrong bytes at %d", off)
			}
		}
		return nil
	}))
	if open := connections(t, c.NameNodes[0]); open > 4 {
		t.Errorf("%d connections to the NameNode, want at most 4", open)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if _, err := f.Stat(top); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	trial.Await(t, "end of all connections and goroutines", func() bool {
		open := connections(t, c.NameNodes[0])
		for _, d := range c.DataNodes {
			open += connections(t, d)
		}
		return open == 0 && runtime.NumGoroutine() <= before
	})
}
