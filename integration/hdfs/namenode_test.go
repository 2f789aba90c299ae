package hdfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/hdfs"
	"github.com/quernmr/quern/integration/trial"
)

// Row 29: the NameNode is killed, paused or in safe mode while files are open. Calls of open
// files and of new clients wait, and succeed when it is back.
func TestNameNodeUnavailable(t *testing.T) {
	c := cluster(t)
	nn := c.NameNodes[0]
	f := client(t, c, faultTimeouts, func(o *hdfs.Options) { o.RetryFor = trial.Deadline })
	top := newDir(t, c, f)
	content := randomBytes(2*blockSize + 1)
	write(t, f, dfs.Join(top, "read"), content)
	outages := map[string]struct{ leave, back func() error }{
		"killed": {nn.Kill, nn.Start},
		"paused": {nn.Pause, nn.Continue},
		"safe": {
			func() error { _, err := c.Admin(t.Context(), "-safemode", "enter"); return err },
			func() error { _, err := c.Admin(t.Context(), "-safemode", "leave"); return err },
		},
	}
	for how, step := range outages {
		w, err := f.Create(dfs.Join(top, how))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content[:blockSize/2]); err != nil {
			t.Fatal(err)
		}
		if err := step.leave(); err != nil {
			t.Fatal(err)
		}
		late := client(t, c, func(o *hdfs.Options) { o.FirstRetryFor = trial.Deadline }) // first connects while the NameNode is away
		ended := make(chan error, 3)
		go func() {
			_, err := w.Write(content[blockSize/2:])
			ended <- errors.Join(err, w.Close())
		}()
		go func() {
			got, err := readAll(f, dfs.Join(top, "read"))
			if err == nil && !bytes.Equal(got, content) {
				err = fmt.Errorf("read wrong content of %d bytes", len(got))
			}
			ended <- err
		}()
		go func() { ended <- late.Mkdir(dfs.Join(top, how+".d")) }()
		if err := step.back(); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := <-ended; err != nil {
				t.Errorf("%s: %v", how, err)
			}
		}
		if got := read(t, f, dfs.Join(top, how)); !bytes.Equal(got, content) {
			t.Errorf("%s: the written file has wrong content of %d bytes", how, len(got))
		}
		restart(t, c)
	}
}

// After the retry limit, the error names the safe mode and the file.
func TestRetryTimeout(t *testing.T) {
	c := cluster(t)
	f := client(t, c, func(o *hdfs.Options) { o.RetryFor, o.FirstRetryFor = time.Second, time.Second })
	top := newDir(t, c, f)
	if _, err := c.Admin(t.Context(), "-safemode", "enter"); err != nil {
		t.Fatal(err)
	}
	err := f.Mkdir(dfs.Join(top, "d"))
	if err == nil || !strings.Contains(err.Error(), "safe mode") || !strings.Contains(err.Error(), top) {
		t.Errorf("in safe mode: %v", err)
	}
	if _, err := c.Admin(t.Context(), "-safemode", "leave"); err != nil {
		t.Fatal(err)
	}
}

// Refusals of HDFS become errors of io/fs, without retries.
func TestRefusals(t *testing.T) {
	c := cluster(t)
	f := client(t, c)
	other := client(t, c, asUser(otherUser))
	top := newDir(t, c, f)
	write(t, f, dfs.Join(top, "f"), []byte("1"))
	refused := func(what string, err, want error) {
		t.Helper()
		if !errors.Is(err, want) || !strings.Contains(err.Error(), top) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	refused("mkdir without permission", other.Mkdir(dfs.Join(top, "d")), fs.ErrPermission)
	_, err := other.Create(dfs.Join(top, "x"))
	refused("create without permission", err, fs.ErrPermission)
	refused("rename without permission", other.RenameFile(dfs.Join(top, "f"), dfs.Join(top, "g")), fs.ErrPermission)
	_, err = f.Open(top)
	refused("open a directory", err, syscall.EISDIR)
	_, err = f.List(dfs.Join(top, "f"))
	refused("list a file", err, syscall.ENOTDIR)
	_, err = f.Create(dfs.Join(top, "f", "x"))
	refused("create below a file", err, syscall.ENOTDIR)
	refused("create a directory in place of a file", f.MkdirAll(dfs.Join(top, "f")), syscall.ENOTDIR)
	refused("make directories below a file", f.MkdirAll(dfs.Join(top, "f", "x", "y")), syscall.ENOTDIR)
	refused("remove without permission", other.RemoveAll(dfs.Join(top, "f")), fs.ErrPermission)
	_, err = other.Stat(dfs.Join(top, "f", "x"))
	refused("look below a file", err, syscall.ENOTDIR)
	if err := errors.Join(other.RemoveAll(dfs.Join(top, "no")), other.RemoveAll(dfs.Join(top, "f", "x")), f.RemoveAll(dfs.Join(top, "f", "x"))); err != nil {
		t.Errorf("remove files that do not exist: %v", err)
	}

	path := strings.TrimPrefix(top, c.URL())
	if _, err := c.Admin(t.Context(), "-setSpaceQuota", "1m", path); err != nil {
		t.Fatal(err)
	}
	w, err := f.Create(dfs.Join(top, "big"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Write(randomBytes(3 * blockSize))
	refused("over quota", errors.Join(err, w.Close()), syscall.EDQUOT)
}

// Reads of erasure-coded files are refused. Files that we write in an erasure-coded directory are
// replicated.
func TestErasureCoded(t *testing.T) {
	c := cluster(t)
	f := client(t, c)
	top := newDir(t, c, f)
	path := strings.TrimPrefix(top, c.URL())
	const tool, policy = "org.apache.hadoop.hdfs.tools.ECAdmin", "XOR-2-1-1024k"
	for _, args := range [][]string{{"-enablePolicy", "-policy", policy}, {"-setPolicy", "-path", path, "-policy", policy}} {
		if _, err := c.Tool(t.Context(), tool, args...); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Shell(t.Context(), "-touchz", path+"/coded"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Open(dfs.Join(top, "coded")); !errors.Is(err, hdfs.ErrUnsupported) || !strings.Contains(err.Error(), "policy 4") {
		t.Errorf("open an erasure-coded file: %v", err)
	}
	content := randomBytes(2*blockSize + 7)
	write(t, f, dfs.Join(top, "ours"), content)
	if got := read(t, f, dfs.Join(top, "ours")); !bytes.Equal(got, content) {
		t.Errorf("read wrong content of %d bytes", len(got))
	}
}
