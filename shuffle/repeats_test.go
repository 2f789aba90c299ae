package shuffle

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/wire"
	"pgregory.net/rapid"
)

// drawRepeating draws phases of records: of few keys and values, which often repeat, and of keys that never do. So the
// cache of repeats is switched off.
func drawRepeating(t *rapid.T, partitions int) (recs []rec) {
	for range rapid.IntRange(1, 3).Draw(t, "phases") {
		unique, keys, values := rapid.Bool().Draw(t, "unique"), rapid.IntRange(1, 50).Draw(t, "keys"), rapid.IntRange(1, 3).Draw(t, "values")
		tail := strings.Repeat("x", rapid.SampledFrom([]int{0, 5, 8, 200}).Draw(t, "tail"))
		random := rapid.Uint64Range(1, math.MaxUint64).Draw(t, "random")
		for range rapid.IntRange(0, repeatSample*5/4).Draw(t, "n") {
			random = mix(random^mixA, mixB)
			key := int(random % uint64(keys))
			if unique {
				key = len(recs)
			}
			recs = append(recs, rec{int(random>>20) % partitions, fmt.Sprint(key, tail), fmt.Sprint(random >> 30 % uint64(values))})
		}
	}
	return recs
}

// TestRepeats: records that repeat others are all there, in the order in which they were collected, with and without
// spills and a combiner; a reader that skips repeats gets all of them.
func TestRepeats(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{Partitions: rapid.IntRange(1, 3).Draw(t, "partitions"), Memory: rapid.SampledFrom([]int64{5000, 100_000, 8 << 20}).Draw(t, "memory")}
		recs := drawRepeating(t, cfg.Partitions)
		want := sorted(recs)
		if rapid.Bool().Draw(t, "combined") {
			cfg.Combine = combineSum
			want = summed(recs)
		}
		if rapid.Bool().Draw(t, "kept") { // The memory still has the slots and records of the last map.
			cfg.Kept = new(Memory)
			defer cfg.Kept.Free()
			collect(t, cfg, recs)
		}
		cfg, out := collect(t, cfg, recs)
		index := checkSegment(t, cfg.File, cfg.Partitions, want)
		if index.Digest() != out.Digest || out.Stats.Records != int64(len(recs)) {
			t.Fatalf("output %+v, digest %x", out, index.Digest())
		}
		var got []rec
		for p, in := range index.Partitions {
			m, err := Merge(context.Background(), []wire.Segment{{File: cfg.File, Offset: in.Offset, Length: in.Length}}, MergeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for m.Next() {
				r := rec{p, string(m.Key()), string(m.Value())}
				for range 1 + m.Repeats() {
					got = append(got, r)
				}
			}
			if err := m.Close(); err != nil || m.Err() != nil {
				t.Fatal(err, m.Err())
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%d records differ from the %d collected", len(got), len(want))
		}
	})
}

// TestRepeated compares with a comparison of each record.
func TestRepeated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		record := rapid.SliceOfN(rapid.SampledFrom([]byte("ab")), 1, 12).Draw(t, "record")
		records := append(bytes.Repeat(record, rapid.IntRange(1, 9).Draw(t, "times")), rapid.SliceOf(rapid.SampledFrom([]byte("ab"))).Draw(t, "rest")...)
		want := 0
		for rest := records[len(record):]; bytes.HasPrefix(rest, record); rest = rest[len(record):] {
			want++
		}
		if got := repeated(records, len(record)); got != want {
			t.Fatalf("%q repeats in %q: %d, want %d", record, records, got, want)
		}
	})
}
