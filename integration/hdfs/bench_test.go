package hdfs_test

import (
	"io"
	"testing"

	bare "github.com/colinmarc/hdfs/v2"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/integration/hdfs/minicluster"
)

const benchSize = 256 << 20

// BenchmarkRead reads one file of 256 MiB in blocks of 64 MiB, through this
// package and through the bare library, with runtime's size of reads.
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
	buf := make([]byte, 256<<10)
	b.Run("quern", func(b *testing.B) {
		b.SetBytes(benchSize)
		for b.Loop() {
			file, err := f.Open(name)
			if err != nil {
				b.Fatal(err)
			}
			if n, err := io.CopyBuffer(onlyWriter{io.Discard}, io.NewSectionReader(file, 0, benchSize), buf); n != benchSize {
				b.Fatal(n, err)
			}
			file.Close()
		}
	})
	b.Run("bare", func(b *testing.B) {
		client, err := bare.NewClient(bare.ClientOptions{Addresses: []string{c.NameNodes[0].Addr()}, User: minicluster.Superuser})
		if err != nil {
			b.Fatal(err)
		}
		defer client.Close()
		b.SetBytes(benchSize)
		for b.Loop() {
			file, err := client.Open("/bench")
			if err != nil {
				b.Fatal(err)
			}
			if n, err := io.CopyBuffer(onlyWriter{io.Discard}, onlyReader{file}, buf); n != benchSize {
				b.Fatal(n, err)
			}
			file.Close()
		}
	})
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
