package hdfs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/hdfs"
	"github.com/quernmr/quern/integration/hdfs/minicluster"
	"github.com/quernmr/quern/integration/trial"
)

// randomBytes returns bytes without repetitions, always the same.
func randomBytes(size int) []byte {
	r := rand.NewChaCha8([32]byte{1})
	content := make([]byte, size)
	r.Read(content)
	return content
}

// faultTimeouts sets timeouts for tests with faults. On a busy machine they are long enough for a DataNode
// without a fault.
func faultTimeouts(o *hdfs.Options) {
	o.Timeout, o.ReadRetryFor, o.RetryNodeAfter = 10*time.Second, time.Minute, 300*time.Millisecond
}

func daemonAt(c *minicluster.Cluster, addr string) *minicluster.Daemon {
	for _, d := range c.DataNodes {
		if d.Addr() == addr {
			return d
		}
	}
	return nil
}

// restart starts DataNodes and waits until the NameNode knows all of them.
func restart(t *testing.T, c *minicluster.Cluster, daemons ...*minicluster.Daemon) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), trial.Deadline) // also in a cleanup
	defer cancel()
	for _, d := range daemons {
		if !d.Running() {
			if err := d.Start(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := c.Ready(ctx, c.NameNodes[0], len(c.DataNodes)); err != nil {
		t.Fatal(err)
	}
	for _, d := range daemons {
		if err := d.AwaitPort(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// lastReadFrom returns the DataNode of a file's last read.
func lastReadFrom(t *testing.T, c *minicluster.Cluster, f dfs.File) *minicluster.Daemon {
	t.Helper()
	reads := f.(dfs.Metered).Reads()
	d := daemonAt(c, reads[len(reads)-1].Addr)
	if d == nil {
		t.Fatalf("read from %v", reads)
	}
	return d
}

// Row 29: a DataNode dies or stops answering while a client reads its block. The client continues
// with the other replica at the same offset. When the DataNode is back, reads are local again.
func TestReaderLosesDataNode(t *testing.T) {
	c := cluster(t)
	local := c.DataNodes[0]
	f := client(t, c, faultTimeouts, dialFrom(local))
	name, content := dfs.Join(newDir(t, c, f), "f"), randomBytes(3*blockSize)
	// A replica on every DataNode: with fewer, HDFS would replace the replicas of a DataNode
	// that is back late.
	write(t, client(t, c, dialFrom(local), withProperty("dfs.replication", fmt.Sprint(len(c.DataNodes)))), name, content)
	awaitReplicas(t, f, name, len(c.DataNodes))
	faults := map[string]func(d *minicluster.Daemon) error{"kill": (*minicluster.Daemon).Kill, "pause": (*minicluster.Daemon).Pause}
	for fault, inject := range faults {
		file, err := f.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 100_001)
		if _, err := io.ReadFull(file, got); err != nil {
			t.Fatal(err)
		}
		if d := lastReadFrom(t, c, file); d != local {
			t.Errorf("%s: the first block was read from %s, want the local %s", fault, d.ID, local.ID)
		}
		if err := inject(local); err != nil {
			t.Fatal(err)
		}
		rest, err := io.ReadAll(file)
		if err != nil {
			t.Errorf("%s: %v", fault, err)
		}
		if got = append(got, rest...); !bytes.Equal(got, content) {
			t.Errorf("%s: wrong content: %d bytes", fault, len(got))
		}
		if reads := file.(dfs.Metered).Reads(); len(reads) < 2 {
			t.Errorf("%s: read from %v only", fault, reads)
		}
		file.Close()
		if local.Running() {
			if err := local.Continue(); err != nil {
				t.Fatal(err)
			}
		}
		restart(t, c, local)
		trial.Await(t, "reads from the local DataNode", func() bool {
			file, err := f.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			if _, err := file.ReadAt(make([]byte, 10), 5); err != nil {
				t.Fatal(err)
			}
			return lastReadFrom(t, c, file) == local
		})
	}
}

// Row 29: a DataNode is lost while a client writes blocks to it: before the first block, in its
// middle, at its end, or after the last write.
func TestWriterLosesDataNode(t *testing.T) {
	c := cluster(t)
	local := c.DataNodes[1]
	content := randomBytes(3*blockSize + 1000)
	type writing struct {
		fs   *hdfs.FS
		name string
		at   int // bytes written before the DataNode is lost
		dfs.Writer
	}
	for _, fault := range []func(d *minicluster.Daemon) error{(*minicluster.Daemon).Kill, (*minicluster.Daemon).Pause} {
		var files []writing
		for _, at := range []int{0, blockSize / 2, blockSize, len(content)} {
			f := client(t, c, faultTimeouts, dialFrom(local))
			name := dfs.Join(newDir(t, c, f), "f")
			w, err := f.Create(name)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(content[:at]); err != nil {
				t.Fatal(err)
			}
			files = append(files, writing{f, name, at, w})
		}
		if err := fault(local); err != nil {
			t.Fatal(err)
		}
		errs := concurrently(len(files), func(i int) error {
			_, err := files[i].Write(content[files[i].at:])
			return errors.Join(err, files[i].Close())
		})
		for i, file := range files {
			got, err := readAll(file.fs, file.name)
			if err := errors.Join(errs[i], err); err != nil || !bytes.Equal(got, content) {
				t.Errorf("DataNode lost at %d: wrong content of %d bytes, %v", file.at, len(got), err)
			}
		}
		if local.Running() {
			if err := local.Continue(); err != nil {
				t.Fatal(err)
			}
		}
		restart(t, c, local)
	}
}

// Row 29: reads return no bytes of a corrupt replica. If all replicas are corrupt or missing, the
// error names the block.
func TestCorruptAndMissingBlocks(t *testing.T) {
	const failsAfter = 4 * time.Second // limit of reads that must fail
	c := cluster(t)
	f := client(t, c, faultTimeouts)
	// corrupt needs content that no other block has.
	name, content := dfs.Join(newDir(t, c, f), "f"), randomBytes(blockSize)[blockSize/2:]
	write(t, f, name, content)
	for i, replica := range awaitReplicas(t, f, name, 2)[0].Replicas {
		d := daemonAt(c, replica.Addr)
		corrupt(t, d, content)
		// The client is local to the corrupt replica, so it reads that one first.
		fromReplica := client(t, c, faultTimeouts, dialFrom(d), func(o *hdfs.Options) {
			if i == 1 {
				o.ReadRetryFor = failsAfter
			}
		})
		got, err := readAll(fromReplica, name)
		if !bytes.HasPrefix(content, got) {
			t.Fatalf("%d replicas corrupt: wrong bytes delivered", i+1)
		}
		if i == 0 && (err != nil || len(got) != len(content)) {
			t.Fatalf("one replica corrupt: %d bytes, %v", len(got), err)
		}
		if i == 1 && (err == nil || !strings.Contains(err.Error(), "blk_") || !strings.Contains(err.Error(), name)) {
			t.Errorf("both replicas corrupt: %v, want the block named", err)
		}
	}
	name = dfs.Join(newDir(t, c, f), "gone")
	write(t, f, name, content)
	var killed []*minicluster.Daemon
	for _, replica := range awaitReplicas(t, f, name, 2)[0].Replicas {
		d := daemonAt(c, replica.Addr)
		if err := d.Kill(); err != nil {
			t.Fatal(err)
		}
		killed = append(killed, d)
	}
	f = client(t, c, faultTimeouts, func(o *hdfs.Options) { o.ReadRetryFor = failsAfter })
	if _, err := readAll(f, name); err == nil || !strings.Contains(err.Error(), "blk_") || !strings.Contains(err.Error(), name) {
		t.Errorf("all replicas gone: %v, want the block named", err)
	}
	restart(t, c, killed...)
}

// corrupt flips bits in the middle of the only block file with this content.
func corrupt(t *testing.T, d *minicluster.Daemon, content []byte) {
	t.Helper()
	damaged := slices.Clone(content)
	damaged[len(damaged)/2] ^= 0x55
	if err := os.WriteFile(blockFile(t, d, content), damaged, 0o666); err != nil {
		t.Fatal(err)
	}
}

// blockFile finds a DataNode's only block file with this content.
func blockFile(t *testing.T, d *minicluster.Daemon, content []byte) (path string) {
	t.Helper()
	err := filepath.WalkDir(d.Data(), func(file string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a block of another test, which the DataNode has just removed
		}
		if err != nil || entry.IsDir() || !strings.HasPrefix(entry.Name(), "blk_") || strings.HasSuffix(entry.Name(), ".meta") {
			return err
		}
		data, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !bytes.Equal(data, content) {
			return err
		}
		if path != "" {
			return fmt.Errorf("%s and %s have the same content", path, file)
		}
		path = file
		return nil
	})
	if err != nil || path == "" {
		t.Fatalf("block file of %s: %q, %v", d.ID, path, err)
	}
	return path
}

// Row 29: if a file is replaced or removed before or during a read, the read fails. It never
// returns bytes of another file.
func TestFileChanges(t *testing.T) {
	c := cluster(t)
	f := client(t, c, faultTimeouts)
	top, content := newDir(t, c, f), randomBytes(2*blockSize)
	other := slices.Clone(content)
	slices.Reverse(other)
	var files []dfs.File
	for _, started := range []bool{false, true} {
		for _, replaced := range []bool{false, true} {
			name := dfs.Join(top, fmt.Sprintf("f %v %v", started, replaced))
			write(t, f, name, content)
			file, err := f.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			if started {
				if _, err := file.ReadAt(make([]byte, 10), 0); err != nil {
					t.Fatal(err)
				}
			}
			if err := f.Remove(name); err != nil {
				t.Fatal(err)
			}
			if replaced {
				write(t, f, name, other)
			}
			files = append(files, file)
		}
	}
	// Reads may succeed until the DataNodes have removed the old blocks.
	for i, file := range files {
		want := []error{fs.ErrNotExist, dfs.ErrChanged}[i%2] // removed or replaced
		trial.Await(t, "removal of the old blocks", func() bool {
			got := make([]byte, len(content))
			n, err := file.ReadAt(got, 0)
			if !bytes.Equal(got[:n], content[:n]) {
				t.Fatalf("file %d: content of another file", i)
			}
			if err != nil && !errors.Is(err, want) {
				t.Errorf("file %d: %v, want %v", i, err, want)
			}
			return err != nil
		})
	}
}
