package shuffle

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"pgregory.net/rapid"

	"github.com/quernmr/quern/wire"
)

// rec is a record of the reference implementation, a stable sort of a slice.
type rec struct {
	partition  int
	key, value string
}

func (r rec) String() string { return fmt.Sprintf("%d %.40q=%.40q", r.partition, r.key, r.value) }

func sorted(recs []rec) []rec {
	recs = slices.Clone(recs)
	slices.SortStableFunc(recs, func(a, b rec) int {
		return cmp.Or(cmp.Compare(a.partition, b.partition), strings.Compare(a.key, b.key))
	})
	return recs
}

// summed returns sorted records with the values of equal keys added up.
func summed(recs []rec) []rec {
	var out []rec
	for _, r := range sorted(recs) {
		if n := len(out); n > 0 && out[n-1].partition == r.partition && out[n-1].key == r.key {
			a, _ := strconv.Atoi(out[n-1].value)
			b, _ := strconv.Atoi(r.value)
			out[n-1].value = strconv.Itoa(a + b)
			continue
		}
		out = append(out, r)
	}
	return out
}

// combineSum is a combiner that adds up numbers.
func combineSum(in Records, emit func(key, value []byte) error) error {
	var key []byte
	sum, started := 0, false
	for in.Next() {
		n, err := strconv.Atoi(string(in.Value()))
		if err != nil {
			return err
		}
		if started && !bytes.Equal(key, in.Key()) {
			if err := emit(key, strconv.AppendInt(nil, int64(sum), 10)); err != nil {
				return err
			}
			sum = 0
		}
		key, started = append(key[:0], in.Key()...), true
		sum += n
	}
	if in.Err() != nil || !started {
		return in.Err()
	}
	return emit(key, strconv.AppendInt(nil, int64(sum), 10))
}

// combineIdentity is a combiner that emits its input.
func combineIdentity(in Records, emit func(key, value []byte) error) error {
	for in.Next() {
		if err := emit(in.Key(), in.Value()); err != nil {
			return err
		}
	}
	return in.Err()
}

// collect collects records in a new directory. The returned Config names the segment file.
func collect(t tester, cfg Config, recs []rec) (Config, Output) {
	t.Helper()
	c := collector(t, &cfg)
	defer c.Discard()
	for _, r := range recs {
		if err := c.Collect(r.partition, []byte(r.key), []byte(r.value)); err != nil {
			t.Fatal(err)
		}
	}
	out, err := c.Close()
	if err != nil {
		t.Fatal(err)
	}
	if leftover := files(t, cfg.Dir); !slices.Equal(leftover, []string{"output"}) {
		t.Fatalf("leftover files: %v", leftover)
	}
	return cfg, out
}

// tester has the common methods of tests and rapid properties.
type tester interface {
	rapid.TB
	Cleanup(func())
	Context() context.Context
}

// tempDir returns a new directory, also for rapid, which has no TempDir.
func tempDir(t tester) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "shuffle-test-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func files(t tester, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func wholePartition(t tester, file string, p int) wire.Segment {
	t.Helper()
	index, err := ReadIndex(file)
	if err != nil {
		t.Fatal(err)
	}
	return wire.Segment{File: file, Offset: index.Partitions[p].Offset, Length: index.Partitions[p].Length}
}

// readAll reads a merge to its end.
func readAll(m Records, partition int) ([]rec, error) {
	var recs []rec
	for m.Next() {
		recs = append(recs, rec{partition, string(m.Key()), string(m.Value())})
	}
	return recs, m.Err()
}

// readSegments reads one partition of every file, merged.
func readSegments(t tester, partition int, opts MergeOptions, files ...string) []rec {
	t.Helper()
	var segments []wire.Segment
	for _, f := range files {
		segments = append(segments, wholePartition(t, f, partition))
	}
	m, err := Merge(t.Context(), segments, opts)
	if err != nil {
		t.Fatal(err)
	}
	recs, err := readAll(m, partition)
	if err := errors.Join(err, m.Close()); err != nil {
		t.Fatal(err)
	}
	return recs
}

