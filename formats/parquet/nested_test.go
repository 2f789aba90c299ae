package parquet

import (
	"bytes"
	"encoding/json"
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

	"github.com/quernmr/quern/internal/membound"
	"github.com/quernmr/quern/parquetfile"
)

// duckNested is a row of the files with lists, maps and structs that integration/compat records.
type duckNested struct {
	N     int64     `parquet:"n" json:"n"`
	L     []int64   `parquet:"l" json:"l"`
	Words []*string `parquet:"words" json:"words"`
	S     *struct {
		A int64 `parquet:"a" json:"a"`
		B *struct {
			C []*int64 `parquet:"c" json:"c"`
		} `parquet:"b" json:"b"`
	} `parquet:"s" json:"s"`
	Deep []struct {
		X float64   `parquet:"x" json:"x"`
		Y [][]int64 `parquet:"y" json:"y"`
	} `parquet:"deep" json:"deep"`
	M map[string][]int64 `parquet:"m" json:"m"`
}

// TestDuckDBNested: fields that are lists, maps and structs have the values that DuckDB prints.
func TestDuckDBNested(t *testing.T) {
	text, err := os.ReadFile("../../parquetfile/testdata/nested.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for version := 1; version <= 2; version++ {
		file, err := os.ReadFile(fmt.Sprintf("../../parquetfile/testdata/nested-v%d.parquet", version))
		if err != nil {
			t.Fatal(err)
		}
		rows, _, err := read[duckNested](file, Filter{}, 0, math.MaxInt64)
		if err != nil || len(rows) != len(lines) {
			t.Fatalf("%d rows, want %d, %v", len(rows), len(lines), err)
		}
		for i, row := range rows {
			var want duckNested
			if err := json.Unmarshal([]byte(lines[i]), &want); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(row, want) {
				got, _ := json.Marshal(row)
				t.Fatalf("version %d, row %d: %s\nwant %s", version, i, got, lines[i])
			}
		}
		type some struct {
			C []*int64 `parquet:"s.b.c"`
			X []struct {
				X float64 `parquet:"x"`
			} `parquet:"deep"`
		}
		few, _, err := read[some](file, Where("n", Equal, 5), 0, math.MaxInt64)
		if err != nil || len(few) != 1 || len(few[0].C) != 2 || *few[0].C[0] != 5 || len(few[0].X) != 2 || few[0].X[1].X != 0.5 {
			t.Errorf("version %d: %+v, %v", version, few, err)
		}
	}
}

// house has lists, maps and structs of all kinds of values.
type house struct {
	ID     int64
	Prices []int64
	Rooms  []room `parquet:",list"`
	Best   *room
	Plain  room
	Names  map[string]string
	Sizes  map[int32]room
	Blobs  [][]byte `parquet:",list"`
}

type room struct {
	Name  string `parquet:"the_name"`
	Doors []int32
	Built time.Time `parquet:",timestamp(millisecond)"`
	Cost  *int64    `parquet:",decimal(2:15)"`
	Note  string    `parquet:",optional"`
	Paint Date      `parquet:",date"`
}

func drawRoom(t *rapid.T) room {
	r := room{Name: rapid.String().Draw(t, "name"), Doors: rapid.SliceOfN(rapid.Int32(), 0, 3).Draw(t, "doors"), Built: time.UnixMilli(rapid.Int64Range(-1e12, 1e12).Draw(t, "built")).UTC(), Note: rapid.SampledFrom([]string{"", "x"}).Draw(t, "note"), Paint: Date(rapid.Int16().Draw(t, "paint"))}
	if cost := rapid.Int64Range(0, 9).Draw(t, "cost"); cost > 3 {
		r.Cost = &cost
	}
	return r
}

// TestNested: rows with lists, maps and structs come back, in batches and with a filter.
func TestNested(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rooms := rapid.SliceOfN(rapid.Custom(drawRoom), 0, 3)
		want := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) house {
			h := house{ID: rapid.Int64().Draw(t, "id"), Prices: rapid.SliceOfN(rapid.Int64(), 0, 3).Draw(t, "prices"), Rooms: rooms.Draw(t, "rooms"), Plain: drawRoom(t), Names: map[string]string{}, Sizes: map[int32]room{}, Blobs: [][]byte{}}
			for i, r := range rooms.Draw(t, "more") {
				h.Names[r.Name], h.Sizes[int32(i)], h.Best = r.Note, r, &r
				h.Blobs = append(h.Blobs, []byte(r.Name))
			}
			return h
		}), 1, 6).Draw(t, "rows")
		var file bytes.Buffer
		schema, err := schemaOf(reflect.TypeFor[house]())
		if err != nil {
			t.Fatal(err)
		}
		w := parquet.NewGenericWriter[house](&file, schema, parquet.DataPageVersion(rapid.IntRange(1, 2).Draw(t, "version")))
		w.Write(want)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		got, _, err := read[house](file.Bytes(), Filter{}, 0, math.MaxInt64)
		if err != nil || len(got) != len(want) {
			t.Fatalf("%d rows, want %d, %v", len(got), len(want), err)
		}
		for i := range got {
			a, _ := json.Marshal(got[i])
			b, _ := json.Marshal(want[i])
			if !bytes.Equal(a, b) {
				t.Fatalf("row %d: %s\nwant %s", i, a, b)
			}
		}
		some, _, err := read[house](file.Bytes(), Where("ID", AtLeast, want[0].ID), 0, math.MaxInt64)
		if err != nil || len(some) == 0 || some[0].ID != want[0].ID {
			t.Fatalf("%d rows, %v", len(some), err)
		}
	})
}

