package avrofile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"
	"pgregory.net/rapid"

	"github.com/quernmr/quern/avrofile/container"
	"github.com/quernmr/quern/internal/failingfile"
	"github.com/quernmr/quern/internal/membound"
)

type entry struct {
	Name  string   `avro:"name"`
	N     int64    `avro:"n"`
	Words []string `avro:"words"`
}

var entrySchema = avro.MustSchemaFor[entry]()

// testSync is fixed, so that files are the same each time.
var testSync = [container.SyncSize]byte([]byte("sync-sync-sync-s"))

func write[R any](schema *avro.Schema, o Options, records []R) []byte {
	var file bytes.Buffer
	o.Sync = testSync
	w, err := NewWriter(&file, schema, o)
	for i := range records {
		err = errors.Join(err, w.Encode(&records[i]))
	}
	if err := errors.Join(err, w.Close()); err != nil {
		panic(err)
	}
	return file.Bytes()
}

func read[R any](file []byte, schema *avro.Schema, l Limits) (records []R, err error) {
	r, err := NewReader(bytes.NewReader(file), int64(len(file)), l)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for record, err := range Records[R](r, schema, 0, math.MaxInt64) {
		if err != nil {
			return records, err
		}
		records = append(records, record)
	}
	return records, nil
}

func text[R any](records []R) string { return fmt.Sprintf("%+v", records) }

func forCodecs(t *testing.T, f func(t *testing.T, codec string)) {
	for _, codec := range Codecs() {
		t.Run(codec, func(t *testing.T) { f(t, codec) })
	}
}

func drawEntries(t *rapid.T, atMost int) []entry {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) entry {
		part := rapid.StringOfN(rapid.SampledFrom([]rune("ab\x00\u00ff")), 0, 40, -1)
		return entry{part.Draw(t, "name"), rapid.Int64().Draw(t, "n"), rapid.SliceOfN(part, 0, 3).Draw(t, "words")}
	}), 0, atMost).Draw(t, "records")
}

// TestPieces: for every size of the pieces of a file, from 1 byte to the file's size, each record is read once, in
// order.
func TestPieces(t *testing.T) {
	forCodecs(t, func(t *testing.T, codec string) {
		rapid.Check(t, func(t *rapid.T) {
			want := drawEntries(t, 30)
			file := write(entrySchema, Options{Codec: codec, BlockSize: rapid.IntRange(1, 300).Draw(t, "block")}, want)
			r, err := NewReader(bytes.NewReader(file), int64(len(file)), Limits{})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			every := codec == "null" || codec == "snappy" && rapid.IntRange(0, 9).Draw(t, "every size") == 9
			for size := range int64(len(file)) {
				if every || size == int64(len(file))/3 || size == int64(len(want)) {
					checkPieces(t, r, size+1, want)
				}
			}
		})
	})
}

func checkPieces(t *rapid.T, r *Reader, size int64, want []entry) {
	var got []entry
	for from := int64(0); from < r.Size; from += size {
		for record, err := range Records[entry](r, nil, from, from+size) {
			if err != nil {
				t.Fatalf("pieces of %d: %v", size, err)
			}
			got = append(got, record)
		}
	}
	if text(got) != text(want) {
		t.Fatalf("pieces of %d of %d bytes: %d records of %d", size, r.Size, len(got), len(want))
	}
}

