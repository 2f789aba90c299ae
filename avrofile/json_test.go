package avrofile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/avro"
	"pgregory.net/rapid"

	"github.com/quernmr/quern/avrofile/container"
	"github.com/quernmr/quern/internal/membound"
)

// asJSON returns a file's records as lines of JSON.
func asJSON(file []byte) ([]string, error) {
	r, err := container.NewReader(bytes.NewReader(file), int64(len(file)), Limits{MaxRatio: 1000})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var out strings.Builder
	err = r.WriteJSON(&out)
	return slices.Collect(strings.Lines(out.String())), err
}

// again returns what the library reads in lines of JSON, encoded in hex.
func again(t require, schema *avro.Schema, lines []string) (all []string) {
	for _, line := range lines {
		var record any
		if err := schema.DecodeJSON([]byte(line), &record, avro.TaggedUnions()); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		encoded, err := schema.Encode(record)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		all = append(all, fmt.Sprintf("x%x", encoded))
	}
	return all
}

type require interface {
	Fatalf(format string, args ...any)
}

// TestJSON: the library reads in the JSON of Java's files the records that they have. TestCommandsOfHadoop of package
// fsshell compares lines with Hadoop's.
func TestJSON(t *testing.T) {
	sets := recordSets(t)
	for _, set := range []string{"all", "pairs", "texts", "empty"} {
		for _, codec := range Codecs() {
			name := "testdata/java/" + set + "-" + codec + ".avro"
			file, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			lines, err := asJSON(file)
			if got := again(t, open(t, set+"-"+codec+".avro").Schema, lines); err != nil || !slices.Equal(got, sets[set]) {
				t.Errorf("%s: %d records, want %d, %v", name, len(got), len(sets[set]), err)
			}
		}
	}
}

// TestJSONOfAnyText: any strings, bytes and numbers come back.
func TestJSONOfAnyText(t *testing.T) {
	type row struct {
		S string             `avro:"s"`
		B []byte             `avro:"b"`
		D float64            `avro:"d"`
		F float32            `avro:"f"`
		L []int64            `avro:"l"`
		M map[string]float64 `avro:"m"`
		U *string            `avro:"u"`
	}
	schema := avro.MustSchemaFor[row]()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String()
		want := row{S: text.Draw(t, "s"), B: rapid.SliceOf(rapid.Byte()).Draw(t, "b"), D: rapid.Float64().Draw(t, "d"), F: rapid.Float32().Draw(t, "f"), L: rapid.SliceOf(rapid.Int64()).Draw(t, "l")}
		want.M = map[string]float64{text.Draw(t, "key"): 1} // one entry, since the library's order of several is random
		if s := text.Draw(t, "u"); s != "" {
			want.U = &s
		}
		encoded, err := schema.Encode(&want)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := asJSON(write(schema, Options{}, []row{want}))
		if got := again(t, schema, lines); err != nil || len(got) != 1 || got[0] != fmt.Sprintf("x%x", encoded) {
			t.Fatalf("%s: %v, %v", lines, got, err)
		}
	})
}

// TestBadJSON: damaged schemas and records, and those without an end, are errors with an offset; what comes before them is
// printed.
func TestBadJSON(t *testing.T) {
	doubled := `{"type": "record", "name": "r0", "fields": []}`
	for i := range 60 {
		doubled = fmt.Sprintf(`{"type": "record", "name": "r%d", "fields": [{"name": "a", "type": %s}, {"name": "b", "type": "r%d"}]}`, i+1, doubled, i)
	}
	for name, c := range map[string]struct{ schema, content, text string }{
		"no JSON":         {`{`, "", "schema of the file: unexpected end of JSON input"},
		"no type":         {`{"name": "x"}`, "", "schema of the file: <nil> is no type"},
		"unknown type":    {`"text"`, "", `schema of the file: type "text" is not defined`},
		"no name":         {`{"type": "record", "fields": []}`, "", "is missing or defined twice"},
		"defined twice":   {`[{"type": "fixed", "name": "a", "size": 1}, {"type": "fixed", "name": "a", "size": 1}]`, "", `the name "a" of a type is missing or defined twice`},
		"no fields":       {`{"type": "record", "name": "r"}`, "", `record "r" has no fields`},
		"field":           {`{"type": "record", "name": "r", "fields": [{"name": "f"}]}`, "", `field "f" of "r": <nil> is no type`},
		"no size":         {`{"type": "fixed", "name": "r"}`, "", `fixed type "r" has the size <nil>`},
		"negative size":   {`{"type": "fixed", "name": "r", "size": -1}`, "", `fixed type "r" has the size -1`},
		"no items":        {`{"type": "array"}`, "", "<nil> is no type"},
		"itself":          {`{"type": "record", "name": "r", "fields": [{"name": "f", "type": "r"}]}`, "x", "record 0 of the block: values are nested more than 1000 times"},
		"doubled":         {doubled, "x", "record 0 of the block: it has too many values for its bytes"},
		"many nulls":      {`{"type": "array", "items": "null"}`, "\xfe\xff\xff\xff\xff\x0f\x00", "it has too many values for its bytes"},
		"short":           {`"double"`, "1234567", "record 0 of the block: it ends too early"},
		"long number":     {`"long"`, strings.Repeat("\xff", 11), "a number of more than 10 bytes"},
		"int":             {`"int"`, "\xfe\xff\xff\xff\x1f", "an int is 4294967295"},
		"boolean":         {`"boolean"`, "\x02", "a boolean is 2"},
		"string":          {`"string"`, "\x0aab", "a length of 5 bytes, where 2 are left"},
		"negative length": {`"bytes"`, "\x01", "a length of -1 bytes"},
		"branch":          {`["null", "long"]`, "\x04", "branch 2 of a union of 2"},
		"negative branch": {`["null", "long"]`, "\x01", "branch -1 of a union of 2"},
		"symbol":          {`{"type": "enum", "name": "e", "symbols": ["A"]}`, "\x02", "symbol 1 of an enum of 1"},
		"key":             {`{"type": "map", "values": "long"}`, "\x02\x06ab", "a length of 3 bytes, where 2 are left"},
		"more bytes":      {`"long"`, "\x02\x02", "the block has 1 bytes more than its 1 records"},
		"least count":     {`{"type": "array", "items": "long"}`, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00", "a number of more than 10 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			file := string(write(avro.MustParse(`"long"`), Options{Metadata: map[string]string{"x": "y"}}, []int64{5}))
			first := strings.Index(file, string(testSync[:])) + container.SyncSize
			header := strings.Replace(file[:first], "\x0c\"long\"", string(number(int64(len(c.schema))))+c.schema, 1)
			bad := header + "\x02" + string(number(int64(len(c.content)))) + c.content + string(testSync[:])
			var err error
			membound.Bound{Free: 64 << 20}.Check(t, 0, func() { _, err = asJSON([]byte(bad)) })
			if e, ok := errors.AsType[*Error](err); !ok || !strings.Contains(err.Error(), c.text) || e.Offset != 0 && e.Offset != int64(len(header)) {
				t.Errorf("%v, want %q", err, c.text)
			}
		})
	}
	three := write(entrySchema, Options{BlockSize: 1}, []entry{{Name: "a"}, {Name: "b"}, {Name: "c"}})
	if lines, err := asJSON(three[:len(three)-1]); err == nil || len(lines) != 2 || lines[1] != `{"name":"b","n":0,"words":[]}`+"\n" {
		t.Errorf("%q, %v", lines, err)
	}
}