// TestNestedColumns: only the columns of a struct's fields are read.
func TestNestedColumns(t *testing.T) {
	file := written(t, []house{{ID: 1, Rooms: []room{{Name: "a", Doors: []int32{1, 2}}, {}}}, {ID: 2}}, 2)
	type part struct {
		Rooms []struct{ Doors []int32 } `parquet:",list"`
	}
	f, err := open(bytes.NewReader(file), int64(len(file)), parquetfile.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	sources, err := bind(f, reflect.TypeFor[part](), Filter{})
	if err != nil || len(sources) != 1 {
		t.Fatal(err)
	}
	if element := sources[0].(*nested).node.Element(); len(element.Children) != 1 || element.Children[0].Name != "Doors" {
		t.Errorf("element with %d columns", len(element.Children))
	}
	got, _, err := read[part](file, Filter{}, 0, math.MaxInt64)
	if err != nil || fmt.Sprint(got) != "[{[{[1 2]} {[]}]} {[]}]" {
		t.Errorf("%v, %v", got, err)
	}
}

// TestNestedMismatch: fields that do not fit lists, maps and groups are refused with words that help.
func TestNestedMismatch(t *testing.T) {
	file := written(t, []house{{Rooms: []room{{}}, Names: map[string]string{"a": "b"}, Sizes: map[int32]room{1: {}}}}, 1)
	type number struct{ Rooms int64 }
	type element struct{ Rooms []int64 }
	type list struct{ Names []string }
	type structure struct{ Names struct{ A int64 } }
	type key struct{ Names map[int64]string }
	type pointers struct{ Names map[*string]string }
	type column struct{ Rooms []struct{ Windows int64 } }
	type twice struct {
		Rooms []struct {
			A string `parquet:"the_name"`
			B string `parquet:"the_name"`
		}
	}
	type null struct{ Rooms []struct{ Cost int64 } }
	type cost struct {
		Rooms []struct {
			Cost int64 `parquet:",decimal(2:15)"`
		}
	}
	type flat struct{ ID []int64 }
	type plain struct{ Prices int64 }
	for _, c := range []struct {
		read  func() error
		words []string
	}{
		{failed[number](file, Filter{}), []string{"column Rooms is a list", "field number.Rooms has type int64"}},
		{failed[element](file, Filter{}), []string{"is a group", "field element.Rooms[] has type int64"}},
		{failed[list](file, Filter{}), []string{"column Names is a map", "list.Names has type []string"}},
		{failed[structure](file, Filter{}), []string{"column Names is a map", "structure.Names"}},
		{failed[key](file, Filter{}), []string{"BYTE_ARRAY STRING", "field key.Names as key has type int64"}},
		{failed[pointers](file, Filter{}), []string{"pointers.Names", "*string", "not compared by value"}},
		{failed[column](file, Filter{}), []string{"has no column Windows", "field .Windows needs"}},
		{failed[twice](file, Filter{}), []string{"the_name", ".B"}},
		{failed[null](file, Filter{}), []string{"DECIMAL(15,2)", ".Cost", "int64"}},
		{failed[cost](file, Filter{}), []string{"row 0", "column Cost is null", ".Cost is no pointer"}},
		{failed[flat](file, Filter{}), []string{"column ID", "INT64", "flat.ID", "[]int64"}},
		{failed[plain](file, Filter{}), []string{"column Prices is repeated", "plain.Prices has type int64"}},
		{failed[house](file, Where("Rooms.list.element.Cost", Less, Decimal{1, 2})), []string{"Rooms.list.element.Cost", "which filters do not compare"}},
	} {
		err := c.read()
		for _, word := range c.words {
			if err == nil || !strings.Contains(err.Error(), word) {
				t.Errorf("%v, want %q", err, word)
			}
		}
	}
}

// TestNestedParts: a Date that would be written without its type, and elements that may be nil without their level, are refused.
func TestNestedParts(t *testing.T) {
	type list struct{ Days []Date }
	type inner struct{ Day Date }
	type group struct{ Inner []inner }
	type pointers struct{ Inner []*inner }
	type deep struct {
		Values [][]*int64 `parquet:",list"`
	}
	type nullable struct {
		Values []*int64 `parquet:",list"`
	}
	type itself struct {
		Day  Date `parquet:",date"`
		Next []itself
	}
	for of, want := range map[reflect.Type]string{
		reflect.TypeFor[list]():     "field list.Days has elements of type Date",
		reflect.TypeFor[group]():    "field inner.Day needs date in its tag",
		reflect.TypeFor[pointers](): "field pointers.Inner has elements that may be nil",
		reflect.TypeFor[deep]():     "field deep.Values has elements that may be nil",
		reflect.TypeFor[nullable](): "",
		reflect.TypeFor[house]():    "",
	} {
		if _, err := schemaOf(of); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", of, err, want)
		}
	}
	if err := checkParts(reflect.TypeFor[itself](), 0); err == nil || !strings.Contains(err.Error(), "contains itself") {
		t.Error(err)
	}
}