// TestLarge: files with blocks of the usual size, and larger ones, are read as they were written, in pieces too. The
// library's own reader finds the same records. Records that are kept do not change.
func TestLarge(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var want []entry
	for i := range 5000 {
		want = append(want, entry{fmt.Sprint("name ", i), random.Int64(), []string{strings.Repeat("w", random.IntN(300))}})
		if i%2000 == 1 {
			want[i].Name = strings.Repeat(fmt.Sprint(i), 200_000)
		}
	}
	forCodecs(t, func(t *testing.T, codec string) {
		file := write(entrySchema, Options{Codec: codec, Level: DefaultLevel, Metadata: map[string]string{"a": "1", "b": ""}}, want)
		r, err := NewReader(bytes.NewReader(file), int64(len(file)), Limits{MaxRatio: 1000})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if r.Codec != codec || string(r.Metadata["a"]) != "1" || r.Schema.String() != entrySchema.String() {
			t.Errorf("codec %s, metadata %q, schema %v", r.Codec, r.Metadata, r.Schema)
		}
		size := int64(len(file))/5 + 1
		var got []entry
		for from := int64(0); from < int64(len(file)); from += size {
			for record, err := range Records[entry](r, nil, from, from+size) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, record)
			}
		}
		if text(got) != text(want) {
			t.Errorf("%d records differ from %d", len(got), len(want))
		}
		if codec == "bzip2" {
			return
		}
		if theirs := byLibrary(t, file); text(theirs) != text(want) {
			t.Errorf("the library reads %d records", len(theirs))
		}
	})
}

func byLibrary(t *testing.T, file []byte) (records []entry) {
	r, err := ocf.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		var e entry
		if err := r.Decode(&e); err == io.EOF {
			return records
		} else if err != nil {
			t.Fatal(err)
		}
		records = append(records, e)
	}
}

// TestLongHeader: a header that is longer than the first read is read, up to a limit.
func TestLongHeader(t *testing.T) {
	want := []entry{{Name: "a", N: 1, Words: []string{}}}
	for length := container.FirstRead - 300; length < container.FirstRead+50; length++ {
		file := write(entrySchema, Options{Codec: "snappy", Metadata: map[string]string{"long": strings.Repeat("x", length), "other": "value"}}, want)
		if got, err := read[entry](file, nil, Limits{}); err != nil || text(got) != text(want) {
			t.Fatalf("metadata of %d bytes: %+v, %v", length, got, err)
		}
	}
	much := make(map[string]string)
	for i := range 40 {
		much[fmt.Sprint(i)] = strings.Repeat("x", 1<<20/2)
	}
	if _, err := read[entry](write(entrySchema, Options{Metadata: much}, want), nil, Limits{}); err == nil || !strings.Contains(err.Error(), "header in the first 16777216 bytes") {
		t.Error(err)
	}
}

