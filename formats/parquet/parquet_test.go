package parquet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"pgregory.net/rapid"

	failedjob "github.com/quernmr/quern/formats/internal/failed"
	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/mapreduce/mrtest"
	"github.com/quernmr/quern/parquetfile"
)

// kinds has a field of each kind that is written.
type kinds struct {
	Bool    bool
	I8      int8
	I16     int16
	I32     int32
	I64     int64
	Int     int
	U8      uint8
	U32     uint32
	U64     uint64
	F32     float32
	F64     float64
	Text    string `parquet:"the_text"`
	Bytes   []byte
	Day     Date      `parquet:"the_day"`
	DayTime time.Time `parquet:",date"`
	Milli   time.Time `parquet:",timestamp(millisecond)"`
	Nano    time.Time
	Micros  int64  `parquet:",timestamp(microsecond)"`
	Price   int64  `parquet:",decimal(2:15)"`
	Small   int32  `parquet:",decimal(3:9)"`
	Maybe   *int64 // pointers are null if they are nil
	Name    *string
	When    *Date
	Zero    int32  `parquet:",optional"` // null if it is zero
	Word    string `parquet:",optional,dict"`
	Delta   int64  `parquet:",delta"`
	Short   string `parquet:",delta"`
	hidden  int    //lint:ignore U1000 reflection sees it
	Left    []int  `parquet:"-"`
}

func kindsOf(i int) kinds {
	n, s, d := int64(i), fmt.Sprint("text ", i%37), Date(i)
	k := kinds{Bool: i%3 == 0, I8: int8(i), I16: int16(i * 7), I32: int32(i - 50), I64: n << 33, Int: -i, U8: uint8(i), U32: math.MaxUint32 - uint32(i),
		U64: math.MaxUint64 - uint64(i), F32: float32(i) / 3, F64: float64(i) / 7, Text: s, Bytes: []byte(s)[:i%5], Day: Date(10_000 - 900*i), DayTime: Date(i).Time(),
		Milli: time.UnixMilli(n * 1001).UTC(), Nano: time.Unix(n, n).UTC(), Micros: n * 77, Price: n * 199, Small: -int32(i), Zero: int32(i % 4), Word: strings.Repeat("w", i%3), Delta: n * n, Short: s}
	if i%5 > 0 {
		k.Maybe, k.Name, k.When = &n, &s, &d
	}
	return k
}

// written returns a file with rows and row groups of some rows.
func written[T any](t testing.TB, rows []T, group int, options ...parquet.WriterOption) []byte {
	t.Helper()
	schema, err := schemaOf(reflect.TypeFor[T]())
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	w := parquet.NewGenericWriter[T](&file, append(options, schema)...)
	for some := range slices.Chunk(rows, group) {
		if _, err := w.Write(some); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func manyKinds(n int) (all []kinds) {
	for i := range n {
		all = append(all, kindsOf(i))
	}
	return all
}

// read returns the rows of a piece of a file, and the number of row groups that were read.
func read[T any](file []byte, filter Filter, from, to int64) (all []T, groups int, err error) {
	f, err := open(bytes.NewReader(file), int64(len(file)), parquetfile.Limits{Free: 1 << 20})
	if err == nil {
		groups, err = scan(f, filter, from, to, func(row T) bool {
			all = append(all, row)
			return true
		})
	}
	return all, groups, err
}

// TestKinds: each kind of field and each codec come back, with both versions of pages.
func TestKinds(t *testing.T) {
	want := manyKinds(3000)
	for _, codec := range []string{"UNCOMPRESSED", "SNAPPY", "GZIP", "BROTLI", "ZSTD", "LZ4_RAW"} {
		c, err := codecOf(codec)
		if err != nil {
			t.Fatal(err)
		}
		for version := range 2 {
			file := written(t, want, 1100, parquet.Compression(c), parquet.DataPageVersion(version+1), parquet.PageBufferSize(3000))
			got, groups, err := read[kinds](file, Filter{}, 0, math.MaxInt64)
			if err != nil || groups != 3 {
				t.Fatalf("%s: %d groups, %v", codec, groups, err)
			}
			compare(t, codec, got, want)
		}
	}
}

func compare(t *testing.T, what string, got, want []kinds) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d rows, want %d", what, len(got), len(want))
	}
	for i := range got {
		if len(got[i].Bytes) == 0 {
			got[i].Bytes = []byte{} // empty, as written
		}
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("%s, row %d:\n%+v, want\n%+v", what, i, got[i], want[i])
		}
	}
}

