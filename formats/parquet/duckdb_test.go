package parquet

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// duckRow is a row of the files that integration/compat records.
type duckRow struct {
	N     int64     `parquet:"n"`
	B     bool      `parquet:"b"`
	I8    int8      `parquet:"i8"`
	I16   int16     `parquet:"i16"`
	I32   int32     `parquet:"i32"`
	U8    uint8     `parquet:"u8"`
	U16   uint16    `parquet:"u16"`
	U32   uint32    `parquet:"u32"`
	U64   uint64    `parquet:"u64"`
	F     float32   `parquet:"f"`
	D     float64   `parquet:"d"`
	S     string    `parquet:"s"`
	X     []byte    `parquet:"x"`
	Day   Date      `parquet:"day"`
	Micro time.Time `parquet:"us"`
	Milli time.Time `parquet:"ms"`
	Nano  time.Time `parquet:"ns"`
	Dec9  int32     `parquet:"dec9,decimal(3:9)"`
	Dec15 int64     `parquet:"dec15,decimal(2:15)"`
	NI    *int64    `parquet:"ni"`
	NS    *string   `parquet:"nss"`
	ND    *int64    `parquet:"nd,decimal(2:15)"`
}

func (r duckRow) String() string {
	b := 0
	if r.B {
		b = 1
	}
	return fmt.Sprint(r.N, "|", b, "|", r.I8, "|", r.I16, "|", r.I32, "|", r.U8, "|", r.U16, "|", r.U32, "|", r.U64, "|", int64(r.F*4), "|", int64(r.D*8)) +
		fmt.Sprintf("|%s|%X|%d|%d|%d|%d|%d|%d|%s|%s|%s\n", r.S, r.X, int32(r.Day), r.Micro.UnixMicro(), r.Milli.UnixMilli(), r.Nano.UnixNano(), r.Dec9, r.Dec15, orNull(r.NI), orNull(r.NS), orNull(r.ND))
}

func orNull[V any](p *V) string {
	if p == nil {
		return "NULL"
	}
	return fmt.Sprint(*p)
}

// TestDuckDB: files of DuckDB and of Hadoop's Parquet have the values that DuckDB prints, and their statistics skip no row.
func TestDuckDB(t *testing.T) {
	values, err := os.ReadFile("testdata/values.txt")
	if err != nil {
		t.Fatal(err)
	}
	names, _ := filepath.Glob("testdata/*.parquet")
	hadoop, _ := filepath.Glob("testdata/hadoop/*.parquet")
	if len(names) != 12 || len(hadoop) != 10 {
		t.Fatalf("files %v, %v", names, hadoop)
	}
	for _, name := range append(names, hadoop...) {
		file, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var got, some strings.Builder
		rows, _, err := read[duckRow](file, Filter{}, 0, math.MaxInt64)
		for _, r := range rows {
			got.WriteString(r.String())
			if r.Dec15 >= 1000 && r.S < "word 5" {
				some.WriteString(r.String())
			}
		}
		if err != nil || got.String() != string(values) {
			t.Errorf("%s: %v, rows\n%s", name, err, got.String())
		}
		var filtered strings.Builder
		rows, _, err = read[duckRow](file, Where("dec15", AtLeast, Decimal{1000, 2}).And("s", Less, "word 5"), 0, math.MaxInt64)
		for _, r := range rows {
			filtered.WriteString(r.String())
		}
		if err != nil || filtered.String() != some.String() {
			t.Errorf("%s: %v, filtered rows\n%s", name, err, filtered.String())
		}
		for _, none := range []Filter{Where("u64", Greater, uint64(199)<<54), Where("day", Less, Date(-1000)), Where("us", Greater, time.UnixMicro(199*1_000_003)), Where("d", Greater, 0.0), Where("s", Greater, "word 6"), Where("ni", Equal, 200)} {
			if rows, groups, err := read[duckRow](file, none, 0, math.MaxInt64); len(rows) > 0 || groups > 0 || err != nil {
				t.Errorf("%s, %v: %d rows, %d row groups, %v", name, none, len(rows), groups, err)
			}
		}
	}
}