// checkSegment compares a segment file and its index with the expected records.
func checkSegment(t tester, file string, partitions int, want []rec) *Index {
	t.Helper()
	index, err := ReadIndex(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(index.Partitions) != partitions {
		t.Fatalf("%d partitions, want %d", len(index.Partitions), partitions)
	}
	for p, part := range index.Partitions {
		n, digest := int64(0), uint64(0)
		var wanted []rec
		for _, r := range want {
			if r.partition == p {
				b := make([]byte, recordSize(len(r.key), len(r.value)))
				putRecord(b, []byte(r.key), []byte(r.value))
				digest += xxhash.Sum64(b)
				n++
				wanted = append(wanted, r)
			}
		}
		if part.Records != n || part.Digest != digest {
			t.Fatalf("partition %d: index says %+v, want %d records, digest %x", p, part, n, digest)
		}
		if got := readSegments(t, p, MergeOptions{}, file); !slices.Equal(got, wanted) {
			t.Fatalf("partition %d:\n got %v\nwant %v", p, got, wanted)
		}
	}
	return index
}

// drawRecords draws records with keys that are often equal or share long prefixes.
func drawRecords(t *rapid.T, partitions int, numbers bool) []rec {
	stems := []string{"", "a", "ab", "\x00", "\xff\xff", "abcdefgh", "abcdefgh\x00", strings.Repeat("x", 23),
		strings.Repeat("y", 127), strings.Repeat("z", 200)}
	key := rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom(stems).Draw(t, "stem") + rapid.StringOfN(rapid.SampledFrom([]rune("\x00ab")), 0, 10, -1).Draw(t, "tail")
	})
	value := rapid.StringN(0, 20, -1)
	if numbers {
		value = rapid.Map(rapid.IntRange(0, 99), strconv.Itoa)
	}
	n := rapid.IntRange(0, 400).Draw(t, "n")
	recs := make([]rec, n)
	for i := range recs {
		recs[i] = rec{rapid.IntRange(0, partitions-1).Draw(t, "partition"), key.Draw(t, "key"), value.Draw(t, "value")}
	}
	return recs
}

func TestCollectorAgainstStableSort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{
			Partitions: rapid.IntRange(1, 4).Draw(t, "partitions"),
			Memory:     rapid.SampledFrom([]int64{1, 100, 300, 1000, 5000, 1 << 20}).Draw(t, "memory"),
		}
		combined := rapid.Bool().Draw(t, "combined")
		recs := drawRecords(t, cfg.Partitions, combined)
		want := sorted(recs)
		if combined {
			cfg.Combine = combineSum
			want = summed(recs)
		}
		if rapid.Bool().Draw(t, "kept") { // The memory has the records of another collector.
			cfg.Kept = new(Memory)
			defer cfg.Kept.Free()
			collect(t, cfg, drawRecords(t, cfg.Partitions, combined))
		}
		cfg, out := collect(t, cfg, recs)
		index := checkSegment(t, cfg.File, cfg.Partitions, want)
		info, err := os.Stat(cfg.File)
		if err != nil || info.Size() != out.Bytes || index.bytes() != out.Partitions || index.Digest() != out.Digest || out.Stats.Records != int64(len(recs)) {
			t.Fatalf("output %+v, file of %d bytes, digest %x, %v", out, info.Size(), index.Digest(), err)
		}
	})
}

// TestCollectorLargeGroups collects 90 % of the records with one key, and keys with 100
// equal bytes, in runs large enough for every sort algorithm.
func TestCollectorLargeGroups(t *testing.T) {
	var recs []rec
	for i := range 30_000 {
		key := "hot"
		switch i % 30 {
		case 0:
			key = fmt.Sprintf("k%d", i*7919%1000)
		case 1:
			key = strings.Repeat("deep", 25) + strconv.Itoa(i*7919%100)
		case 2:
			key = strings.Repeat("deeper", 40)
		case 3:
			key = strings.Repeat("zeros", 4) + strings.Repeat("\x00", i/30*7%5)
		}
		recs = append(recs, rec{i % 3, key, strconv.Itoa(i)})
	}
	for _, memory := range []int64{64 << 10, 4 << 20} {
		cfg, out := collect(t, Config{Partitions: 5, Memory: memory}, recs) // two partitions stay empty
		checkSegment(t, cfg.File, 5, sorted(recs))
		t.Logf("%+v", out)
	}
}