// TestResolved: records are resolved to the program's schema: new fields have defaults, others are left out, and
// numbers are widened.
func TestResolved(t *testing.T) {
	type old struct {
		N     int32  `avro:"n"`
		Other string `avro:"other"`
	}
	oldSchema := avro.MustParse(`{"type": "record", "name": "entry", "fields": [{"name": "n", "type": "int"}, {"name": "other", "type": "string"}]}`)
	newSchema := avro.MustParse(`{"type": "record", "name": "entry", "fields": [{"name": "name", "type": "string", "default": "none"},
		{"name": "n", "type": "long"}, {"name": "words", "type": {"type": "array", "items": "string"}, "default": []}]}`)
	file := write(oldSchema, Options{BlockSize: 1}, []old{{7, "x"}, {-8, "y"}})
	got, err := read[entry](file, newSchema, Limits{})
	if want := "[{Name:none N:7 Words:[]} {Name:none N:-8 Words:[]}]"; err != nil || text(got) != want {
		t.Errorf("%+v, %v", got, err)
	}
	for name, schema := range map[string]*avro.Schema{"resolved": entrySchema, "not resolved": nil} {
		if _, err := read[entry](file, schema, Limits{}); err == nil || !strings.Contains(err.Error(), "Avro file at offset") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestBadFiles: other files, and lengths beyond the file or the limits, are errors that name the offset.
func TestBadFiles(t *testing.T) {
	records := []entry{{"first", 1, []string{"a", "b"}}, {"second", 2, nil}}
	plain := string(write(entrySchema, Options{}, records))
	first := strings.Index(plain, string(testSync[:])) + container.SyncSize // offset of the block
	packed := func(codec string) string {
		return string(write(entrySchema, Options{Codec: codec, Level: DefaultLevel}, records))
	}
	sync := string(testSync[:])
	for name, c := range map[string]struct {
		file   string
		offset int
		text   string
	}{
		"empty":             {"", 0, "not an Avro file: it is empty"},
		"text":              {"a line\n", 0, `not an Avro file: it begins with "a li"`},
		"short":             {"Ob", 0, `begins with "Ob"`},
		"version 2":         {"Obj\x02" + plain[4:], 0, `begins with "Obj\x02"`},
		"only magic":        {plain[:4], 0, "header in the first 4 bytes"},
		"truncated header":  {plain[:first-1], 0, "header in the first"},
		"long key":          {plain[:4] + "\x02\xfe\xff\xff\xff\x0f" + plain[6:], 0, "header in the first"},
		"negative metadata": {plain[:4] + "\x02\x01" + plain[6:], 0, "header in the first"},
		"much metadata":     {plain[:4] + "\xfe\xff\xff\xff\xff\x0f" + plain[5:], 0, "header"},
		"no schema":         {strings.Replace(plain, "avro.schema", "avro.schemb", 1), 0, "schema of the file"},
		"schema":            {strings.Replace(plain, `"record"`, `"reqord"`, 1), 0, "schema of the file"},
		"unknown codec":     {strings.Replace(packed("snappy"), "snappy", "snapqy", 1), 0, `unknown codec "snapqy"; there are null, deflate, snappy, zstandard, bzip2`},
		"xz":                {strings.Replace(packed("snappy"), "\x0csnappy", "\x04xz", 1), 0, `unknown codec "xz"; there are null`},
		"other sync":        {plain[:len(plain)-1] + "X", first, "no sync mark of the file follows"},
		"truncated block":   {plain[:len(plain)-1], first, "it ends too early, or is damaged"},
		"truncated count":   {plain + "\x80", len(plain), "it ends too early"},
		"truncated size":    {plain + "\x02", len(plain), "it ends too early"},
		"long number":       {plain[:first] + strings.Repeat("\xff", 20), first, "a number of more than 10 bytes"},
		"negative count":    {plain[:first] + "\x01" + plain[first+1:], first, "a block of -1 records"},
		"negative size":     {plain[:first+1] + "\x01" + plain[first+2:], first, "in -1 bytes"},
		"block beyond file": {plain[:first+1] + "\xfe\xff\xff\xff\xff\xff\x01" + plain[first+2:], first, "but the file has only"},
		"fewer records":     {plain[:first] + "\x02" + plain[first+1:], first, "bytes more than its 1 records"},
		"more records":      {plain[:first] + "\x06" + plain[first+1:], first, "record 2 of the block"},
		"many records":      {plain[:first] + "\xfe\xff\xff\xff\x0f" + plain[first+1:], first, "records in "},
		"string beyond":     {plain[:first] + "\x02\x08\xfe\xff\xff\x7f" + sync, first, "record 0 of the block"},
		"array beyond":      {plain[:first] + "\x02\x10\x00\x00\xfe\xff\xff\xff\xff\x0f" + sync, first, "record 0 of the block"},
		"snappy checksum":   {packed("snappy")[:len(packed("snappy"))-container.SyncSize-1] + "\xff" + sync, len(packed("snappy")), "CRC"},
		"deflate":           {packed("deflate")[:len(packed("deflate"))-container.SyncSize-4] + "\xff\xff\xff\xff" + sync, -1, "deflate block of"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read[entry]([]byte(c.file), nil, Limits{})
			e, ok := errors.AsType[*Error](err)
			offset := c.offset
			if name == "snappy checksum" {
				offset = strings.Index(c.file, sync) + container.SyncSize
			}
			if !ok || offset >= 0 && e.Offset != int64(offset) || e.Offset > int64(len(c.file)) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v, want offset %d and %q", err, offset, c.text)
			}
		})
	}
}

