package sequencefile

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/compression"
	"github.com/quernmr/quern/internal/failingfile"
	"github.com/quernmr/quern/internal/membound"
	"github.com/quernmr/quern/sequencefile/writable"
)

type pair struct{ key, value string }

// kinds are all kinds of files.
func kinds() map[string]Header {
	all := map[string]Header{"none": {}}
	for _, codec := range compression.Codecs() {
		all["record "+codec.Name] = Header{Compression: PerRecord, Codec: codec}
		all["block "+codec.Name] = Header{Compression: Block, Codec: codec}
	}
	for name, h := range all {
		h.KeyClass, h.ValueClass = "my.Key", writable.Text.Name
		h.Metadata = map[string]string{"b": "two", "a": "", "ü": strings.Repeat("x", 200)}
		all[name] = h
	}
	return all
}

func forKinds(t *testing.T, f func(t *testing.T, h Header)) {
	all := kinds()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) { f(t, all[name]) })
	}
}

// testSync is fixed, so that files are the same each time.
var testSync = [syncSize]byte([]byte("sync-sync-sync-s"))

func write(o Options, records []pair) []byte {
	var file bytes.Buffer
	o.Sync = testSync
	w, err := NewWriter(&file, o)
	for _, r := range records {
		err = errors.Join(err, w.Append([]byte(r.key), []byte(r.value)))
	}
	if err := errors.Join(err, w.Close()); err != nil {
		panic(err)
	}
	return file.Bytes()
}

func read(file []byte, from, to int64) (records []pair, err error) {
	r, err := NewReader(bytes.NewReader(file), int64(len(file)), Limits{})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for record, err := range r.Records(from, to) {
		if err != nil {
			return records, err
		}
		records = append(records, pair{string(record.Key), string(record.Value)})
	}
	return records, nil
}

func drawPairs(t *rapid.T, atMost int) []pair {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) pair {
		part := rapid.StringOfN(rapid.SampledFrom([]rune("ab\x00\xff")), 0, 40, -1)
		return pair{part.Draw(t, "key"), part.Draw(t, "value")}
	}), 0, atMost).Draw(t, "records")
}

// TestPieces: for every size of the pieces of a file, from 1 byte to the file's size, each record is read once, in
// order. Hadoop's distances of sync marks are too large to test this, so they are small here.
func TestPieces(t *testing.T) {
	forKinds(t, func(t *testing.T, h Header) {
		rapid.Check(t, func(t *rapid.T) {
			want := drawPairs(t, 30)
			o := Options{Header: h, SyncInterval: rapid.IntRange(1, 200).Draw(t, "interval"), BlockSize: rapid.IntRange(1, 200).Draw(t, "block")}
			if h.Codec != nil && h.Codec.Name == "bzip2" {
				o.BlockSize += 300 // few blocks, which take time
			}
			file := write(o, want)
			r, err := NewReader(bytes.NewReader(file), int64(len(file)), Limits{})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			every := h.Codec == nil || h.Codec.Name == "deflate" && rapid.IntRange(0, 9).Draw(t, "every size") == 9
			for size := range int64(len(file)) {
				if every || size == int64(len(file))/3 || size == int64(len(want)) {
					checkPieces(t, r, size+1, want)
				}
			}
		})
	})
}