// TestLargeRows: a batch ends when its rows have many values, in whatever columns, and all rows are read once.
func TestLargeRows(t *testing.T) {
	type row struct {
		N     int64
		Nulls []*int64 `parquet:",list"`
		Other []int32
	}
	var want []row
	for i := range 40 {
		r := row{N: int64(i), Nulls: make([]*int64, 1)}
		if i%5 == 0 {
			r.Nulls = make([]*int64, batchValues/3)
		}
		if i%7 == 0 {
			r.Other = make([]int32, batchValues/2)
		}
		want = append(want, r)
	}
	file := written(t, want, len(want))
	f, err := open(bytes.NewReader(file), int64(len(file)), parquetfile.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	sources, err := bind(f, reflect.TypeFor[row](), Filter{})
	if err == nil {
		_, err = begin(f, 0, sources)
	}
	if err != nil {
		t.Fatal(err)
	}
	if n, err := ahead(sources, len(want)); n != 8 || err != nil { // up to the second row with many Other
		t.Errorf("a batch of %d rows, %v, want 8", n, err)
	}
	n := 0
	_, err = scan(f, Filter{}, 0, math.MaxInt64, func(got row) bool {
		if got.N != want[n].N || len(got.Nulls) != len(want[n].Nulls) || len(got.Other) != len(want[n].Other) {
			t.Errorf("row %d: row %d with %d and %d elements", n, got.N, len(got.Nulls), len(got.Other))
		}
		n++
		return true
	})
	if n != len(want) || err != nil {
		t.Errorf("%d rows of %d, %v", n, len(want), err)
	}
}

// TestCopies: a dictionary's long value in many rows is copied for a few rows at a time, in a field of its own and in lists.
func TestCopies(t *testing.T) {
	type flat struct {
		B []byte `parquet:",dict"`
	}
	type list struct {
		B [][]byte `parquet:",dict"`
	}
	const rows = 600
	value := bytes.Repeat([]byte{1}, 200<<10) // headers of pages, of 1 MiB at most, have it four times
	read := func(t *testing.T, file []byte, scanned func(f *parquetfile.File, yield func([]byte) bool) error) {
		first := func(most int) {
			f, err := open(bytes.NewReader(file), int64(len(file)), parquetfile.Limits{})
			n := 0
			if err == nil {
				err = scanned(f, func(b []byte) bool {
					if n++; !bytes.Equal(b, value) {
						t.Errorf("row %d has %d bytes", n, len(b))
					}
					return n < most
				})
			}
			if n != most || err != nil {
				t.Errorf("%d rows of %d, %v", n, most, err)
			}
		}
		first(rows)
		membound.Bound{Free: 64 << 20}.Check(t, 0, func() { first(1) })
	}
	t.Run("field", func(t *testing.T) {
		read(t, written(t, slices.Repeat([]flat{{value}}, rows), rows), func(f *parquetfile.File, yield func([]byte) bool) error {
			_, err := scan(f, Filter{}, 0, math.MaxInt64, func(r flat) bool { return yield(r.B) })
			return err
		})
	})
	t.Run("list", func(t *testing.T) {
		read(t, written(t, slices.Repeat([]list{{[][]byte{value}}}, rows), rows), func(f *parquetfile.File, yield func([]byte) bool) error {
			_, err := scan(f, Filter{}, 0, math.MaxInt64, func(r list) bool { return yield(r.B[0]) })
			return err
		})
	})
}