// TestSplits: whatever the size of splits, each row is read once.
func TestSplits(t *testing.T) {
	type one struct{ Int int }
	numbers := make([]one, 60)
	for i := range numbers {
		numbers[i].Int = i
	}
	file := written(t, numbers, 7)
	f, err := open(bytes.NewReader(file), int64(len(file)), parquetfile.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for size := int64(1); size <= int64(len(file)); size++ {
		var got []int
		for from := int64(0); from < int64(len(file)); from += size {
			if !slices.ContainsFunc(f.Groups, func(g parquetfile.RowGroup) bool { return g.Middle >= from && g.Middle < from+size }) {
				continue
			}
			if _, err := scan(f, Filter{}, from, from+size, func(row one) bool { got = append(got, row.Int); return true }); err != nil {
				t.Fatal(err)
			}
		}
		if len(got) != 60 || !slices.IsSorted(got) || got[0] != 0 || got[59] != 59 {
			t.Fatalf("splits of %d bytes: rows %v", size, got)
		}
	}
}

// TestFilter: a filter accepts the rows that a test of each row accepts, and skips row groups.
func TestFilter(t *testing.T) {
	type row struct {
		N     int64
		Word  string
		Price *int64 `parquet:",decimal(2:15)"`
		F     float64
		Day   Date
		U     uint32
		Bool  bool
		At    time.Time `parquet:",timestamp(millisecond)"`
	}
	rapid.Check(t, func(t *rapid.T) {
		rows := make([]row, rapid.IntRange(1, 60).Draw(t, "rows"))
		small := rapid.Int64Range(-4, 4)
		floats := rapid.SampledFrom([]float64{-1, 0, math.Copysign(0, -1), 1, math.NaN(), math.Inf(1), 2})
		for i := range rows {
			n := small.Draw(t, "n")
			rows[i] = row{N: n, Word: strings.Repeat("b", int(n+4)), F: floats.Draw(t, "f"), Day: Date(n), U: uint32(n), Bool: n > 0, At: time.UnixMilli(n).UTC()}
			if p := small.Draw(t, "price"); p > -2 {
				rows[i].Price = &p
			}
		}
		var file bytes.Buffer
		schema, _ := schemaOf(reflect.TypeFor[row]())
		w := parquet.NewGenericWriter[row](&file, schema)
		for some := range slices.Chunk(rows, rapid.IntRange(1, 9).Draw(t, "group")) {
			w.Write(some)
			w.Flush()
		}
		w.Close()
		n, f, is := small.Draw(t, "value"), floats.Draw(t, "float"), Comparison(rapid.IntRange(0, int(Greater)).Draw(t, "is"))
		for _, c := range []struct {
			column string
			value  any
			match  func(row) bool
		}{
			{"N", n, func(r row) bool { return naive(is, r.N, n) }},
			{"Word", strings.Repeat("b", int(n+4)), func(r row) bool { return naive(is, r.N, n) }},
			{"Price", Decimal{n, 2}, func(r row) bool { return r.Price != nil && naive(is, *r.Price, n) }},
			{"F", f, func(r row) bool { return naive(is, r.F, f) }},
			{"Day", Date(n), func(r row) bool { return naive(is, r.N, n) }},
			{"U", uint32(n), func(r row) bool { return naive(is, r.U, uint32(n)) }},
			{"At", time.UnixMilli(n), func(r row) bool { return naive(is, r.N, n) }},
			{"Bool", n > 0, func(r row) bool { return naive(is, fmt.Sprint(r.Bool), fmt.Sprint(n > 0)) }},
		} {
			got, _, err := read[row](file.Bytes(), Where(c.column, is, c.value).And("N", Less, 4), 0, math.MaxInt64)
			var want []row
			for _, r := range rows {
				if c.match(r) && r.N < 4 {
					want = append(want, r)
				}
			}
			if err != nil || fmt.Sprint(len(got), shown(got)) != fmt.Sprint(len(want), shown(want)) {
				t.Fatalf("%s %d %v: %v, %v, want %v", c.column, is, c.value, shown(got), err, shown(want))
			}
		}
	})
	days := make([]row, 1000)
	for i := range days {
		days[i].Day = Date(i)
	}
	file := written(t, days, 100)
	got, groups, err := read[row](file, Where("Day", AtLeast, Date(250)).And("Day", Less, Date(330)), 0, math.MaxInt64)
	if len(got) != 80 || groups != 2 || err != nil {
		t.Errorf("%d rows of %d row groups, %v", len(got), groups, err)
	}
}

func naive[K int64 | float64 | uint32 | string](is Comparison, a, b K) bool {
	return [...]bool{a < b, a <= b, a == b, a != b, a >= b, a > b}[is]
}

func shown[T any](rows []T) (all []string) {
	for _, r := range rows {
		v, text := reflect.ValueOf(r), ""
		for i := range v.NumField() {
			text += fmt.Sprint(reflect.Indirect(v.Field(i)), " ")
		}
		all = append(all, text)
	}
	return all
}

// TestMismatch: a column that is missing or has another type is refused with words that help.
func TestMismatch(t *testing.T) {
	file := written(t, manyKinds(10), 10)
	type missing struct{ Tax int64 }
	type narrow struct{ I64 int32 }
	type scale struct {
		Price int64 `parquet:",decimal(3:15)"`
	}
	type noScale struct{ Price int64 }
	type unit struct {
		Micros int64 `parquet:",timestamp(millisecond)"`
	}
	type day struct {
		Day int32 `parquet:"the_day"`
	}
	type null struct{ Maybe int64 }
	type tag struct {
		I64 int64 `parquet:",decimal"`
	}
	type lists struct{ L []string }
	type text struct{ L string }
	list := written(t, []lists{{[]string{"a"}}}, 1)
	for _, c := range []struct {
		read  func() error
		words []string
	}{
		{failed[missing](file, Filter{}), []string{"no column Tax", "field missing.Tax", "Bool, I8, I16"}},
		{failed[narrow](file, Filter{}), []string{"column I64", "INT64 INT(64)", "narrow.I64", "int32"}},
		{failed[scale](file, Filter{}), []string{"column Price", "DECIMAL(15,2)", "scale 3"}},
		{failed[noScale](file, Filter{}), []string{"column Price", "DECIMAL(15,2)", "type int64"}},
		{failed[unit](file, Filter{}), []string{"column Micros", "TIMESTAMP(MICROS)", "in MILLIS"}},
		{failed[day](file, Filter{}), []string{"column the_day", "INT32 DATE", "day.Day", "int32"}},
		{failed[null](file, Filter{}), []string{"column Maybe is null in row 0", "null.Maybe"}},
		{failed[tag](file, Filter{}), []string{"tag.I64", "decimal(scale:precision)"}},
		{failed[text](list, Filter{}), []string{"column L is repeated", "text.L has type string"}},
		{failed[int](file, Filter{}), []string{"structs, not int"}},
		{failed[kinds](file, Where("Price", Less, 5)), []string{"column Price", "DECIMAL(15,2)", "5 of type int"}},
		{failed[kinds](file, Where("Price", Less, Decimal{5, 3})), []string{"column Price", "cannot be compared"}},
		{failed[kinds](file, Where("Milli", Less, time.Unix(0, 1))), []string{"column Milli", "cannot be compared"}},
		{failed[kinds](file, Where("Int", 9, 1)), []string{"comparison 9"}},
		{failed[kinds](file, Where("Tax", Less, 5)), []string{"no column Tax", "the filter"}},
	} {
		err := c.read()
		for _, word := range c.words {
			if err == nil || !strings.Contains(err.Error(), word) {
				t.Errorf("%v, want %q", err, word)
			}
		}
	}
}

func failed[T any](file []byte, filter Filter) func() error {
	return func() error {
		_, _, err := read[T](file, filter, 0, math.MaxInt64)
		return err
	}
}

// TestJob: a job reads Parquet files in several splits and writes others, with codec and row groups by property.
func TestJob(t *testing.T) {
	type total struct {
		Word string `parquet:"word"`
		N    int64  `parquet:"n"`
	}
	type word struct {
		Text string `parquet:"the_text"`
	}
	job := func(properties map[string]string) *mapreduce.Job {
		words := mapreduce.Map(Select[word](Where("Int", Less, 0)), func(_ *mapreduce.Task, w word, emit func(string, int64)) error {
			emit(w.Text, 1)
			return nil
		})
		j := mapreduce.Fold(words, func(a, b int64) int64 { return a + b }).Job("totals")
		j.Format, j.Properties = Output(func(word string, n int64) total { return total{word, n} }), properties
		return j
	}
	input := string(written(t, manyKinds(3700), 500))
	for _, codec := range []string{"", "ZSTD"} { // TestKinds has the others
		properties := map[string]string{"mapreduce.input.fileinputformat.split.maxsize": "50000", "parquet.block.size": "1"}
		if codec != "" {
			properties["parquet.compression"] = codec
		}
		file := mrtest.RunFiles(t, job(properties), map[string]string{"a.parquet": input}).Files["part-r-00000.parquet"]
		got, groups, err := read[total]([]byte(file), Filter{}, 0, math.MaxInt64)
		if err != nil || len(got) != 37 || groups != 1 || got[0] != (total{"text 0", 99}) || got[36] != (total{"text 9", 100}) {
			t.Errorf("%s: %v, %d row groups, %v", codec, got, groups, err)
		}
	}
	many := mapreduce.Sort(mapreduce.Map(Input[word](), func(_ *mapreduce.Task, w word, emit func(string, struct{})) error {
		emit(w.Text, struct{}{})
		return nil
	})).Job("many")
	many.Format = Output(func(text string, _ struct{}) word { return word{text} })
	many.Properties = map[string]string{"mapreduce.input.fileinputformat.split.maxsize": "50000", "parquet.block.size": "2000"}
	file := mrtest.RunFiles(t, many, map[string]string{"a": input}).Files["part-r-00000.parquet"]
	if got, groups, err := read[word]([]byte(file), Filter{}, 0, math.MaxInt64); err != nil || len(got) != 3700 || groups != 4 {
		t.Errorf("%d rows in %d row groups, %v", len(got), groups, err)
	}
}

// TestTotalOrder: the sample of a total order has rows, although a row group is larger than the sample.
func TestTotalOrder(t *testing.T) {
	type word struct {
		Text string `parquet:"text"`
		Pad  []byte `parquet:",plain"`
	}
	rows := make([]word, 4000)
	for i := range rows {
		rows[i] = word{fmt.Sprintf("%04d", i*7919%4000), bytes.Repeat([]byte{byte(i)}, 1000)}
	}
	pairs := mapreduce.Map(Input[word](), func(_ *mapreduce.Task, w word, emit func(string, struct{})) error {
		emit(w.Text, struct{}{})
		return nil
	})
	job := mapreduce.Sort(pairs.TotalOrder()).Job("sorted")
	job.Properties = map[string]string{"mapreduce.input.fileinputformat.split.minsize": "5000000", "mapreduce.job.reduces": "4"}
	files := mrtest.RunFiles(t, job, map[string]string{"a": string(written(t, rows, 4000, parquet.PageBufferSize(4<<20)))}).Files
	for i := range 4 {
		if n := strings.Count(files[fmt.Sprintf("part-r-%05d", i)], "\n"); n < 100 {
			t.Errorf("reduce %d has %d of 4000 rows", i, n)
		}
	}
}

// TestRefusedFiles: jobs fail at once on other files, and the error names the file and what is wrong.
func TestRefusedFiles(t *testing.T) {
	type row struct{ Int int64 }
	good := string(written(t, manyKinds(100), 50, parquet.DataPageVersion(1)))
	dir := t.TempDir()
	if err := os.MkdirAll(dir+"/a.parquet", 0o777); err != nil {
		t.Fatal(err)
	}
	reading := func(properties map[string]string, paths ...string) *mapreduce.Job {
		job := mapreduce.Sort(mapreduce.Map(Input[row](paths...), func(_ *mapreduce.Task, r row, emit func(int64, int64)) error {
			emit(r.Int, 1)
			return nil
		})).Job("x")
		job.Properties = properties
		return job
	}
	writing := reading(map[string]string{"parquet.compression": "LZO", "mapreduce.reduce.maxattempts": "1"})
	writing.Format = Output(func(a, b int64) row { return row{a} })
	footer := len(good) - 8 - int(binary.LittleEndian.Uint32([]byte(good[len(good)-8:])))
	for name, c := range map[string]struct {
		job   *mapreduce.Job
		file  string
		words []string
	}{
		"empty":     {reading(nil), "", nil}, // has no splits
		"text":      {reading(nil), "a line of text\n", []string{"/a: bad input: Parquet file at offset", `begins with "a li"`}},
		"truncated": {reading(nil), good[:len(good)-1], []string{"/a: bad input: Parquet file at offset", "its end is missing or damaged"}},
		"footer":    {reading(nil), good[:footer] + strings.Repeat("\xff", len(good)-8-footer) + good[len(good)-8:], []string{"/a: bad input: Parquet file at offset", "the footer"}},
		"page":      {reading(nil), good[:4] + strings.Repeat("\x00", footer-4) + good[footer:], []string{"/a: bad input: Parquet file at offset", "row group 0, column Int"}},
		"codec":     {writing, good, []string{`parquet.compression="LZO"`, "UNCOMPRESSED, SNAPPY, GZIP, BROTLI, ZSTD, LZ4_RAW"}},
		"directory": {reading(nil, dir), good, []string{dir + "/a.parquet", "director"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := failedjob.Run(t, c.job, map[string]string{"a": c.file})
			if (err == nil) != (c.words == nil) {
				t.Error(err)
			}
			for _, word := range c.words {
				if err == nil || !strings.Contains(err.Error(), word) {
					t.Errorf("%v, want %q", err, word)
				}
			}
		})
	}
}

// TestCheck: files of a map-only job are the same for each run of the map, so that quern.check finds no difference.
func TestCheck(t *testing.T) {
	type row struct {
		Name  string
		Parts map[string]int64
		List  []string `parquet:",list"`
	}
	out := mrtest.RunFiles(t, checked(Output(func(name string, n int64) row {
		return row{name, map[string]int64{"a": n, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6}, strings.Fields(name)}
	})), map[string]string{"in": "a b\nb\n"})
	got, _, err := read[row]([]byte(out.Files["part-m-00000.parquet"]), Filter{}, 0, math.MaxInt64)
	if len(got) != 2 || err != nil || len(got[0].Parts) != 6 || len(got[0].List) != 2 {
		t.Errorf("rows %v, %v", got, err)
	}
}

// checked returns a map-only job with quern.check.
func checked(format mapreduce.Format) *mapreduce.Job {
	job := mapreduce.MapOnly(mapreduce.Map(mapreduce.Lines(), func(_ *mapreduce.Task, line string, emit func(string, int64)) error {
		emit(line, 1)
		return nil
	})).Job("check")
	job.Format, job.Properties = format, map[string]string{"quern.check": "true"}
	return job
}

// TestLimits: the ratio of a job is that of its property, and a wrong one is an error.
func TestLimits(t *testing.T) {
	for text, want := range map[string]string{"": "0 <nil>", "0": "9223372036854775807 <nil>", "50": "50 <nil>",
		"much": `0 property quern.decompressed.ratio.max="much" is not a whole number of 64 bits`} {
		l, err := limits(func(string) string { return text })
		if got := fmt.Sprint(l.MaxRatio, " ", err); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
