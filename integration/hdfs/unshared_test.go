package hdfs_test

// These tests have their own HDFS. They stop the shared HDFS, which takes long to start, so their
// file is the last one.

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/integration/hdfs/minicluster"
	"github.com/quernmr/quern/integration/trial"
)

// Row 29: the active one of two NameNodes is killed. Open readers and writers, an embedded job and
// a job on a cluster continue with the other NameNode.
func TestFailover(t *testing.T) {
	c := startOwn(t, func(cfg *minicluster.Config) { cfg.NameNodes, cfg.Racks = 2, []string{"/a", "/b"} })
	f := client(t, c)
	top := newDir(t, c, f)
	content := randomBytes(2*blockSize + 1)
	write(t, f, dfs.Join(top, "read"), content)
	w, err := f.Create(dfs.Join(top, "written"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(content[:blockSize+10]); err != nil {
		t.Fatal(err)
	}
	open, err := f.Open(dfs.Join(top, "read"))
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	p := newPlatform(t, c)
	counted := text(8 * blockSize)
	in := p.put("in", counted)
	jobs := []*trial.Job{p.paced(in, "-pause-early", "-gate", "-D", "quern.embedded.slots=2")}
	p.start(daemonShape{traces: true, jobTrackers: 1, nodes: c.DataNodes, slots: 1, staging: dfs.Join(p.top, "staging")})
	jobs = append(jobs, p.paced(in, "-pause-early", "-gate", "-D", "mapreduce.job.reduces=2"))
	for _, j := range jobs {
		j.AwaitTraces("m", "began", 2)
	}
	if err := c.NameNodes[0].Kill(); err != nil {
		t.Fatal(err)
	}
	for _, j := range jobs {
		j.OpenGate()
	}
	ended := make(chan error, 1)
	go func() {
		_, err := w.Write(content[blockSize+10:])
		ended <- errors.Join(err, w.Close(), f.Mkdir(dfs.Join(top, "dir")), f.RenameDir(dfs.Join(top, "dir"), dfs.Join(top, "renamed")))
	}()
	if err := c.Activate(t.Context(), c.NameNodes[1]); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	got := make([]byte, len(content))
	if _, err := open.ReadAt(got, 0); err != nil || !bytes.Equal(got, content) {
		t.Errorf("read after the failover: %v", err)
	}
	if got := read(t, f, dfs.Join(top, "written")); !bytes.Equal(got, content) {
		t.Errorf("the written file has wrong content of %d bytes", len(got))
	}
	if _, err := f.Stat(dfs.Join(top, "renamed")); err != nil {
		t.Error(err)
	}
	for _, j := range jobs {
		j.Succeed()
		p.checkCounts(j.Out, counted)
	}
}

// A full HDFS is reported like a full disk.
func TestFull(t *testing.T) {
	c := startOwn(t, func(cfg *minicluster.Config) {
		cfg.Racks, cfg.Replication = []string{"/a"}, 1
		cfg.Properties = map[string]string{"dfs.datanode.du.reserved": fmt.Sprint(int64(1) << 50)}
	})
	f := client(t, c)
	top := newDir(t, c, f)
	w, err := f.Create(dfs.Join(top, "f"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Write(randomBytes(blockSize))
	if err = errors.Join(err, w.Close()); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("write to a full HDFS: %v", err)
	}
	p := newPlatform(t, c)
	in, out := filepath.Join(p.dir, "in"), dfs.Join(p.top, "out")
	if err := os.WriteFile(in, text(1000), 0o666); err != nil {
		t.Fatal(err)
	}
	p.submit("wordcount", "-input", in, "-output", out).Fail(1, "no space left", p.top)
	p.checkNoOutput(out)
}
