package parquetfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"pgregory.net/rapid"

	"github.com/quernmr/quern/internal/failingfile"
	"github.com/quernmr/quern/internal/membound"
)

// sample has columns of each physical type and encoding.
type sample struct {
	B     bool
	I     int32   `parquet:",delta"`
	L     int64   `parquet:",optional"`
	F     float32 `parquet:",split"`
	D     float64 `parquet:",split,optional"`
	S     string  `parquet:",delta"`
	Dict  string  `parquet:",dict,optional"`
	Long  []byte
	Other [16]byte
}

func samples(n int) (all []sample) {
	for i := range n {
		all = append(all, sample{i%3 > 0, int32(i * i), int64(i % 3), float32(i), float64(i % 4), fmt.Sprint("value ", i), fmt.Sprint("d", i%5)[:i%2*2], bytes.Repeat([]byte{1}, i%9), [16]byte{byte(i)}})
	}
	return all
}

func written(t testing.TB, n int, options ...parquet.WriterOption) []byte {
	t.Helper()
	return writtenRows(t, samples(n), n/2, options...)
}

// printed returns the content of a file as text, a line for each row.
func printed(file []byte, limits Limits) (string, error) {
	f, err := Open(bytes.NewReader(file), int64(len(file)), limits)
	if err != nil {
		return "", err
	}
	f.Brotli = func(packed io.Reader) io.Reader { return brotli.NewReader(packed) }
	var all strings.Builder
	for g := range f.Groups {
		columns := make([][]string, len(f.Columns))
		for c, info := range f.Columns {
			switch info.Type.Physical {
			case format.Boolean:
				columns[c], err = column[bool](f, g, c)
			case format.Int32:
				columns[c], err = column[int32](f, g, c)
			case format.Int64:
				columns[c], err = column[int64](f, g, c)
			case format.Float:
				columns[c], err = column[float32](f, g, c)
			case format.Double:
				columns[c], err = column[float64](f, g, c)
			default:
				columns[c], err = column[string](f, g, c)
			}
			if err != nil {
				return "", err
			}
		}
		for i := range columns[0] {
			for c := range columns {
				all.WriteString(columns[c][i])
				all.WriteByte("|\n"[(c+1)/len(columns)])
			}
		}
	}
	return all.String(), nil
}

// column prints values, in steps of different lengths.
func column[V Value](f *File, group, index int) (all []string, err error) {
	c, err := ReadColumn[V](f, group, index)
	if err != nil {
		return nil, err
	}
	for left, step := f.Groups[group].Rows, int64(1); left > 0; step = step*3%101 + 1 {
		n := min(step, left)
		values, null := make([]V, n), make([]bool, n)
		nulls, err := c.Next(values, null)
		if err != nil {
			return nil, err
		}
		for i, v := range values {
			if nulls && null[i] {
				all = append(all, "NULL")
				continue
			}
			all = append(all, fmt.Sprint(v))
		}
		left -= n
	}
	return all, nil
}

func want(n int) string {
	var all strings.Builder
	for _, s := range samples(n) {
		or := func(zero bool, v any) any {
			if zero {
				return "NULL"
			}
			return v
		}
		fmt.Fprintf(&all, "%v|%v|%v|%v|%v|%v|%v|%s|%s\n", s.B, s.I, or(s.L == 0, s.L), s.F, or(s.D == 0, s.D), s.S, or(s.Dict == "", s.Dict), s.Long, s.Other[:])
	}
	return all.String()
}

// variants are files of each codec and version of pages.
func variants(t testing.TB, n int) map[string][]byte {
	all := make(map[string][]byte)
	for name, codec := range map[string]parquet.WriterOption{
		"none": parquet.Compression(&parquet.Uncompressed), "snappy": parquet.Compression(&parquet.Snappy), "gzip": parquet.Compression(&parquet.Gzip),
		"zstd": parquet.Compression(&parquet.Zstd), "lz4": parquet.Compression(&parquet.Lz4Raw), "brotli": parquet.Compression(&parquet.Brotli),
	} {
		for version := 1; version <= 2; version++ {
			all[fmt.Sprint(name, version)] = written(t, n, codec, parquet.DataPageVersion(version), parquet.PageBufferSize(1000))
		}
	}
	return all
}