// number encodes a long.
func number(n int64) []byte {
	b, err := avro.MustParse(`"long"`).Encode(n)
	if err != nil {
		panic(err)
	}
	return b
}

// TestJSONWriteError: an error of the writer is returned, and ends the reading.
func TestJSONWriteError(t *testing.T) {
	broken := errors.New("pipe")
	file := write(entrySchema, Options{}, []entry{{Name: strings.Repeat("x", 1<<20)}, {Name: "b"}})
	r, err := NewReader(bytes.NewReader(file), int64(len(file)), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.WriteJSON(failingWriter{broken}); !errors.Is(err, broken) {
		t.Error(err)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// TestSortedMaps: records with maps are written the same each time, and are read as they were.
func TestSortedMaps(t *testing.T) {
	type part struct {
		M map[string]string `avro:"m"`
		S string            `avro:"s"`
	}
	type other struct {
		B []byte                      `avro:"b"`
		M map[string]map[string]int64 `avro:"m"`
	}
	type row struct {
		N int64              `avro:"n"`
		M map[string][]int64 `avro:"m"`
		L []part             `avro:"l"`
		U *other             `avro:"u"`
	}
	schema := avro.MustSchemaFor[row]()
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOfN(rapid.Make[row](), 1, 3).Draw(t, "rows")
		file := write(schema, Options{}, rows)
		for range 3 {
			if !bytes.Equal(write(schema, Options{}, rows), file) {
				t.Fatal("another file")
			}
		}
		got, err := read[row](file, nil, Limits{})
		if err != nil || len(got) != len(rows) {
			t.Fatalf("%d rows, want %d, %v", len(got), len(rows), err)
		}
		for i := range got { // encoding/json sorts maps
			a, _ := json.Marshal(got[i])
			b, _ := json.Marshal(rows[i])
			empty := strings.NewReplacer("null", "[]", "{}", "[]", `""`, "[]")
			if empty.Replace(string(a)) != empty.Replace(string(b)) {
				t.Fatalf("%s\nwant %s", a, b)
			}
		}
	})
	if w, err := NewWriter(io.Discard, entrySchema, Options{}); err != nil || w.maps != nil {
		t.Errorf("records without maps are sorted: %v", err)
	}
}

// FuzzJSON: no file makes the printer panic, or take memory out of proportion.
func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"type": "record", "name": "r", "fields": [{"name": "a", "type": ["null", "r"]}, {"name": "b", "type": {"type": "map", "values": "bytes"}}]}`), []byte("\x02\x00\x00\x02\x02a\x02b\x00"))
	f.Add([]byte(`{"type": "array", "items": ["string", "double", {"type": "enum", "name": "e", "symbols": ["A"]}]}`), []byte("\x04\x00\x02a\x04\x00\x00"))
	f.Fuzz(func(t *testing.T, schema, content []byte) {
		file := slices.Concat([]byte("Obj\x01\x02\x16avro.schema"), number(int64(len(schema))), schema, []byte{0}, testSync[:], []byte{2}, number(int64(len(content))), content, testSync[:])
		membound.Bound{Free: 8 << 20, PerByte: 4 << 10}.Check(t, len(file), func() {
			r, err := container.NewReader(bytes.NewReader(file), int64(len(file)), Limits{})
			if err == nil {
				err = r.WriteJSON(&limited{left: 1 << 20})
			}
			if _, ok := errors.AsType[*Error](err); err != nil && !ok && !errors.Is(err, io.ErrShortWrite) {
				t.Errorf("error without offset: %v", err)
			}
		})
	})
}

// limited refuses more than some bytes.
type limited struct{ left int }

func (l *limited) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}
