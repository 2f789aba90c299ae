package shuffle

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestIndexCache: an index is read once, but again for another file with the name.
func TestIndexCache(t *testing.T) {
	cache, name := newIndexCache(), filepath.Join(t.TempDir(), "output")
	read := func() (*Index, error) {
		t.Helper()
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		return cache.read(f)
	}
	replace := func(partitions int) {
		t.Helper()
		cfg, _ := collect(t, Config{Partitions: partitions, Memory: 1 << 20}, []rec{{0, "key", "value"}})
		if err := os.Rename(cfg.File, name); err != nil {
			t.Fatal(err)
		}
	}
	replace(2)
	first, err := read()
	if err != nil || len(first.Partitions) != 2 {
		t.Fatalf("%+v, %v", first, err)
	}
	if again, err := read(); again != first || err != nil {
		t.Errorf("read again: %+v, %v", again, err)
	}
	replace(3)
	second, err := read()
	if err != nil || len(second.Partitions) != 3 {
		t.Errorf("another file: %+v, %v", second, err)
	}
	if err := os.Truncate(name, 20); err != nil {
		t.Fatal(err)
	}
	if _, err := read(); err == nil {
		t.Error("no error for a damaged index")
	}
}

func TestIndexCacheBound(t *testing.T) {
	cache := newIndexCache()
	const partitions = maxCachedEntries/4 + 1
	for i := range 10 {
		for range 2 { // two requests read it at the same time
			cache.put(fmt.Sprint(i), cachedIndex{index: &Index{Partitions: make([]Partition, partitions)}})
		}
		if want := min(i+1, 3); len(cache.indexes) != want || len(cache.files) != want || cache.entries != want*partitions {
			t.Fatalf("after %d: %d indexes, %d files, %d entries", i, len(cache.indexes), len(cache.files), cache.entries)
		}
		if _, ok := cache.indexes[fmt.Sprint(i)]; !ok {
			t.Errorf("%d is not kept", i)
		}
	}
	cache.put("huge", cachedIndex{index: &Index{Partitions: make([]Partition, maxCachedEntries+1)}})
	if len(cache.indexes) != 0 || len(cache.files) != 0 || cache.entries != 0 {
		t.Errorf("%d indexes, %d entries", len(cache.indexes), cache.entries)
	}
}
