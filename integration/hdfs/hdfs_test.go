// Package hdfs_test runs package dfs/hdfs against a real HDFS, with faults.
package hdfs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/dfstest"
	"github.com/quernmr/quern/dfs/hdfs"
	"github.com/quernmr/quern/integration/hdfs/minicluster"
	"github.com/quernmr/quern/integration/trial"
)

// shared is a cluster for several tests, which leave all its daemons running: four DataNodes in
// two racks, replication 2, blocks of 1 MiB.
var shared struct {
	cluster *minicluster.Cluster
	err     error
	started bool
}

const blockSize = 1 << 20

func TestMain(m *testing.M) {
	code := m.Run()
	if err := stopShared(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if programDir != "" {
		os.RemoveAll(programDir)
	}
	os.Exit(code)
}

var sharedDir string

func stopShared() error {
	if shared.cluster == nil {
		return nil
	}
	err := errors.Join(shared.cluster.Close(), os.RemoveAll(sharedDir))
	shared.cluster, shared.started = nil, false
	return err
}

func config(t testing.TB) minicluster.Config {
	t.Helper()
	jars, err := minicluster.Fetch(t.Context())
	if errors.Is(err, minicluster.ErrUnavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return minicluster.Config{Jars: jars, Racks: []string{"/a", "/a", "/b", "/b"}, Replication: 2, BlockSize: blockSize}
}

// cluster returns the shared cluster.
func cluster(t *testing.T) *minicluster.Cluster {
	t.Helper()
	if !shared.started {
		cfg := config(t)
		shared.started = true
		var err error
		if sharedDir, err = os.MkdirTemp("", "hdfs"); err != nil {
			t.Fatal(err)
		}
		cfg.Dir = sharedDir
		shared.cluster, shared.err = minicluster.Start(context.WithoutCancel(t.Context()), cfg)
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.cluster
}

// startOwn stops the shared cluster and starts one for a single test, so that only one HDFS runs.
func startOwn(t testing.TB, change func(*minicluster.Config)) *minicluster.Cluster {
	t.Helper()
	cfg := config(t)
	if err := stopShared(); err != nil {
		t.Fatal(err)
	}
	change(&cfg)
	cfg.Dir = t.TempDir()
	c, err := minicluster.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// client returns an FS of the superuser, unless change sets another user.
func client(t testing.TB, c *minicluster.Cluster, change ...func(*hdfs.Options)) *hdfs.FS {
	t.Helper()
	conf, err := hdfs.ReadConf(c.Conf())
	if err != nil {
		t.Fatal(err)
	}
	o := hdfs.Options{Conf: conf, User: minicluster.Superuser, FirstRetryFor: trial.Deadline}
	for _, f := range change {
		f(&o)
	}
	f := hdfs.New(o)
	t.Cleanup(func() { f.Close() })
	return f
}

// dialFrom dials from a DataNode's address, like a process on its machine.
func dialFrom(d *minicluster.Daemon) func(*hdfs.Options) {
	return func(o *hdfs.Options) {
		dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(d.IP)}}
		o.Dial = dialer.DialContext
	}
}

var dirCount atomic.Int64

// newDir creates a directory for a test.
func newDir(t *testing.T, c *minicluster.Cluster, f dfs.FS) string {
	t.Helper()
	name := fmt.Sprintf("%s/test/%d", c.URL(), dirCount.Add(1))
	if err := f.MkdirAll(name); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestConformance(t *testing.T) {
	c := cluster(t)
	f := client(t, c)
	dfstest.Run(t, func(t *testing.T) (dfs.FS, string) { return f, newDir(t, c, f) })
}

func write(t *testing.T, f dfs.FS, name string, content []byte) {
	t.Helper()
	w, err := f.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// awaitReplicas waits until the NameNode knows n replicas of each block of a file. Close waits for
// only one.
func awaitReplicas(t *testing.T, f *hdfs.FS, name string, n int) []dfs.Block {
	t.Helper()
	var blocks []dfs.Block
	trial.Await(t, "replicas of "+name, func() bool {
		located, err := f.Locate(name)
		if err != nil {
			t.Fatal(err)
		}
		blocks = located[0].Blocks
		return !slices.ContainsFunc(blocks, func(b dfs.Block) bool { return len(b.Replicas) < n })
	})
	return blocks
}

func read(t *testing.T, f dfs.FS, name string) []byte {
	t.Helper()
	content, err := readAll(f, name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func readAll(f dfs.FS, name string) ([]byte, error) {
	file, err := f.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(file)
}
