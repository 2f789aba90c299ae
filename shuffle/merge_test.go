package shuffle

import (
	"bytes"
	"context"
	"crypto/sha512"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/internal/membound"
	"github.com/quernmr/quern/wire"
)

func TestMergeAgainstStableSort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []rec
		var segments []wire.Segment
		digest := uint64(0)
		for range rapid.IntRange(0, 12).Draw(t, "segments") {
			recs := drawRecords(t, 1, false)
			cfg, _ := collect(t, Config{Partitions: 1, Memory: 1 << 20}, recs)
			all = append(all, recs...)
			segments = append(segments, wholePartition(t, cfg.File, 0))
			index, _ := ReadIndex(cfg.File)
			digest += index.Partitions[0].Digest
		}
		dir := tempDir(t)
		opts := MergeOptions{Dir: dir, FanIn: rapid.SampledFrom([]int{0, 1, 2, 3, 5}).Draw(t, "fan-in")}
		most, least := rapid.IntRange(1, 4).Draw(t, "most"), rapid.Int64Range(1, 60).Draw(t, "least")
		largest := NewLargest(most, least)
		merged, err := MergeTo(t.Context(), segments, filepath.Join(dir, "merged"), opts, &largest)
		if err != nil {
			t.Fatal(err)
		}
		index := checkSegment(t, merged.File, 1, sorted(all))
		if index.Partitions[0].Digest != digest || merged != (wire.Segment{Map: -1, File: merged.File, Offset: 8, Length: index.Partitions[0].Length}) {
			t.Fatalf("merged %+v, digest %x, want %x", merged, index.Partitions[0].Digest, digest)
		}
		if leftover := files(t, dir); !slices.Equal(leftover, []string{"merged"}) {
			t.Fatalf("leftover files: %v", leftover)
		}
		if want := largestGroups(sorted(all), most, least); !slices.EqualFunc(largest.Groups(), want, equalGroups) {
			t.Fatalf("largest groups %+v, want %+v", largest.Groups(), want)
		}
		size := int64(0)
		for _, r := range all {
			size += int64(recordSize(len(r.key), len(r.value)))
		}
		if largest.Read() != size {
			t.Fatalf("%d bytes were read, want %d", largest.Read(), size)
		}
	})
}

// largestGroups finds the largest groups in sorted records in a simple way.
func largestGroups(recs []rec, most int, least int64) (groups []Group) {
	for i, r := range recs {
		if i == 0 || recs[i-1].key != r.key {
			groups = append(groups, Group{Key: []byte(r.key)[:min(len(r.key), MaxGroupKey)], Cut: len(r.key) > MaxGroupKey})
		}
		g := &groups[len(groups)-1]
		g.Records++
		g.Bytes += int64(recordSize(len(r.key), len(r.value)))
	}
	groups = slices.DeleteFunc(groups, func(g Group) bool { return g.Bytes < least })
	slices.SortStableFunc(groups, func(a, b Group) int { return int(b.Bytes - a.Bytes) })
	if len(groups) == 0 {
		return nil
	}
	return groups[:min(len(groups), most)]
}

// equalGroups compares groups. An empty key may be nil.
func equalGroups(a, b Group) bool {
	return bytes.Equal(a.Key, b.Key) && a.Cut == b.Cut && a.Records == b.Records && a.Bytes == b.Bytes
}

// TestLargestLarge tests groups of records that are larger than a block, or end a block, with long and with short keys.
func TestLargestLarge(t *testing.T) {
	var recs []rec
	long := strings.Repeat("k", MaxGroupKey+1)
	for _, key := range []string{"a", "a\x00", "b", long, long + "x"} {
		for n := range 3 {
			recs = append(recs, rec{0, key, strings.Repeat("v", n*blockTarget)}, rec{0, key, strings.Repeat("v", blockTarget/3)})
		}
	}
	cfg, _ := collect(t, Config{Partitions: 1, Memory: 16 << 20}, recs)
	file := filepath.Join(t.TempDir(), "merged")
	segments := slices.Repeat([]wire.Segment{wholePartition(t, cfg.File, 0)}, 2)
	largest := NewLargest(4, 1)
	if _, err := MergeTo(t.Context(), segments, file, MergeOptions{}, &largest); err != nil {
		t.Fatal(err)
	}
	if want := largestGroups(sorted(slices.Repeat(recs, 2)), 4, 1); !reflect.DeepEqual(largest.Groups(), want) {
		t.Errorf("%d groups differ from %d", len(largest.Groups()), len(want))
	}
}