// TestLimits: blocks that become too large, records above the limit and many records without bytes are refused, in
// memory near the limit.
func TestLimits(t *testing.T) {
	zeros := []string{strings.Repeat("\x00", 80<<20)}
	bytesSchema := avro.MustParse(`"string"`)
	for _, codec := range []string{"deflate", "zstandard"} {
		bomb := write(bytesSchema, Options{Codec: codec, Level: DefaultLevel}, zeros)
		for ratio, want := range map[int64]string{10: codec + " block of ", 0: "at most 67108864 are allowed"} {
			membound.Bound{Free: 1 << 30}.Check(t, 0, func() {
				if _, err := read[string](bomb, nil, Limits{MaxRatio: ratio}); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s with ratio %d: %v", codec, ratio, err)
				}
			})
		}
	}
	if got, err := read[string](write(bytesSchema, Options{Codec: "deflate"}, []string{zeros[0][:1000]}), nil, Limits{MaxRecord: 1001}); err == nil || !strings.Contains(err.Error(), "has 1002 bytes") {
		t.Errorf("a large record: %d, %v", len(got), err)
	}
	claim := write(bytesSchema, Options{Codec: "snappy"}, []string{"ab"})
	at := bytes.Index(claim, testSync[:]) + container.SyncSize
	claim = slices.Concat(claim[:at+1], []byte("\x10\xff\xff\xff\x1f\x00\x00\x00\x00"), testSync[:]) // of 64 MiB, in 8 bytes
	membound.Bound{Free: 1 << 20}.Check(t, len(claim), func() {
		if _, err := read[string](claim, nil, Limits{}); err == nil || !strings.Contains(err.Error(), "snappy block of 8 bytes") {
			t.Errorf("a claim: %v", err)
		}
	})
	none := write(avro.MustParse(`"null"`), Options{}, make([]any, 10_000))
	if got, err := read[any](none, nil, Limits{}); err != nil || len(got) != 10_000 {
		t.Errorf("nulls: %d, %v", len(got), err)
	}
}

// TestDamage: 200 damages of each codec's file give an error with an offset, or the right records. Without checksums
// only a record's content may differ.
func TestDamage(t *testing.T) {
	var want []entry
	for i := range 60 {
		want = append(want, entry{fmt.Sprint("name", i), int64(i * i * i), strings.Fields(strings.Repeat(fmt.Sprint("word", i, " "), i%7))})
	}
	forCodecs(t, func(t *testing.T, codec string) {
		file := write(entrySchema, Options{Codec: codec, Level: DefaultLevel, BlockSize: 400}, want)
		header := int64(bytes.Index(file, testSync[:])) + container.SyncSize
		checksums := codec != "null" && codec != "deflate"
		random := rand.New(rand.NewPCG(5, 6))
		failed := 0
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
			got, err := read[entry](bad, nil, Limits{})
			if e, ok := errors.AsType[*Error](err); err != nil && (!ok || e.Offset < 0 || e.Offset > int64(len(bad))) {
				t.Fatalf("damage %d: error without an offset in the file: %v", i, err)
			}
			right := len(got) <= len(want) && text(got) == text(want[:len(got)])
			if err != nil {
				failed++
			} else if right = right && (len(got) == len(want) || len(bad) < len(file)); !right && len(got) != len(want) {
				t.Fatalf("damage %d: %d records without an error, want %d", i, len(got), len(want))
			}
			if !right && checksums {
				t.Fatalf("damage %d: wrong records: %v", i, err)
			}
		}
		if failed < 100 {
			t.Errorf("only %d of 200 damages gave errors", failed)
		}
	})
}

