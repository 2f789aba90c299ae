package mapreduce

import (
	"bufio"
	simplecsv "encoding/csv"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/internal/membound"
)

// csvRow is a row with its rowPlace.
type csvRow struct {
	fields       []string
	offset, line int64
}

func readCSV(text, separator string, buffer, limit int) (rows []csvRow, err error) {
	r := &csvReader{in: bufio.NewReaderSize(strings.NewReader(text), buffer), separator: separator, limit: limit}
	for {
		row, err := r.next()
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			return rows, err
		}
		rows = append(rows, csvRow{append([]string(nil), row...), r.offset, r.line})
	}
}

// TestCSVReader compares rows, their lines and which texts are refused with package encoding/csv. That package
// drops a CR before a LF within quotes too.
func TestCSVReader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		separator := rapid.SampledFrom([]rune{',', ';', '\t', '→'}).Draw(t, "separator")
		alphabet := []string{"a", "b", `"`, `"`, `""`, "\n", "\r\n", "\r", " ", string(separator), string(separator)}
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(alphabet), 0, 40).Draw(t, "text"), "")
		rows, err := readCSV(text, string(separator), 16, 0)
		simple := simplecsv.NewReader(strings.NewReader(text))
		simple.Comma, simple.FieldsPerRecord = separator, -1
		for i := 0; ; i++ {
			want, wantErr := simple.Read()
			if wantErr != nil {
				if (err == nil) != (wantErr == io.EOF) || err == nil && i != len(rows) {
					t.Fatalf("%q: error %v after %d rows, want %v after %d", text, err, len(rows), wantErr, i)
				}
				return
			}
			if i >= len(rows) {
				t.Fatalf("%q: %d rows, want %q too; error %v", text, len(rows), want, err)
			}
			var got []string
			for _, field := range rows[i].fields {
				got = append(got, strings.ReplaceAll(field, "\r\n", "\n"))
			}
			line, _ := simple.FieldPos(0)
			if !reflect.DeepEqual(got, want) || rows[i].line != int64(line) {
				t.Fatalf("%q: row %q in line %d, want %q in %d", text, got, rows[i].line, want, line)
			}
			if before := strings.Count(text[:rows[i].offset], "\n"); int64(before) != rows[i].line-1 {
				t.Fatalf("%q: row %d is at offset %d, line %d", text, i, rows[i].offset, rows[i].line)
			}
		}
	})
}

func TestCSVReaderErrors(t *testing.T) {
	long := strings.Repeat("x", 50)
	for text, want := range map[string]string{
		`a,"b`:                             "field 2 has no closing quote",
		"a,\"b\nc\nd":                      "field 2 has no closing quote",
		`"a"b`:                             "field 1 has text after its closing quote",
		`a"b,c`:                            "field 1 has a quote, but does not begin with one",
		long:                               "the row is longer than quern.record.max.bytes=40; are its quotes closed?",
		`"` + long + `"`:                   "longer than",
		"\"\n" + strings.Repeat("y\n", 30): "longer than",
	} {
		_, err := readCSV(text, ",", 16, 40)
		if _, ok := errors.AsType[*csvError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	if rows, err := readCSV(strings.Repeat("z", 40)+"\r\n", ",", 16, 40); err != nil || len(rows) != 1 {
		t.Errorf("a row at the limit: %v, error %v", rows, err)
	}
}

func FuzzCSV(f *testing.F) {
	f.Add("\xef\xbb\xbfa,\"b\"\"\r\nc\"\nd,e\n")
	f.Fuzz(func(t *testing.T, text string) {
		var rows []csvRow
		membound.Bound{Free: 1 << 20, PerByte: 256}.Check(t, len(text), func() { rows, _ = readCSV(text, ",", 16, 1<<20) })
		for _, row := range rows {
			if row.offset < 0 || row.offset >= int64(len(text)) || len(row.fields) == 0 {
				t.Fatalf("%q: row %q at %d", text, row.fields, row.offset)
			}
		}
	})
}

type celsius float32

type rowPlace struct {
	City    string `csv:"city"`
	Country string `csv:"-"`
}

type weather struct {
	rowPlace
	Day  time.Time `csv:"day"`
	Temp *celsius  `csv:"temp"`
	Wet  bool
	N    uint8
}

// TestRowPlan reads rows into a struct, with columns in another order than its fields.
func TestRowPlan(t *testing.T) {
	plan, err := rowPlanOf(reflect.TypeFor[weather]())
	if err != nil {
		t.Fatal(err)
	}
	table := &csvTable{plan: plan}
	if _, err := table.begin([]string{"N", "other", "day", "Wet", "city", "temp"}); err != nil {
		t.Fatal(err)
	}
	var w weather
	if err := table.decode([]string{"7", "x", "2026-11-28T00:00:00Z", "true", "Oslo", "-1.5"}, &w); err != nil {
		t.Fatal(err)
	}
	if w.City != "Oslo" || w.Day.Day() != 28 || *w.Temp != -1.5 || !w.Wet || w.N != 7 {
		t.Errorf("read %+v", w)
	}
	w = weather{}
	if err := table.decode([]string{"0", "", "2026-11-28T00:00:00Z", "f", "", ""}, &w); err != nil || w.Temp != nil {
		t.Errorf("read %+v, error %v", w, err)
	}
	for want, row := range map[string][]string{
		`column N: "256" as uint8: value out of range`:  {"256", "", "2026-11-28T00:00:00Z", "true", "", ""},
		`column Wet: "maybe" as bool: invalid syntax`:   {"1", "", "2026-11-28T00:00:00Z", "maybe", "", ""},
		`column day: parsing time "yesterday"`:          {"1", "", "yesterday", "true", "", ""},
		"the row has 2 fields, but the first row has 6": {"1", "2"},
		"the row has 7 fields, but the first row has 6": {"1", "2", "", "", "", "", ""},
	} {
		if err := table.decode(row, new(weather)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("row %q: error %v, want %q", row, err, want)
		}
	}
}

func TestRowPlanRefused(t *testing.T) {
	for want, r := range map[string]reflect.Type{
		"as a struct or []string, but not as map[string]string": reflect.TypeFor[map[string]string](),
		"struct { a int }.a cannot be set; export it":           reflect.TypeFor[struct{ a int }](),
		"A: a column cannot be a []int":                         reflect.TypeFor[struct{ A []int }](),
		"A: a column cannot be a map[int]int":                   reflect.TypeFor[struct{ A *map[int]int }](),
		"two fields of": reflect.TypeFor[struct {
			A int `csv:"x"`
			B int `csv:"x"`
		}](),
		"has an option": reflect.TypeFor[struct {
			A int `csv:"x,optional"`
		}](),
		"has no fields for columns": reflect.TypeFor[struct{}](),
	} {
		if _, err := rowPlanOf(r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want %q", r, err, want)
		}
	}
}