func checkPieces(t *rapid.T, r *Reader, size int64, want []pair) {
	var got []pair
	for from := int64(0); from < r.cursor.size; from += size {
		for record, err := range r.Records(from, from+size) {
			if err != nil {
				t.Fatalf("pieces of %d: %v", size, err)
			}
			got = append(got, pair{string(record.Key), string(record.Value)})
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("pieces of %d of %d bytes: %d records of %d", size, r.cursor.size, len(got), len(want))
	}
}

// TestLarge: a file with Hadoop's distances, of records of all sizes, is read as it was written. Records that are
// kept do not change.
func TestLarge(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var want []pair
	for i := range 20_000 {
		want = append(want, pair{fmt.Sprint("key ", i), strings.Repeat("v", random.IntN(300))})
		if i%5000 == 1 {
			want[i].value = strings.Repeat(fmt.Sprint(i), 200_000)
		}
	}
	for _, name := range []string{"none", "record snappy", "block deflate", "block lz4"} {
		h := kinds()[name]
		file := write(Options{Header: h}, want)
		for _, pieces := range []int64{1, 3, 10} {
			var got []pair
			var kept []Record
			size := int64(len(file))/pieces + 1
			for from := int64(0); from < int64(len(file)); from += size {
				r, err := NewReader(bytes.NewReader(file), int64(len(file)), Limits{})
				if err != nil {
					t.Fatal(err)
				}
				for record, err := range r.Records(from, from+size) {
					if err != nil {
						t.Fatal(err)
					}
					kept = append(kept, record)
				}
				r.Close()
			}
			for _, record := range kept {
				got = append(got, pair{string(record.Key), string(record.Value)})
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s in %d pieces: %d records of %d", name, pieces, len(got), len(want))
			}
		}
	}
}

// TestHeader: what a header has is read as it was written.
func TestHeader(t *testing.T) {
	forKinds(t, func(t *testing.T, h Header) {
		file := write(Options{Header: h}, []pair{{"k", "v"}})
		r, err := NewReader(bytes.NewReader(file), int64(len(file)), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Header; got.KeyClass != h.KeyClass || got.ValueClass != h.ValueClass || got.Compression != h.Compression ||
			got.Codec != h.Codec || !maps.Equal(got.Metadata, h.Metadata) || r.Sync != testSync {
			t.Errorf("read %+v, want %+v", got, h)
		}
	})
	a, b := new(bytes.Buffer), new(bytes.Buffer)
	for _, file := range []*bytes.Buffer{a, b} {
		if w, err := NewWriter(file, Options{}); err != nil || w.Close() != nil || w.Append(nil, nil) == nil {
			t.Errorf("an empty file: %v", err)
		}
	}
	if bytes.Equal(a.Bytes()[a.Len()-syncSize:], b.Bytes()[b.Len()-syncSize:]) {
		t.Error("two files have the same sync mark")
	}
	if _, err := NewWriter(a, Options{Header: Header{Compression: Block}}); err == nil {
		t.Error("compression without a codec")
	}
	for _, name := range []string{"NONE", "RECORD", "BLOCK"} {
		if c, err := ParseCompression(name); err != nil || c.String() != name {
			t.Errorf("%s: %v, %v", name, c, err)
		}
	}
	if _, err := ParseCompression("block"); err == nil {
		t.Error("another name is accepted")
	}
}

// TestOlderVersions: the headers of versions 4 and 5 have no metadata, and 4 has no codec.
func TestOlderVersions(t *testing.T) {
	codec, _ := compression.Named("DefaultCodec")
	h := Header{KeyClass: "k", ValueClass: "v", Compression: Block, Codec: codec}
	want := []pair{{"a", "1"}, {"b", "2"}}
	file := write(Options{Header: h}, want)
	head := len(magic) + 1 + 2*2 + 2
	metadata := bytes.Index(file, []byte("\x00\x00\x00\x00"+string(testSync[:])))
	five := slices.Concat([]byte("SEQ\x05"), file[4:metadata], file[metadata+4:])
	four := slices.Concat([]byte("SEQ\x04"), file[4:head], file[metadata+4:])
	for _, older := range [][]byte{five, four} {
		if got, err := read(older, 0, math.MaxInt64); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v", older[:4], got, err)
		}
	}
}

// TestBadFiles: other files, and lengths beyond the file or the limits, are errors that name the offset.
func TestBadFiles(t *testing.T) {
	plain := string(write(Options{Header: Header{KeyClass: "k", ValueClass: "v"}}, []pair{{"key", "value"}}))
	codec, _ := compression.Named("lz4")
	block := string(write(Options{Header: Header{KeyClass: "k", ValueClass: "v", Compression: Block, Codec: codec}}, []pair{{"key", "value"}, {"key2", "value2"}}))
	first := len(plain) - 8 - 8 // offset of the record
	firstBlock := strings.LastIndex(block, "\xff\xff\xff\xff")
	count := firstBlock + markSize
	for name, c := range map[string]struct {
		file   string
		kind   error
		offset int
		text   string
	}{
		"empty":               {"", ErrFormat, 0, "empty"},
		"text":                {"a line\n", ErrFormat, 0, `begins with "a li"`},
		"short":               {"SE", ErrTruncated, 0, ""},
		"version 3":           {"SEQ\x03" + plain[4:], ErrFormat, 4, "version is 3, not 4 to 6"},
		"version 7":           {"SEQ\x07" + plain[4:], ErrFormat, 4, "version is 7"},
		"unknown codec":       {strings.Replace(block, "Lz4Codec", "My4Codec", 1), ErrFormat, -1, "org.apache.hadoop.io.compress.My4Codec\"; there are"},
		"LZO":                 {strings.Replace(block, "Lz4Codec", "LzoCodec", 1), ErrFormat, -1, "GPL"},
		"long class":          {"SEQ\x06\x8a\x7f\xff\xff\xff\xff\xff" + plain[5:], ErrDamaged, -1, "at most"},
		"much metadata":       {plain[:first-20] + "\x7f\xff\xff\xff" + plain[first-16:], ErrDamaged, -1, "2147483647 metadata"},
		"other sync":          {block[:firstBlock+4] + "X" + block[firstBlock+5:], ErrDamaged, firstBlock, "sync mark"},
		"no sync":             {block[:firstBlock] + "\x00" + block[firstBlock+1:], ErrDamaged, firstBlock, "no sync mark begins"},
		"fewer records":       {block[:count] + "\x01" + block[count+1:], ErrDamaged, firstBlock, "more lengths of keys than records"},
		"more records":        {block[:count] + "\x03" + block[count+1:], ErrDamaged, firstBlock, "lengths of keys: they end"},
		"negative count":      {block[:count] + "\xff" + block[count+1:], ErrDamaged, firstBlock, "length of -1"},
		"long part":           {block[:count+1] + "\x8c\x7f\xff\xff\xff" + block[count+1:], ErrDamaged, firstBlock, "at most"},
		"negative length":     {plain[:first] + "\xff\xff\xff\xfe" + plain[first+4:], ErrDamaged, first, "record of -2 bytes"},
		"key beyond record":   {plain[:first+4] + "\x00\x00\x00\x09" + plain[first+8:], ErrDamaged, first, "key of 9 bytes"},
		"record beyond file":  {plain[:first] + "\x00\x00\x00\x09" + plain[first+4:], ErrTruncated, first, ""},
		"record beyond limit": {plain[:first] + "\x04\x00\x00\x01\x00\x00\x00\x01" + strings.Repeat("x", 64<<20+1), ErrTooLarge, first, "at most 67108864"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read([]byte(c.file), 0, math.MaxInt64)
			e, ok := errors.AsType[*Error](err)
			if !ok || !errors.Is(err, c.kind) || c.offset >= 0 && e.Offset != int64(c.offset) || e.Offset > int64(len(c.file)) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v, want %v at offset %d with %q", err, c.kind, c.offset, c.text)
			}
		})
	}
}