func TestRecordLargerThanMemory(t *testing.T) {
	var recs []rec
	for i := range 12 {
		recs = append(recs, rec{0, fmt.Sprintf("%c%s", 'a'+i%3, strings.Repeat("k", i%4*3000)), strings.Repeat(string(rune('A'+i)), 150_000)},
			rec{0, "b", strconv.Itoa(i)})
	}
	var cfg Config
	for _, combine := range []func(Records, func(k, v []byte) error) error{nil, combineIdentity} {
		for memory, spills := range map[int64]int{64 << 10: 23, 1 << 20: 1, 16 << 20: 0} {
			var out Output
			cfg, out = collect(t, Config{Partitions: 1, Memory: memory, Combine: combine}, recs)
			checkSegment(t, cfg.File, 1, sorted(recs))
			if out.Stats.Spills < spills {
				t.Errorf("%d spills", out.Stats.Spills)
			}
		}
	}
	// A merge must hold at most one large record.
	var segments []wire.Segment
	for range 20 {
		segments = append(segments, wholePartition(t, cfg.File, 0))
	}
	m, err := Merge(t.Context(), segments, MergeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for m.Next() {
		for _, r := range m.readers {
			if cap(r.buf) > 100<<10 {
				t.Fatalf("a source holds %d bytes", cap(r.buf))
			}
		}
	}
	if m.Err() != nil || m.BytesRead() != 20*segments[0].Length {
		t.Fatal(m.BytesRead(), m.Err())
	}
}

// TestFanIn checks that the last merge reads at most fanIn runs, among them the one in memory:
// with one run more, two are merged first.
func TestFanIn(t *testing.T) {
	for spills, want := range map[int]int64{fanIn - 1: 2 * (fanIn - 1), fanIn: 2*fanIn + 2} {
		recs := make([]rec, spills)
		for i := range recs {
			recs[i] = rec{0, "key", strings.Repeat("larger than the memory", 10)} // a run of its own
		}
		_, out := collect(t, Config{Partitions: 1, Memory: 64}, recs)
		if out.Stats.Spills != spills || out.Stats.Spilled != want {
			t.Errorf("%d runs: %+v, want %d records written", spills, out.Stats, want)
		}
	}
}

func TestRefusedRecords(t *testing.T) {
	dir := t.TempDir()
	for _, tc := range []struct {
		partition int
		value     string
		want      error
		text      string
	}{
		{0, "0123456789", ErrRecordTooLarge, "11 bytes (key 1, value 10), the limit is 10"},
		{2, "", nil, "partition 2 of 2"},
		{-1, "", nil, "partition -1 of 2"},
	} {
		c, err := NewCollector(Config{Partitions: 2, Memory: 1000, Dir: dir, File: filepath.Join(dir, "output"), MaxRecord: 10})
		if err != nil {
			t.Fatal(err)
		}
		err = c.Collect(tc.partition, []byte("k"), []byte(tc.value))
		if err == nil || tc.want != nil && !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.text) {
			t.Errorf("got %v, want %q", err, tc.text)
		}
		if again := c.Collect(0, nil, nil); again != err {
			t.Errorf("second error: %v", again)
		}
		if _, closed := c.Close(); closed != err {
			t.Errorf("error of Close: %v", closed)
		}
		c.Discard()
		c.Discard()
	}
	if leftover := files(t, dir); leftover != nil {
		t.Errorf("leftover files: %v", leftover)
	}
}

