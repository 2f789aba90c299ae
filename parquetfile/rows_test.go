package parquetfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"
	"pgregory.net/rapid"

	"github.com/quernmr/quern/internal/membound"
)

// nested has lists, maps and groups in each other.
type nested struct {
	ID     int64               `parquet:"id"`
	Tags   []string            `parquet:"tags,list"`
	Plain  []int32             `parquet:"plain"`
	Counts map[string]int64    `parquet:"counts"`
	Inner  inner               `parquet:"inner"`
	Maybe  *inner              `parquet:"maybe,optional"`
	All    []inner             `parquet:"all,list"`
	Lists  map[string][]string `parquet:"lists"`
}

type inner struct {
	A    *int64   `parquet:"a,optional"`
	List []point2 `parquet:"list"`
}

type point2 struct {
	X float64  `parquet:"x"`
	Y []string `parquet:"y,list"`
}

func drawInner(t *rapid.T) (in inner) {
	if rapid.Bool().Draw(t, "a") {
		a := rapid.Int64().Draw(t, "value")
		in.A = &a
	}
	for range rapid.IntRange(0, 2).Draw(t, "points") {
		in.List = append(in.List, point2{rapid.Float64().Draw(t, "x"), drawTexts(t)})
	}
	return in
}

func drawTexts(t *rapid.T) []string {
	return rapid.SliceOfN(rapid.StringOfN(rapid.SampledFrom([]rune("ab\"\n\u00fc\U0001d11e")), 0, 3, -1), 0, 3).Draw(t, "texts")
}

func drawNested(t *rapid.T) nested {
	n := nested{ID: rapid.Int64().Draw(t, "id"), Tags: drawTexts(t), Inner: drawInner(t), Counts: map[string]int64{}, Lists: map[string][]string{}}
	n.Plain = rapid.SliceOfN(rapid.Int32(), 0, 4).Draw(t, "plain")
	for _, key := range drawTexts(t) {
		n.Counts[key] = n.ID
		n.Lists[key] = drawTexts(t)
	}
	if rapid.Bool().Draw(t, "maybe") {
		in := drawInner(t)
		n.Maybe = &in
	}
	for range rapid.IntRange(0, 2).Draw(t, "all") {
		n.All = append(n.All, drawInner(t))
	}
	return n
}

func writtenRows[T any](t interface{ Fatal(...any) }, rows []T, group int, options ...parquet.WriterOption) []byte {
	var file bytes.Buffer
	w := parquet.NewGenericWriter[T](&file, options...)
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

// asJSON returns the rows of a file, a line each.
func asJSON(file []byte, limits Limits) (string, error) {
	f, err := Open(bytes.NewReader(file), int64(len(file)), limits)
	if err != nil {
		return "", err
	}
	f.Brotli = func(packed io.Reader) io.Reader { return brotli.NewReader(packed) }
	var all strings.Builder
	for g := range f.Groups {
		if f.Groups[g].Rows == 0 {
			continue
		}
		rows, err := f.ReadRows(g, f.Root)
		if err != nil {
			return all.String(), err
		}
		for range f.Groups[g].Rows {
			v, err := rows.Next()
			if err != nil {
				return all.String(), err
			}
			if err := f.WriteJSON(&all, f.Root, v); err != nil {
				return "", err
			}
		}
	}
	return all.String(), nil
}

// TestRows: rows with lists, maps and groups come back, as encoding/json reads them.
func TestRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.Custom(drawNested), 1, 8).Draw(t, "rows")
		version := rapid.IntRange(1, 2).Draw(t, "version")
		file := writtenRows(t, want, rapid.IntRange(1, 8).Draw(t, "group"), parquet.DataPageVersion(version), parquet.PageBufferSize(rapid.IntRange(1, 300).Draw(t, "page")))
		text, err := asJSON(file, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		checkRows(t, text, want)
	})
}

func checkRows(t interface{ Fatalf(string, ...any) }, text string, want []nested) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d lines, want %d", len(lines), len(want))
	}
	for i, line := range lines {
		var got nested
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if normal(got) != normal(want[i]) {
			t.Fatalf("row %d: %s\nwant %s", i, line, normal(want[i]))
		}
	}
}