func TestRead(t *testing.T) {
	for name, file := range variants(t, 500) {
		if got, err := printed(file, Limits{}); err != nil || got != want(500) {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
}

// TestDamage: a damaged file gives an error with its place, or the right rows, and takes little memory.
func TestDamage(t *testing.T) {
	files, right := variants(t, 60), want(60)
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	refused := 0
	for seed := range 2000 {
		random := rand.New(rand.NewPCG(7, uint64(seed)))
		name := names[seed%len(names)]
		file := slices.Clone(files[name])
		what := damage(random, &file)
		var got string
		var err error
		bound.Check(t, len(file), func() { got, err = printed(file, Limits{Free: 1 << 20}) })
		var place *Error
		switch {
		case err == nil && got != right:
			t.Errorf("%s, seed %d, %s: wrong rows\n%s", name, seed, what, got)
		case err != nil && !errors.As(err, &place):
			t.Errorf("%s, seed %d, %s: %v has no place", name, seed, what, err)
		case err != nil:
			refused++
		}
	}
	if refused < 1500 {
		t.Errorf("only %d of 2000 damaged files were refused", refused)
	}
}

// damage changes a file, and says how.
func damage(random *rand.Rand, file *[]byte) string {
	b := *file
	switch random.IntN(5) {
	case 0:
		n := random.IntN(len(b))
		*file = b[:n]
		return fmt.Sprint("cut to ", n)
	case 1:
		at, n := random.IntN(len(b)), random.IntN(20)+1
		*file = slices.Delete(b, at, min(at+n, len(b)))
		return fmt.Sprint(n, " bytes missing at ", at)
	case 2: // in the pages
		at := 4 + random.IntN(len(b)-footerSize(b)-12)
		b[at] ^= 1 << random.IntN(8)
		return fmt.Sprint("bit flipped at ", at)
	case 3: // anywhere
		at := random.IntN(len(b))
		b[at] ^= 1 << random.IntN(8)
		return fmt.Sprint("bit flipped at ", at)
	}
	at := random.IntN(len(b) - 8)
	binary.LittleEndian.PutUint64(b[at:], random.Uint64())
	return fmt.Sprint("noise at ", at)
}

func footerSize(file []byte) int {
	return int(binary.LittleEndian.Uint32(file[len(file)-8:]))
}

var bound = membound.Bound{Free: 8 << 20, PerByte: 2000}

func FuzzOpen(f *testing.F) {
	for _, file := range variants(f, 20) {
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		bound.Check(t, len(file), func() {
			if _, err := printed(file, Limits{Free: 1 << 16, MaxRatio: 10}); err != nil && !errors.As(err, new(*Error)) {
				t.Errorf("%v has no place", err)
			}
		})
	})
}

// TestRefused: each kind of bad file has words that help.
func TestRefused(t *testing.T) {
	file := written(t, 20, parquet.DataPageVersion(1))
	lies := func(change func(*format.FileMetaData)) []byte { return withFooter(t, file, change) }
	encrypted := slices.Concat(file[:len(file)-4], []byte("PARE"))
	for name, c := range map[string]struct {
		file []byte
		word string
		of   error
	}{
		"empty":          {nil, "it has 0 bytes", ErrFormat},
		"text":           {[]byte("a line of text\n"), `begins with "a li"`, ErrFormat},
		"truncated":      {file[:len(file)-100], "its end is missing", ErrTruncated},
		"encrypted":      {encrypted, "is encrypted", ErrUnsupported},
		"footer length":  {slices.Concat(file[:len(file)-8], []byte{255, 255, 255, 0}, []byte(magic)), "the footer's length is 16777215", ErrDamaged},
		"rows":           {lies(func(m *format.FileMetaData) { m.NumRows++ }), "the file has 21 rows", ErrDamaged},
		"negative rows":  {lies(func(m *format.FileMetaData) { m.RowGroups[0].NumRows = -1 }), "it has -1 rows", ErrDamaged},
		"columns":        {lies(func(m *format.FileMetaData) { m.RowGroups[0].Columns = m.RowGroups[0].Columns[:3] }), "it has 3 columns", ErrDamaged},
		"offset":         {lies(func(m *format.FileMetaData) { m.RowGroups[1].Columns[1].MetaData.DataPageOffset = 1 << 40 }), "row group 1: column I: damaged: its data are", ErrDamaged},
		"size":           {lies(func(m *format.FileMetaData) { m.RowGroups[0].Columns[1].MetaData.TotalCompressedSize = 1 << 62 }), "column I: damaged: its data are 4611686018427387904 bytes", ErrDamaged},
		"values":         {lies(func(m *format.FileMetaData) { m.RowGroups[0].Columns[1].MetaData.NumValues = 1 << 62 }), "it has 4611686018427387904 values in 10 rows", ErrDamaged},
		"other type":     {lies(func(m *format.FileMetaData) { m.RowGroups[0].Columns[1].MetaData.Type = format.Double }), "type DOUBLE, the schema has type INT32", ErrDamaged},
		"schema":         {lies(func(m *format.FileMetaData) { m.Schema[0].NumChildren.V = 99 }), "has 99 elements", ErrDamaged},
		"no schema":      {lies(func(m *format.FileMetaData) { m.Schema = m.Schema[:0] }), "no root", ErrDamaged},
		"codec LZO":      {lies(func(m *format.FileMetaData) { m.RowGroups[0].Columns[0].MetaData.Codec = format.LZO }), "codec LZO; there are UNCOMPRESSED, SNAPPY, GZIP", ErrUnsupported},
		"codec LZ4":      {lies(func(m *format.FileMetaData) { m.RowGroups[0].Columns[0].MetaData.Codec = format.Lz4 }), "codec LZ4; there are", ErrUnsupported},
		"other file":     {lies(func(m *format.FileMetaData) { m.RowGroups[0].Columns[0].FilePath = "x" }), `in another file, "x"`, ErrUnsupported},
		"encrypted part": {lies(func(m *format.FileMetaData) { m.RowGroups[0].Columns[0].EncryptedColumnMetadata = []byte("x") }), "column B: not supported: it is encrypted", ErrUnsupported},
		"bomb":           {lies(func(m *format.FileMetaData) { m.RowGroups[0].Columns[1].MetaData.Codec = format.Gzip }), "GZIP", ErrDamaged},
	} {
		_, err := printed(c.file, Limits{})
		if err == nil || !strings.Contains(err.Error(), c.word) || !errors.Is(err, c.of) || !errors.As(err, new(*Error)) {
			t.Errorf("%s: %v, want %q", name, err, c.word)
		}
	}
	limits := Limits{Free: 1000, MaxRatio: 10}.orDefault()
	for _, c := range []struct {
		codec        format.CompressionCodec
		stored, size int64
		ok           bool
	}{{format.Snappy, 10, 200, true}, {format.Snappy, 10, 400, false}, {format.Zstd, 100, 1000, true}, {format.Zstd, 99, 1001, false}, {format.Zstd, 0, 1000, true}} {
		if err := limits.checkSize(c.codec, c.stored, c.size); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestTruncated: a file that is cut anywhere is refused.
func TestTruncated(t *testing.T) {
	file := written(t, 20)
	for n := range len(file) {
		if _, err := printed(file[:n], Limits{}); !errors.As(err, new(*Error)) {
			t.Errorf("%d of %d bytes: %v", n, len(file), err)
		}
	}
}

// TestReadError: an error of reading the file is returned as it is.
func TestReadError(t *testing.T) {
	broken := errors.New("disk")
	file := written(t, 2000)
	size := int64(len(file))
	for _, good := range []int64{0, 4} {
		if _, err := Open(failingfile.File{ReaderAt: bytes.NewReader(file), Good: good, Err: broken}, size, Limits{}); err != broken {
			t.Errorf("after %d bytes: %v", good, err)
		}
	}
	f, err := Open(bytes.NewReader(file), size, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	f.r = failingfile.File{ReaderAt: f.r, Good: 4, Err: broken}
	if _, err := column[bool](f, 0, 0); err != broken {
		t.Error(err)
	}
	rows, err := f.ReadRows(0, f.Root)
	if err == nil {
		_, err = rows.Next()
	}
	if err != broken {
		t.Error(err)
	}
}

// withFooter changes the footer of a file.
func withFooter(t *testing.T, file []byte, change func(*format.FileMetaData)) []byte {
	t.Helper()
	n := footerSize(file)
	footer := file[len(file)-8-n : len(file)-8]
	var d format.FooterDecoder
	meta, _, err := d.Decode(footer)
	if err != nil {
		t.Fatal(err)
	}
	change(meta)
	encoded, err := thrift.Marshal(new(thrift.CompactProtocol), meta)
	if err != nil {
		t.Fatal(err)
	}
	out := slices.Concat(file[:len(file)-8-n], encoded)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(encoded)))
	return append(out, magic...)
}

// TestNumbers: numbers that the library encodes come back, in steps of any length.
func TestNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.UintRange(1, 20).Draw(t, "width")
		numbers := rapid.SliceOfN(rapid.Int32Range(0, rapid.Int32Range(0, 1<<width-1).Draw(t, "most")), 1, 300).Draw(t, "numbers")
		encoded, err := (&rle.Encoding{BitWidth: int(width)}).EncodeInt32(nil, numbers)
		if err != nil {
			t.Fatal(err)
		}
		h, err := newHybrid(withPadding(encoded), width)
		got := make([]uint32, len(numbers))
		for rest := got; err == nil && len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "step")
			same := 0
			if same, err = h.same(uint32(numbers[0]), n); err == nil {
				for i := range same {
					rest[i] = uint32(numbers[0])
				}
				err = h.read(rest[same:n])
			}
			rest = rest[n:]
		}
		if err != nil || fmt.Sprint(got) != fmt.Sprint(numbers) {
			t.Fatalf("%v, %v, want %v", got, err, numbers)
		}
	})
}

// TestDeltas: integers that the library encodes come back, and what follows them is found.
func TestDeltas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		numbers := rapid.SliceOf(rapid.OneOf(rapid.Int64(), rapid.Int64Range(-9, 9))).Draw(t, "numbers")
		encoded, err := (&delta.BinaryPackedEncoding{}).EncodeInt64(nil, numbers)
		if err != nil {
			t.Fatal(err)
		}
		d, err := newDeltas(withPadding(append(encoded, "rest"...)))
		if err != nil {
			t.Fatal(err)
		}
		if rest, err := d.rest(); err != nil || string(rest) != "rest" {
			t.Fatalf("rest %q, %v", rest, err)
		}
		for i, n := range numbers {
			if v, err := d.next(); err != nil || int64(v) != n {
				t.Fatalf("number %d: %d, %v, want %d", i, int64(v), err, n)
			}
		}
		if _, err := d.next(); !errors.Is(err, ErrDamaged) {
			t.Fatalf("after the last number: %v", err)
		}
	})
}
