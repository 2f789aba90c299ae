package streaming

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/internal/membound"
)

// TestCombined: records come in the order of their keys, equal keys as they were added, whatever fits into memory.
func TestCombined(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOf(rapid.StringOfN(rapid.SampledFrom([]rune("ab")), 0, 3, -1)).Draw(t, "keys")
		all := combined{dir: dir, max: rapid.IntRange(1, 500).Draw(t, "memory")}
		defer all.close()
		var want, got []string
		for i, key := range keys {
			want = append(want, fmt.Sprintf("%s\t%06d", key, i))
			if err := all.add([]byte(key), fmt.Appendf(nil, "%06d", i)); err != nil {
				t.Fatal(err)
			}
		}
		slices.SortStableFunc(want, func(a, b string) int { return strings.Compare(a[:len(a)-7], b[:len(b)-7]) })
		err := all.emit(func(key, value []byte) error {
			got = append(got, string(key)+"\t"+string(value))
			return nil
		})
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%v: %q, want %q", err, got, want)
		}
	})
}

// TestCombinedMemory: much output of a combiner needs little memory.
func TestCombinedMemory(t *testing.T) {
	value := bytes.Repeat([]byte("x"), 1000)
	membound.Bound{Free: 32 << 20}.Check(t, 0, func() {
		all := combined{dir: t.TempDir(), max: 1 << 20}
		defer all.close()
		for range 100_000 { // 100 MB
			if err := all.add([]byte("key"), value); err != nil {
				t.Fatal(err)
			}
		}
		n := 0
		if err := all.emit(func(_, _ []byte) error { n++; return nil }); err != nil || n != 100_000 {
			t.Errorf("%d records: %v", n, err)
		}
	})
}