// normal prints a row, with nil as empty.
func normal(n nested) string {
	text, err := json.Marshal(n)
	if err != nil {
		panic(err)
	}
	return strings.NewReplacer(`"Tags":null`, `"Tags":[]`, `"Plain":null`, `"Plain":[]`, `"All":null`, `"All":[]`, `"List":null`, `"List":[]`, `"Y":null`, `"Y":[]`).Replace(string(text))
}

// TestDuckDBNested: files of DuckDB with lists, maps and structs have the rows that DuckDB prints.
func TestDuckDBNested(t *testing.T) {
	want, err := os.ReadFile("testdata/nested.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"nested-v1.parquet", "nested-v2.parquet"} {
		file, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := asJSON(file, Limits{}); got != string(want) || err != nil {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
}

// TestJSONValues: values of each type have their forms.
func TestJSONValues(t *testing.T) {
	for _, c := range []struct {
		t    Type
		v    any
		want string
	}{
		{Type{Physical: format.Boolean}, true, "true"},
		{Type{Physical: format.Int32, Logical: Unsigned, Bits: 8}, int32(-1), "255"},
		{Type{Physical: format.Int64, Logical: Unsigned, Bits: 64}, int64(-1), "18446744073709551615"},
		{Type{Physical: format.Int32, Logical: Decimal, Scale: 3, Digits: 9}, int32(-5), "-0.005"},
		{Type{Physical: format.Int64, Logical: Decimal, Scale: 2, Digits: 15}, int64(12345), "123.45"},
		{Type{Physical: format.Int64, Logical: Decimal, Digits: 15}, int64(-7), "-7"},
		{Type{Physical: format.ByteArray, Logical: Decimal, Scale: 1, Digits: 30}, "\xff\x00", "-25.6"},
		{Type{Physical: format.FixedLenByteArray, Length: 16, Logical: Decimal, Scale: 2, Digits: 30}, strings.Repeat("\x00", 7) + "\x01" + strings.Repeat("\x00", 8), "184467440737095516.16"},
		{Type{Physical: format.Int32, Logical: Date}, int32(-1), `"1969-12-31"`},
		{Type{Physical: format.Int64, Logical: Timestamp, Unit: "MICROS"}, int64(1_500_000), `"1970-01-01T00:00:01.5Z"`},
		{Type{Physical: format.Int64, Logical: Timestamp, Unit: "MILLIS", Local: true}, int64(1000), `"1970-01-01T00:00:01"`},
		{Type{Physical: format.Int96}, "\x01\x00\x00\x00\x00\x00\x00\x00\x8c\x3d\x25\x00", `"1970-01-01T00:00:00.000000001Z"`},
		{Type{Physical: format.Float}, float32(0.1), "0.1"},
		{Type{Physical: format.Double}, 1e300, "1.0E300"},
		{Type{Physical: format.Double}, math.Inf(-1), `"-Infinity"`},
		{Type{Physical: format.ByteArray, Logical: String}, "\u00fc\n", `"` + "\u00fc" + `\n"`},
		{Type{Physical: format.ByteArray}, "\xfca", `"` + "\u00fc" + `a"`},
	} {
		if got := string(appendValue(nil, c.t, c.v)); got != c.want {
			t.Errorf("%s %v: %s, want %s", c.t, c.v, got, c.want)
		}
	}
}

// TestLongDecimal: a decimal of bytes that would take minutes is refused by name; one of as many digits as types may have is not.
func TestLongDecimal(t *testing.T) {
	f := &File{Columns: []ColumnInfo{{Name: "price", Type: Type{Physical: format.ByteArray, Logical: Decimal, Scale: 1, Digits: 9}}}}
	for size, want := range map[int]string{4153: "", maxDecimal: "", maxDecimal + 1: "column price has a decimal of 8193 bytes", 64 << 20: "column price has a decimal of 67108864 bytes"} {
		err := f.WriteJSON(io.Discard, &Node{}, strings.Repeat("\x7f", size))
		if e, refused := errors.AsType[*Error](err); refused != (want != "") || refused && !strings.Contains(e.Error(), want) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// TestLargeLine: a row that prints much more than the file has is written in little memory, until an error of the writer.
func TestLargeLine(t *testing.T) {
	type row struct {
		Texts []string `parquet:",dict"`
	}
	file := writtenRows(t, []row{{slices.Repeat([]string{strings.Repeat("x", 100_000)}, 5000)}}, 1)
	f, err := Open(bytes.NewReader(file), int64(len(file)), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := f.ReadRows(0, f.Root)
	if err != nil {
		t.Fatal(err)
	}
	v, err := rows.Next()
	if err != nil {
		t.Fatal(err)
	}
	full := errors.New("disk full")
	for limit, want := range map[int]error{1 << 30: nil, 1000: full} {
		to := &limited{left: limit, err: full}
		membound.Bound{Free: 4 << 20}.Check(t, 0, func() {
			if err := f.WriteJSON(to, f.Root, v); err != want {
				t.Errorf("%v, want %v", err, want)
			}
		})
		if want == nil && to.n != len(`{"Texts":[]}`)+5000*100_003 {
			t.Errorf("%d bytes", to.n)
		}
	}
}

// limited counts bytes, and fails after some.
type limited struct {
	n, left int
	err     error
}

func (w *limited) Write(p []byte) (int, error) {
	if w.n += len(p); w.n > w.left {
		return 0, w.err
	}
	return len(p), nil
}

// TestElement has the forms of lists in the specification of logical types.
func TestElement(t *testing.T) {
	leaf, optional := &Node{Name: "element"}, &Node{Name: "item", Optional: true}
	repeated := func(name string, shape Shape, children ...*Node) *Node {
		return &Node{Name: name, Repeated: true, Shape: shape, Children: children}
	}
	for name, c := range map[string]struct {
		entry *Node
		child bool // the element is the only child
	}{
		"three levels":            {repeated("list", Group, optional), true},
		"other name":              {repeated("bag", Group, leaf), true},
		"two levels, no group":    {repeated("element", Leaf), false},
		"several fields":          {repeated("element", Group, leaf, optional), false},
		"one field, named array":  {repeated("array", Group, leaf), false},
		"one field, named _tuple": {repeated("my_list_tuple", Group, leaf), false},
		"one repeated field":      {repeated("list", Group, repeated("x", Leaf)), false},
	} {
		if c.entry.isElement("my_list") == c.child {
			t.Errorf("%s: the element is the repeated node: %v", name, c.child)
		}
	}
}

// TestOlderForms: lists and maps with older annotations, and groups with an annotation but another form.
func TestOlderForms(t *testing.T) {
	type entry struct {
		Key   string
		Value int64
	}
	type row struct {
		L struct{ Array []entry }
		M struct{ Map []entry }
		X struct{ A int64 }
	}
	r := row{}
	r.L.Array, r.M.Map, r.X.A = []entry{{"a", 1}}, []entry{{"b", 2}}, 3
	file := writtenRows(t, []row{r, {}}, 2)
	plain := `{"L":{"Array":[{"Key":"a","Value":1}]},"M":{"Map":[{"Key":"b","Value":2}]},"X":{"A":3}}` + "\n" + `{"L":{"Array":[]},"M":{"Map":[]},"X":{"A":0}}` + "\n"
	if got, err := asJSON(file, Limits{}); got != plain || err != nil {
		t.Errorf("%s%v", got, err)
	}
	annotated := withFooter(t, file, func(m *format.FileMetaData) {
		for i := range m.Schema {
			switch e := &m.Schema[i]; e.Name {
			case "L", "X":
				e.ConvertedType.Valid, e.ConvertedType.V = true, deprecated.List
			case "M":
				e.ConvertedType.Valid, e.ConvertedType.V = true, deprecated.MapKeyValue
			}
		}
	})
	want := `{"L":[{"Key":"a","Value":1}],"M":{"b":2},"X":{"A":3}}` + "\n" + `{"L":[],"M":{},"X":{"A":0}}` + "\n"
	if got, err := asJSON(annotated, Limits{}); got != want || err != nil {
		t.Errorf("%s%v", got, err)
	}
}

// TestOtherKeys: maps with keys that are no texts are lists of objects.
func TestOtherKeys(t *testing.T) {
	type row struct{ M map[int64]string }
	got, err := asJSON(writtenRows(t, []row{{map[int64]string{7: "x"}}, {}}, 2), Limits{})
	if want := `{"M":[{"key":7,"value":"x"}]}` + "\n" + `{"M":[]}` + "\n"; got != want || err != nil {
		t.Errorf("%s%v", got, err)
	}
}

func someNested(n int) (all []nested) {
	for i := range n {
		text := strings.Fields(strings.Repeat(fmt.Sprint("word", i, " "), i%4))
		a := int64(i)
		in := inner{&a, []point2{{float64(i), text}, {1, nil}}[:i%3]}
		all = append(all, nested{ID: a, Tags: text, Plain: []int32{1, int32(i)}[:i%3], Counts: map[string]int64{"n": a}, Inner: in, All: []inner{in, {}, in}[:i%4], Lists: map[string][]string{fmt.Sprint(i): text}})
		if i%2 == 0 {
			all[i].Maybe = &in
		}
	}
	return all
}

// TestDamagedRows: a damaged file gives an error with its place, or the right rows, and takes little memory. The
// footer, with names and forms of groups, has no checksum.
func TestDamagedRows(t *testing.T) {
	want := someNested(40)
	for version := 1; version <= 2; version++ {
		file := writtenRows(t, want, 25, parquet.DataPageVersion(version), parquet.PageBufferSize(500))
		right, err := asJSON(file, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		checkRows(t, right, want)
		refused := 0
		for seed := range 1000 {
			random := rand.New(rand.NewPCG(9, uint64(seed)))
			bad := slices.Clone(file)
			what := damage(random, &bad)
			var got string
			var err error
			bound.Check(t, len(bad), func() { got, err = asJSON(bad, Limits{Free: 1 << 20}) })
			footer := len(bad) == len(file) && !bytes.Equal(bad[len(bad)-8-footerSize(file):], file[len(file)-8-footerSize(file):])
			switch {
			case err == nil && got != right && !footer:
				t.Errorf("version %d, seed %d, %s: wrong rows", version, seed, what)
			case err != nil && !errors.As(err, new(*Error)):
				t.Errorf("version %d, seed %d, %s: %v has no place", version, seed, what, err)
			case err != nil:
				refused++
			}
		}
		if refused < 600 {
			t.Errorf("only %d of 1000 damaged files were refused", refused)
		}
	}
}

// TestLyingLevels: columns with other levels than their neighbours, and rows with too many values, are refused.
func TestLyingLevels(t *testing.T) {
	n := &Node{Name: "L", Repeated: true, Shape: Group, maxDef: 1, maxRep: 1, Children: []*Node{
		{Name: "A", maxDef: 1, maxRep: 1}, {Name: "B", Column: 1, maxDef: 1, maxRep: 1}}}
	for name, c := range map[string]struct {
		reps, defs string // of B; A has one row of two elements
		text       string
	}{
		"same":        {"01", "11", ""},
		"other row":   {"00", "11", "levels 0 and 1"},
		"null":        {"01", "10", "levels 1 and 0"},
		"fewer":       {"0", "1", "fewer values than rows"},
		"more":        {"011", "111", "values after its last row"},
		"another row": {"010", "111", "values after its last row"},
	} {
		f := &File{Columns: make([]ColumnInfo, 2)}
		r := &Rows{f: f, node: n, left: 1, leaves: []leaf{fakeLeaf("01", "11"), fakeLeaf(c.reps, c.defs)}}
		_, err := r.Next()
		if c.text == "" && err != nil || c.text != "" && (err == nil || !strings.Contains(err.Error(), c.text)) {
			t.Errorf("%s: %v, want %q", name, err, c.text)
		}
	}
	many := fakeLeaf("01", "11")
	many.budget = -1
	if _, _, _, err := many.peek(); err == nil || !strings.Contains(err.Error(), "too many values") {
		t.Error(err)
	}
}

// fakeLeaf has levels, each a digit.
func fakeLeaf(reps, defs string) *levels[int64] {
	c := &Column[int64]{info: &ColumnInfo{Name: "c", maxDef: 1, maxRep: 1}, chunk: &chunk{}}
	l := &levels[int64]{Column: c, n: len(reps), values: make([]int64, len(reps))}
	for i := range reps {
		l.reps, l.defs = append(l.reps, uint32(reps[i]-'0')), append(l.defs, uint32(defs[i]-'0'))
	}
	return l
}

func FuzzRows(f *testing.F) {
	for version := 1; version <= 2; version++ {
		f.Add(writtenRows(f, someNested(5), 5, parquet.DataPageVersion(version)))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		bound.Check(t, len(file), func() {
			if _, err := asJSON(file, Limits{Free: 1 << 16, MaxRatio: 10}); err != nil && !errors.As(err, new(*Error)) {
				t.Errorf("%v has no place", err)
			}
		})
	})
}