// TestTruncated: a file that is cut anywhere but between blocks is refused, after the records of whole blocks.
func TestTruncated(t *testing.T) {
	want := []entry{{"a", 1, []string{"x"}}, {"b", -2, []string{"y"}}, {"c", 3, []string{}}}
	forCodecs(t, func(t *testing.T, codec string) {
		file := write(entrySchema, Options{Codec: codec, Level: DefaultLevel, BlockSize: 1}, want)
		whole := 0
		for n := range len(file) {
			got, err := read[entry](file[:n], nil, Limits{})
			_, ok := errors.AsType[*Error](err)
			if bytes.HasSuffix(file[:n], testSync[:]) {
				whole++
				ok = err == nil && len(got) == whole-1
			}
			if !ok || text(got) != text(want[:len(got)]) {
				t.Errorf("%d of %d bytes: %d records, %v", n, len(file), len(got), err)
			}
		}
		if whole != 3 {
			t.Errorf("%d ends of blocks", whole)
		}
	})
}

// TestDamagedHeader: a changed bit in a header gives an error, or the right records, unless it changes a name in
// the schema that the program does not use.
func TestDamagedHeader(t *testing.T) {
	want := []entry{{"a", 1, []string{"x"}}, {"b", -2, []string{"y", "z"}}}
	file := write(entrySchema, Options{Codec: "snappy"}, want)
	for bit := range 8 * (bytes.Index(file, testSync[:]) + container.SyncSize) {
		bad := bytes.Clone(file)
		bad[bit/8] ^= 1 << (bit % 8)
		got, err := read[entry](bad, nil, Limits{})
		if _, ok := errors.AsType[*Error](err); !ok && text(got) != text(want) {
			t.Errorf("bit %d: %v, %v", bit, text(got), err)
		}
	}
}

// TestReadError: an error of reading the file is returned as it is.
func TestReadError(t *testing.T) {
	broken := errors.New("disk")
	random := rand.New(rand.NewPCG(1, 1))
	large := make([]byte, 3*container.ReadSize)
	for i := range large {
		large[i] = byte('a' + random.IntN(26))
	}
	file := write(entrySchema, Options{}, []entry{{string(large), 1, nil}, {string(large), 2, nil}})
	for _, good := range []int64{0, container.FirstRead, 2 * container.ReadSize} {
		for _, from := range []int64{0, 1000} {
			r, err := NewReader(failingfile.File{ReaderAt: bytes.NewReader(file), Good: good, Err: broken}, int64(len(file)), Limits{})
			if good > 0 && err == nil {
				for _, err = range Records[entry](r, nil, from, math.MaxInt64) {
				}
			}
			if err != broken {
				t.Errorf("after %d bytes, from %d: %v", good, from, err)
			}
		}
	}
}

// FuzzReader: no file makes a reader panic, or take memory out of proportion.
func FuzzReader(f *testing.F) {
	for _, codec := range []string{"null", "deflate", "snappy"} {
		f.Add(write(entrySchema, Options{Codec: codec, Level: DefaultLevel, BlockSize: 20}, []entry{{"a", 1, []string{"x"}}, {"b", -2, nil}}))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		if bytes.Contains(file, []byte("zstandard")) || bytes.Contains(file, []byte("bzip2")) {
			return // their memory is tested in package compression
		}
		membound.Bound{Free: 8 << 20, PerByte: 16 << 10}.Check(t, len(file), func() {
			r, err := NewReader(bytes.NewReader(file), int64(len(file)), Limits{MaxRecord: 1 << 20, MaxRatio: 1000})
			if err != nil {
				if _, ok := errors.AsType[*Error](err); !ok {
					t.Errorf("error without offset: %v", err)
				}
				return
			}
			defer r.Close()
			n := 0
			for _, err := range Records[any](r, nil, 0, math.MaxInt64) {
				if _, ok := errors.AsType[*Error](err); err != nil && !ok {
					t.Errorf("error without offset: %v", err)
				}
				if n++; n > 1000 {
					break
				}
			}
		})
	})
}
