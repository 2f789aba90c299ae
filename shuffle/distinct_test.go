package shuffle

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// collector returns a collector in a new directory, and sets the directory and the segment file.
func collector(t tester, cfg *Config) *Collector {
	t.Helper()
	cfg.Dir = tempDir(t)
	cfg.File = filepath.Join(cfg.Dir, "output")
	c, err := NewCollector(*cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestCollectorDistinct: with distinct keys, the output, the counts of records and the runs are the same without calls of Combine.
func TestCollectorDistinct(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{Partitions: 2, Memory: rapid.SampledFrom([]int64{1, 300, 5000, 1 << 20}).Draw(t, "memory"), Combine: combineSum}
		recs := slices.CompactFunc(sorted(drawRecords(t, cfg.Partitions, true)), func(a, b rec) bool { return a.partition == b.partition && a.key == b.key })
		recs = rapid.Permutation(recs).Draw(t, "order")
		before, want := collect(t, cfg, recs)
		spilling := rapid.IntRange(0, len(recs)).Draw(t, "from")
		c := collector(t, &cfg)
		defer c.Discard()
		for i, r := range recs {
			if i == spilling {
				c.Distinct()
			}
			if err := c.Collect(r.partition, []byte(r.key), []byte(r.value)); err != nil {
				t.Fatal(err)
			}
		}
		c.Distinct()
		got, err := c.Close()
		if err != nil || got != want {
			t.Fatalf("got %+v, want %+v: %v", got, want, err)
		}
		a, errA := os.ReadFile(before.File)
		b, errB := os.ReadFile(cfg.File)
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Fatalf("the files differ: %v, %v", errA, errB)
		}
	})
}
