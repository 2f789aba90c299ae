package runtime

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/wire"
)

type pair struct{ key, value []byte }

// writeBinary writes records in the binary format, as a job does.
func writeBinary(t fataler, f dfs.FS, name string, records []pair) {
	t.Helper()
	o := &outputs{fs: f, dir: dfs.Dir(name), made: true, binary: true, pulse: new(pulse), files: map[string]*Output{}}
	out, err := o.open("")
	if err != nil {
		t.Fatalf("%v", err)
	}
	var buf []byte
	for _, r := range records {
		buf = BinaryRecord(buf[:0], r.key, r.value)
		if err := out.Write(buf); err != nil {
			t.Fatalf("%v", err)
		}
	}
	if err := o.close(); err != nil {
		t.Fatalf("%v", err)
	}
	if err := f.RenameFile(dfs.Join(o.dir, out.name), name); err != nil {
		t.Fatalf("%v", err)
	}
}

func readBinary(t fataler, splits []*Split) (got []pair) {
	t.Helper()
	for _, s := range splits {
		for k, v := range s.Binary() {
			got = append(got, pair{bytes.Clone(k), bytes.Clone(v)})
		}
		if s.Err() != nil {
			t.Fatalf("read: %v", s.Err())
		}
	}
	return got
}

func samePairs(a, b []pair) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !bytes.Equal(a[i].key, b[i].key) || !bytes.Equal(a[i].value, b[i].value) {
			return false
		}
	}
	return true
}

// TestBinary checks that each record is read once, for all sizes of records and splits,
// even if splits begin within blocks.
func TestBinary(t *testing.T) {
	const payload = binaryUnit
	sizes := []int{0, 1, 10, 127, 128, 1000, payload - 5, payload - 4, payload - 3, payload, payload + 1, 3 * payload}
	rapid.Check(t, func(t *rapid.T) {
		source := rand.NewChaCha8([32]byte(binary.LittleEndian.AppendUint64(make([]byte, 24), rapid.Uint64().Draw(t, "seed"))))
		random := rand.New(source)
		var want []pair
		for range rapid.IntRange(0, 15).Draw(t, "records") {
			size := rapid.SampledFrom(sizes).Draw(t, "size")
			data := make([]byte, size)
			source.Read(data)
			n := random.IntN(size + 1)
			want = append(want, pair{data[:n], data[n:]})
		}
		f := mem.New(rapid.Int64Range(1, 200_000).Draw(t, "block"))
		_ = f.MkdirAll("mem://t")
		writeBinary(t, f, "mem://t/in", want)
		in := wire.InputPlan{Format: formatBinary, Paths: []string{"mem://t/in"}}
		if got := readBinary(t, reader(t, f, in, splitSettings(math.MaxInt64), blockSize)); !samePairs(got, want) {
			t.Fatalf("got %d records of %d", len(got), len(want))
		}
		info := must(f.Stat("mem://t/in"))
		var oddSplits []*Split
		for at := int64(0); at < info.Size; {
			n := min(random.Int64N(100_000)+1, info.Size-at)
			e := splitEntry{Chunks: []Chunk{{Path: info.Name, Offset: at, Length: n, Size: info.Size}}}
			oddSplits = append(oddSplits, newSplit(context.Background(), f, e, &wire.InputPlan{Format: formatBinary}, splitSettings(1), new(pulse)))
			at += n
		}
		if got := readBinary(t, oddSplits); !samePairs(got, want) {
			t.Fatalf("odd splits: got %d records of %d", len(got), len(want))
		}
	})
}

// TestBinaryErrors checks that errors have the path and offset. Damage is not fatal,
// because another replica may be intact; a record above the limit is fatal.
func TestBinaryErrors(t *testing.T) {
	f := mem.New(1 << 20)
	must(0, f.MkdirAll("mem://t"))
	writeBinary(t, f, "mem://t/in", []pair{{[]byte("key"), make([]byte, 100)}, {nil, make([]byte, 2*binaryUnit)}})
	good := must(readAll(f, "mem://t/in", math.MaxInt32))
	in := wire.InputPlan{Format: formatBinary, Paths: []string{"mem://t/in"}}
	for name, c := range map[string]struct {
		change func(data []byte) []byte
		limit  int
		err    error
		want   string
	}{
		"whole":       {limit: 1 << 20},
		"block":       {change: func(b []byte) []byte { b[50] ^= 1; return b }, limit: 1 << 20, err: ErrCorrupt, want: "at offset 20: block of 105 bytes"},
		"index":       {change: func(b []byte) []byte { b[len(b)-30] ^= 1; return b }, limit: 1 << 20, err: ErrCorrupt, want: "index has checksum"},
		"cut":         {change: func(b []byte) []byte { return b[:len(b)-1] }, limit: 1 << 20, err: ErrCorrupt, want: "not as a segment file"},
		"other file":  {change: func([]byte) []byte { return []byte("some text, longer than an index") }, limit: 1 << 20, err: ErrCorrupt, want: "offset 0: begins with"},
		"large":       {limit: 1000, err: ErrRecordTooLarge, want: "131076 bytes at offset 137, with " + RecordMaxBytes + "=1000"},
		"small limit": {limit: 10, err: ErrRecordTooLarge, want: "103 bytes at offset 20, with " + RecordMaxBytes + "=10"},
	} {
		t.Run(name, func(t *testing.T) {
			data := bytes.Clone(good)
			if c.change != nil {
				data = c.change(data)
			}
			putFile(f, "mem://t/in", data)
			s := splitSettings(math.MaxInt64)
			s.recordMax = c.limit
			err := firstError(reader(t, f, in, s, blockSize))
			if !errors.Is(err, c.err) || isFatal(err) != errors.Is(err, ErrRecordTooLarge) {
				t.Fatalf("error %v, want %v", err, c.err)
			}
			if c.err != nil && (strings.Count(err.Error(), "mem://t/in") != 1 || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%q lacks the path or %q", err, c.want)
			}
		})
	}
}