func TestGroups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, fanIn := rapid.IntRange(0, 2000).Draw(t, "n"), rapid.IntRange(2, 200).Draw(t, "fan-in")
		rounds := 0
		for ; n > fanIn; rounds++ {
			sum, largest := 0, 0
			sizes := groups(n, fanIn)
			for _, s := range sizes {
				sum += s
				largest = max(largest, s)
			}
			if sum != n || largest > fanIn || len(sizes) >= n || len(sizes) < fanIn {
				t.Fatalf("groups(%d, %d) = %v", n, fanIn, sizes)
			}
			n = len(sizes)
		}
		if rounds > 11 {
			t.Fatalf("%d rounds", rounds)
		}
	})
}

// smallSegment writes a segment file with short records and a large one.
func smallSegment(t *testing.T) (file string, want []rec) {
	t.Helper()
	recs := []rec{{0, "apple", "1"}, {0, "pear", "2"}, {2, "", ""}, {2, "plum", "x"}, {2, "big", string(bytes.Repeat([]byte("B"), blockTarget+1))}}
	cfg, _ := collect(t, Config{Partitions: 3, Memory: 1 << 20}, recs)
	return cfg.File, sorted(recs)
}

// readWhole reads all partitions of a segment file. It returns the records before an error.
func readWhole(ctx context.Context, file string) (recs []rec, err error) {
	index, err := ReadIndex(file)
	if err != nil {
		return nil, err
	}
	for p, part := range index.Partitions {
		s := wire.Segment{Map: 7, Attempt: 1000, File: file, Offset: part.Offset, Length: part.Length}
		m, err := Merge(ctx, []wire.Segment{s}, MergeOptions{})
		if err != nil {
			return recs, err
		}
		some, err := readAll(m, p)
		recs = append(recs, some...)
		if err := errors.Join(err, m.Close()); err != nil {
			return recs, err
		}
	}
	return recs, nil
}

