package hdfs_test

import (
	"io"
	"slices"
	"testing"
	"time"

	bare "github.com/colinmarc/hdfs/v2"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/integration/hdfs/minicluster"
)

const benchSize = 256 << 20

// BenchmarkRead reads one file of 256 MiB in blocks of 64 MiB, with runtime's
// size of reads, through this package and through the bare library in turn, so
// that both meet the same load. It reports the throughput of each, of the median
// and of the best, and what part of the bare library's ours is.
func BenchmarkRead(b *testing.B) {
	c := own(b, func(cfg *minicluster.Config) { cfg.BlockSize, cfg.Replication, cfg.Racks = 64<<20, 1, []string{"/a"} })
	f := client(b, c)
	name := c.URL() + "/bench"
	w, err := f.Create(name)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := w.Write(noise(benchSize)); err != nil {
		b.Fatal(err)
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	library, err := bare.NewClient(bare.ClientOptions{Addresses: []string{c.NameNodes[0].Addr()}, User: minicluster.Superuser})
	if err != nil {
		b.Fatal(err)
	}
	defer library.Close()
	buf := make([]byte, 256<<10)
	timed := func(open func() (io.ReadCloser, error)) time.Duration {
		began := time.Now()
		file, err := open()
		if err != nil {
			b.Fatal(err)
		}
		defer file.Close()
		if n, err := io.CopyBuffer(onlyWriter{io.Discard}, onlyReader{file}, buf); n != benchSize {
			b.Fatal(n, err)
		}
		return time.Since(began)
	}
	var ours, theirs []time.Duration
	for b.Loop() {
		ours = append(ours, timed(func() (io.ReadCloser, error) { return f.Open(name) }))
		theirs = append(theirs, timed(func() (io.ReadCloser, error) { return library.Open("/bench") }))
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	speed := func(d time.Duration) float64 { return benchSize / d.Seconds() / 1e6 }
	for _, of := range []struct {
		name string
		at   int
	}{{"median", len(ours) / 2}, {"best", 0}} {
		b.ReportMetric(speed(ours[of.at]), of.name+"-MB/s")
		b.ReportMetric(speed(theirs[of.at]), of.name+"-bare-MB/s")
		b.ReportMetric(100*theirs[of.at].Seconds()/ours[of.at].Seconds(), of.name+"-%")
	}
}

type onlyWriter struct{ io.Writer }
type onlyReader struct{ io.Reader }

// BenchmarkLocate locates a directory of 10,000 blocks in 500 files.
func BenchmarkLocate(b *testing.B) {
	c := own(b, func(cfg *minicluster.Config) { cfg.BlockSize, cfg.Replication, cfg.Racks = 4096, 1, []string{"/a"} })
	f := client(b, c)
	dir := c.URL() + "/many"
	if err := f.Mkdir(dir); err != nil {
		b.Fatal(err)
	}
	const files, blocks = 500, 20
	content := noise(blocks * 4096)
	errs := race(8, func(i int) error {
		for n := i; n < files; n += 8 {
			w, err := f.Create(dfs.Join(dir, string(rune('a'+n/26%26))+string(rune('a'+n%26))+string(rune('a'+n/676))))
			if err != nil {
				return err
			}
			if _, err := w.Write(content); err != nil {
				return err
			}
			if err := w.Close(); err != nil {
				return err
			}
		}
		return nil
	})
	for _, err := range errs {
		if err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		located, err := f.Locate(dir)
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for _, file := range located {
			n += len(file.Blocks)
		}
		if n != files*blocks {
			b.Fatal(n)
		}
	}
}
