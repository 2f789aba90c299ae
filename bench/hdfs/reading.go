package hdfs

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	bare "github.com/colinmarc/hdfs/v2"

	"github.com/quernmr/quern/bench/input"
	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/integration/hdfs/minicluster"
)

// reading compares package dfs/hdfs with its client library: reads of a file, in pieces of the
// maps' size. It also measures the lookup of block locations.
func (b *bench) reading() error {
	if err := b.throughput(); err != nil {
		return err
	}
	return b.locate()
}

const readSize = 256 << 10

func (b *bench) throughput() error {
	dir, err := b.directory()
	if err != nil {
		return err
	}
	local, name := b.Path(fmt.Sprintf("text%d", b.Bytes)), dfs.Join(dir, "f")
	if err := errors.Join(input.Text(local, b.Bytes), testbed.PutFile(b.hdfs, local, name, nil, nil)); err != nil {
		return err
	}
	library, err := bare.NewClient(bare.ClientOptions{Addresses: []string{b.hdfs.NameNodes[0].Addr()}, User: minicluster.Superuser})
	if err != nil {
		return err
	}
	defer library.Close()
	read := func(open func() (io.ReadCloser, error)) func() (time.Duration, error) {
		return func() (time.Duration, error) { return b.readThrough(open) }
	}
	took, err := testbed.Alternate(1, max(b.Runs, 9), // the first round warms the DataNodes up
		read(func() (io.ReadCloser, error) { return b.fs.Open(name) }),
		read(func() (io.ReadCloser, error) { return library.Open(strings.TrimPrefix(name, b.hdfs.URL())) }))
	if err != nil {
		return err
	}
	speed := func(d time.Duration) string { return fmt.Sprintf("%.0f MB/s", float64(b.Bytes)/1e6/d.Seconds()) }
	a, p := testbed.Median(took[0]), testbed.Median(took[1])
	testbed.Row("reading a file, one stream", speed(a), speed(p), testbed.Ratio(p, a), "≥ 0.9")
	return b.fs.RemoveAll(dir)
}

// readThrough reads a file to its end.
func (b *bench) readThrough(open func() (io.ReadCloser, error)) (time.Duration, error) {
	began := time.Now()
	file, err := open()
	if err != nil {
		return 0, err
	}
	defer file.Close()
	n, err := io.CopyBuffer(onlyWriter{io.Discard}, onlyReader{file}, make([]byte, readSize))
	if err == nil && n < b.Bytes {
		err = fmt.Errorf("%d of %d bytes were read", n, b.Bytes)
	}
	return time.Since(began), err
}

// Hide other methods, so that io.CopyBuffer uses its buffer.
type onlyWriter struct{ io.Writer }
type onlyReader struct{ io.Reader }

// locate locates a directory of 500 files of 20 blocks each.
func (b *bench) locate() error {
	const files, blocks, size = 500, 20, 4096
	dir, err := b.directory()
	if err != nil {
		return err
	}
	f, err := testbed.Client(b.hdfs, nil, map[string]string{"dfs.blocksize": fmt.Sprint(size)})
	if err != nil {
		return err
	}
	defer f.Close()
	if err := concurrently(8, files, func(n int) error {
		w, err := f.Create(dfs.Join(dir, fmt.Sprintf("part-%05d", n)))
		if err != nil {
			return err
		}
		if _, err := w.Write(make([]byte, blocks*size)); err != nil {
			return err
		}
		return w.Close()
	}); err != nil {
		return err
	}
	took, err := testbed.Alternate(0, b.Runs, func() (time.Duration, error) {
		began := time.Now()
		located, err := f.Locate(dir)
		took, n := time.Since(began), 0
		for _, file := range located {
			n += len(file.Blocks)
		}
		if err == nil && n != files*blocks {
			err = fmt.Errorf("located %d blocks, want %d", n, files*blocks)
		}
		return took, err
	})
	if err != nil {
		return err
	}
	testbed.Row("block locations of a directory: 500 files, 10,000 blocks", testbed.Millis(testbed.Median(took[0])), "", "", "≤ 2 s")
	return b.fs.RemoveAll(dir)
}

// concurrently calls do for 0 to n-1, up to width at a time.
func concurrently(width, n int, do func(int) error) error {
	errs := make([]error, width)
	var wait sync.WaitGroup
	for i := range width {
		wait.Go(func() {
			for k := i; k < n && errs[i] == nil; k += width {
				errs[i] = do(k)
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}