// TestDiskFull fails writes to each kind of file of a collector.
func TestDiskFull(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("needs /dev/full")
	}
	for _, full := range []string{"spill-000000", "spill-000002", "spill-000140", "output"} {
		dir := t.TempDir()
		if err := os.Symlink("/dev/full", filepath.Join(dir, full)); err != nil {
			t.Fatal(err)
		}
		c, err := NewCollector(Config{Partitions: 2, Memory: 100, Dir: dir, File: filepath.Join(dir, "output")})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 600 {
			if err = c.Collect(i%2, []byte("key"), []byte("value")); err != nil {
				break
			}
		}
		if err == nil {
			_, err = c.Close()
		}
		if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, full)+": no space left") {
			t.Errorf("%s: %v", full, err)
		}
		c.Discard()
		if leftover := files(t, dir); leftover != nil {
			t.Errorf("%s: leftover files: %v", full, leftover)
		}
	}
}

func TestBadCombiners(t *testing.T) {
	boom := errors.New("boom")
	for want, combine := range map[error]func(Records, func(k, v []byte) error) error{
		errCombineOrder: func(in Records, emit func(k, v []byte) error) error {
			for in.Next() {
				if err := emit([]byte{0xff - in.Key()[0]}, nil); err != nil {
					return err
				}
			}
			return nil
		},
		errCombineUnread: func(in Records, emit func(k, v []byte) error) error { in.Next(); return nil },
		boom:             func(Records, func(k, v []byte) error) error { return boom },
	} {
		dir := t.TempDir()
		c, err := NewCollector(Config{Partitions: 1, Memory: 1000, Dir: dir, File: filepath.Join(dir, "output"), Combine: combine})
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range []string{"a", "b", "c"} {
			if err := c.Collect(0, []byte(k), nil); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.Close(); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
		c.Discard()
		if leftover := files(t, dir); leftover != nil {
			t.Errorf("leftover files: %v", leftover)
		}
	}
}

// TestDigest checks that records have the same digest in another order, and other records
// another digest.
func TestDigest(t *testing.T) {
	recs := []rec{{0, "a", "1"}, {0, "a", "2"}, {1, "ab", ""}, {1, "a", "b"}}
	digest := func(recs ...rec) uint64 {
		_, out := collect(t, Config{Partitions: 2, Memory: 1000}, recs)
		return out.Digest
	}
	want := digest(recs...)
	if got := digest(recs[3], recs[1], recs[0], recs[2]); got != want {
		t.Errorf("other order: digest %x, want %x", got, want)
	}
	for i := range recs {
		other := slices.Clone(recs)
		other[i].partition ^= 1
		if digest(other...) == want || digest(slices.Delete(slices.Clone(recs), i, i+1)...) == want {
			t.Errorf("record %d moved or removed: same digest", i)
		}
	}
}

// TestAllocations checks that allocations are per block and partition, not per record.
func TestAllocations(t *testing.T) {
	dir := t.TempDir()
	key, value := []byte("key-0000"), make([]byte, 50)
	const n = 100_000
	var file string
	allocs := testing.AllocsPerRun(1, func() {
		c, err := NewCollector(Config{Partitions: 2, Memory: 1 << 20, Dir: dir, File: filepath.Join(dir, "output")})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Discard()
		for i := range n {
			key[4+i&3] = byte(i * 31)
			if err := c.Collect(i&1, key, value); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.Close(); err != nil {
			t.Fatal(err)
		}
		file = c.cfg.File
	})
	if allocs/n > 0.01 {
		t.Errorf("collecting allocates %v times for %d records", allocs, n)
	}
	segment := wholePartition(t, file, 0)
	allocs = testing.AllocsPerRun(1, func() {
		m, err := Merge(t.Context(), []wire.Segment{segment, segment}, MergeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		for m.Next() {
		}
		if m.Err() != nil {
			t.Fatal(m.Err())
		}
	})
	if allocs/n > 0.01 {
		t.Errorf("merging allocates %v times for %d records", allocs, n)
	}
}