// TestDamage: 200 damages of each kind of file give an error with an offset, or the right records. Without
// checksums only a changed key or value may go unnoticed.
func TestDamage(t *testing.T) {
	var want []pair
	for i := range 30 {
		want = append(want, pair{fmt.Sprint("key", i), strings.Repeat(fmt.Sprint("value", i), i%7)})
	}
	forKinds(t, func(t *testing.T, h Header) {
		h.Metadata = nil
		file := write(Options{Header: h, SyncInterval: 300, BlockSize: 400}, want)
		header := int64(bytes.Index(file, testSync[:])) + syncSize
		random := rand.New(rand.NewPCG(5, 6))
		failed := 0
		checksums := h.Compression == Block && h.Codec.Name != "lz4" && h.Codec.Name != "snappy"
		for i := range 200 {
			bad := bytes.Clone(file)
			at := header + random.Int64N(int64(len(file))-header)
			switch random.IntN(4) {
			case 0:
				bad[at] ^= 1 << random.IntN(8)
			case 1:
				bad = bad[:at]
			case 2:
				bad = append(bad[:at], bad[min(at+1+random.Int64N(40), int64(len(bad))):]...)
			case 3:
				copy(bad[at:], make([]byte, 8))
			}
			got, err := read(bad, 0, math.MaxInt64)
			if e, ok := errors.AsType[*Error](err); err != nil && (!ok || e.Offset < 0 || e.Offset > int64(len(bad))) {
				t.Fatalf("damage %d: error without an offset in the file: %v", i, err)
			}
			if err != nil {
				failed++
			} else if prefix := len(bad) < len(file) && len(got) < len(want) && slices.Equal(got, want[:len(got)]); !slices.Equal(got, want) && !prefix && checksums {
				t.Fatalf("damage %d: wrong records without an error: %d", i, len(got))
			}
		}
		if failed < 50 {
			t.Errorf("only %d of 200 damages gave errors", failed)
		}
	})
}