// TestEveryByteCorrupted changes each byte. The records before the error must be correct.
func TestEveryByteCorrupted(t *testing.T) {
	file, want := smallSegment(t)
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := range good {
		if i > 500 && i < len(good)-500 && i%1009 != 0 {
			continue // the bytes of the large value are equal
		}
		for _, flip := range []byte{1, 0x80, good[i]} {
			bad := slices.Clone(good)
			if bad[i] ^= flip; bad[i] == good[i] {
				continue
			}
			if err := os.WriteFile(file, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			checkDamage(t, file, want, i)
		}
	}
}

func TestTruncated(t *testing.T) {
	file, want := smallSegment(t)
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	index, err := ReadIndex(file)
	if err != nil {
		t.Fatal(err)
	}
	last := index.Partitions[2]
	s := wire.Segment{Map: 7, Attempt: 1000, File: file, Offset: last.Offset, Length: last.Length}
	for size := len(good) - 1; size > 0; size -= 1 + size/50 {
		if err := os.Truncate(file, int64(size)); err != nil {
			t.Fatal(err)
		}
		checkDamage(t, file, want, size)
		if int64(size) >= last.Offset+last.Length {
			continue
		}
		// A reduce has the range of the segment, so it detects a missing end too.
		var corrupt *CorruptError
		if _, err := MergeTo(t.Context(), []wire.Segment{s}, filepath.Join(t.TempDir(), "merged"), MergeOptions{}, nil); !errors.As(err, &corrupt) || corrupt.Segment != s {
			t.Fatalf("cut to %d bytes: %v", size, err)
		}
	}
}

// TestImpossibleIndex checks that an index with impossible entries is refused.
func TestImpossibleIndex(t *testing.T) {
	file := append([]byte(magic), make([]byte, 100)...)
	for _, partitions := range [][]Partition{
		{{Offset: 8, Length: 99, Records: 1}},
		{{Offset: 8, Length: 101, Records: 1}},
		{{Offset: 0, Length: 100, Records: 1}},
		{{Offset: 8, Length: -1}, {Offset: 7, Length: 101}},
		{{Offset: 8, Length: 50}, {Offset: 8, Length: 50}},
		{{Offset: 8, Length: 100, Records: -1}},
		{{Offset: 8, Length: 100, Records: 100*blockTarget + 1}},
	} {
		data := appendIndex(slices.Clip(file), &Index{Partitions: partitions})
		if _, err := decodeIndex(bytes.NewReader(data), int64(len(data)), tailGuess, true); err == nil {
			t.Errorf("accepted %+v", partitions)
		}
	}
}

func checkDamage(t *testing.T, file string, want []rec, at int) {
	t.Helper()
	got, err := readWhole(t.Context(), file)
	var corrupt *CorruptError
	if !errors.As(err, &corrupt) || corrupt.Segment.File != file {
		t.Fatalf("damage at %d: %v", at, err)
	}
	if corrupt.Offset < 0 || corrupt.Offset > int64(at)+blockHeader+1 && corrupt.Segment.Map == 7 {
		t.Fatalf("damage at %d reported as %v", at, err)
	}
	if len(got) >= len(want) && at > 8 && corrupt.Segment.Map == 7 || !slices.Equal(got, want[:len(got)]) {
		t.Fatalf("damage at %d: delivered %v", at, got)
	}
}

func TestMergeMissingFile(t *testing.T) {
	file, _ := smallSegment(t)
	segments := []wire.Segment{wholePartition(t, file, 0), {Map: 3, Attempt: 2001, File: file + "-gone", Offset: 8, Length: 100}}
	_, err := Merge(t.Context(), segments, MergeOptions{})
	var unreadable *UnreadableError
	if !errors.As(err, &unreadable) || unreadable.Segment != segments[1] || !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}

// TestOnProgress checks that temporary runs, spills and their merge call OnProgress.
func TestOnProgress(t *testing.T) {
	file, _ := smallSegment(t)
	calls := 0
	onProgress := func() { calls++ }
	m, err := Merge(t.Context(), slices.Repeat([]wire.Segment{wholePartition(t, file, 0)}, 3),
		MergeOptions{Dir: t.TempDir(), FanIn: 2, OnProgress: onProgress})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if calls < 4 { // two blocks for the temporary run, two at the start
		t.Errorf("%d calls of OnProgress by a merge", calls)
	}
	calls = 0
	recs := slices.Repeat([]rec{{0, "key", "value"}}, 100)
	_, out := collect(t, Config{Partitions: 1, Memory: 1000, OnProgress: onProgress}, recs)
	if want := 2*out.Stats.Spills + 1; calls < want { // to write and read each run, and to write the segment file
		t.Errorf("%d calls of OnProgress for %d spills", calls, out.Stats.Spills)
	}
}

func TestMergeCanceled(t *testing.T) {
	var recs []rec
	for i := range 100_000 {
		recs = append(recs, rec{0, string(rune('a' + i%26)), "some value"})
	}
	cfg, _ := collect(t, Config{Partitions: 1, Memory: 16 << 20}, recs)
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	m, err := Merge(ctx, []wire.Segment{wholePartition(t, cfg.File, 0)}, MergeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	n := 0
	for m.Next() {
		cancel(enough)
		n++
	}
	if !errors.Is(m.Err(), enough) || n > blockTarget {
		t.Fatalf("%d records, then %v", n, m.Err())
	}
}

// TestReadTime checks that the time of all reads of blocks counts, and no other time.
func TestReadTime(t *testing.T) {
	var recs []rec
	for range 3000 {
		recs = append(recs, rec{0, "key", strings.Repeat("x", 100)})
	}
	cfg, out := collect(t, Config{Partitions: 1, Memory: 16 << 20}, recs)
	now := time.Unix(0, 0)
	m, err := Merge(t.Context(), []wire.Segment{wholePartition(t, cfg.File, 0)}, MergeOptions{Clock: func() time.Time {
		now = now.Add(time.Second)
		return now
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if m.ReadTime() != time.Second {
		t.Errorf("the first block was read in %v, want 1s", m.ReadTime())
	}
	for m.Next() {
		now = now.Add(time.Hour)
	}
	blocks := out.Partitions/blockTarget + 1
	if want := time.Duration(blocks+1) * time.Second; m.ReadTime() != want { // with the read that finds the end
		t.Errorf("%d blocks were read in %v, want %v", blocks, m.ReadTime(), want)
	}
}

// TestMergeMemory: a merge of as many packed segments as it reads at once leaves room in the 64 MB that a slot may use.
func TestMergeMemory(t *testing.T) {
	var recs []rec
	for i := range 2000 {
		value := sha512.Sum512([]byte(strconv.Itoa(i))) // little can be packed
		recs = append(recs, rec{0, fmt.Sprintf("%06d", i), string(value[:])})
	}
	cfg, _ := collect(t, Config{Partitions: 1, Memory: 1 << 20, Codec: "zstd"}, recs)
	segments := slices.Repeat([]wire.Segment{wholePartition(t, cfg.File, 0)}, defaultFanIn)
	membound.Bound{Free: 60 << 20}.Check(t, 0, func() { // with garbage: more under the race detector
		m, err := Merge(t.Context(), segments, MergeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for m.Next() {
		}
		if err := errors.Join(m.Err(), m.Close()); err != nil {
			t.Fatal(err)
		}
	})
}