// TestReadError: an error of reading the file is returned as it is.
func TestReadError(t *testing.T) {
	forKinds(t, func(t *testing.T, h Header) {
		broken := errors.New("disk")
		random := rand.New(rand.NewPCG(1, 1))
		large := make([]byte, 2*readSize)
		for i := range large {
			large[i] = byte(random.Uint32())
		}
		file := write(Options{Header: h}, []pair{{"a", string(large)}})
		for _, good := range []int{0, readSize} {
			r, err := NewReader(failingfile.File{ReaderAt: bytes.NewReader(file), Good: int64(good), Err: broken}, int64(len(file)), Limits{})
			if good > 0 && err == nil {
				for _, err = range r.Records(0, math.MaxInt64) {
				}
			}
			if err != broken {
				t.Errorf("after %d bytes: %v", good, err)
			}
		}
	})
}

// FuzzReader: no file makes a reader panic, or take memory out of proportion.
func FuzzReader(f *testing.F) {
	for _, h := range kinds() {
		if h.Codec == nil || h.Codec.Name == "deflate" || h.Codec.Name == "lz4" {
			f.Add(write(Options{Header: h, SyncInterval: 30, BlockSize: 20}, []pair{{"key", "value"}, {"", "x"}, {"y", ""}}))
		}
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		if bytes.Contains(file, []byte("ZStandardCodec")) || bytes.Contains(file, []byte("BZip2Codec")) {
			return // their memory is tested in package compression
		}
		membound.Bound{Free: 4 << 20, PerByte: 4 << 10}.Check(t, len(file), func() {
			r, err := NewReader(bytes.NewReader(file), int64(len(file)), Limits{MaxRecord: 1 << 20, MaxRatio: 1000})
			if err != nil {
				if _, ok := errors.AsType[*Error](err); !ok {
					t.Errorf("error without offset: %v", err)
				}
				return
			}
			defer r.Close()
			n := 0
			for record, err := range r.Records(0, math.MaxInt64) {
				if err == nil && len(record.Key)+len(record.Value) > 1<<20 {
					t.Errorf("a record of %d bytes", len(record.Key)+len(record.Value))
				}
				if n++; n > 1000 {
					break
				}
			}
		})
	})
}

// BenchmarkRead measures the reading of records of a block-compressed file.
func BenchmarkRead(b *testing.B) {
	codec, err := compression.Named("DefaultCodec")
	if err != nil {
		b.Fatal(err)
	}
	var file bytes.Buffer
	w, err := NewWriter(&file, Options{Header: Header{KeyClass: "k", ValueClass: "v", Compression: Block, Codec: codec}})
	size := 0
	for i := range 200_000 {
		value := fmt.Sprintf("the value of record %d, with some more words in it", i*i%9973)
		size += len(value) + 8
		if err := w.Append(make([]byte, 8), []byte(value)); err != nil {
			b.Fatal(err)
		}
	}
	if err := errors.Join(err, w.Close()); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(size))
	for b.Loop() {
		r, err := NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()), Limits{})
		if err != nil {
			b.Fatal(err)
		}
		for _, err := range r.Records(0, math.MaxInt64) {
			if err != nil {
				b.Fatal(err)
			}
		}
		r.Close()
	}
}
