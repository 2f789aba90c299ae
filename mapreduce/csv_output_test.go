package mapreduce

import (
	"bufio"
	"io"
	"iter"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/mapreduce/internal/bridge"
)

// csvRecord has a field of each kind that rows can have.
type csvRecord struct {
	Text  string
	Flag  bool
	Int   int16 `csv:"a; b"`
	Uint  uint64
	Float float32
	Wide  float64
	Time  time.Time
	Maybe *int
	Left  int `csv:"-"`
}

// TestCSVOutputIsReadAgain writes rows and reads them with the reader of [CSV].
func TestCSVOutputIsReadAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune("ab,;\"\r\n \ufeff")))
		want := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) csvRecord {
			return csvRecord{
				Text: text.Draw(t, "text"), Flag: rapid.Bool().Draw(t, "flag"), Int: rapid.Int16().Draw(t, "int"),
				Uint: rapid.Uint64().Draw(t, "uint"), Float: rapid.Float32().Draw(t, "float"), Wide: rapid.Float64().Draw(t, "wide"),
				Time:  time.Unix(rapid.Int64Range(0, 1<<32).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds")).UTC(),
				Maybe: rapid.Ptr(rapid.Int(), true).Draw(t, "maybe"),
			}
		}), 1, 5).Draw(t, "rows")
		format := CSVFormat{Separator: rapid.SampledFrom([]rune{0, ';', '→'}).Draw(t, "separator"), NoHeader: rapid.Bool().Draw(t, "no header")}
		if got := readRows[csvRecord](t, format, writeRows(t, format, want)); !reflect.DeepEqual(got, want) {
			t.Fatalf("read %+v, want %+v", got, want)
		}
	})
}

// TestCSVOutputOfStrings: rows of one empty field do not become empty lines.
func TestCSVOutputOfStrings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(1, 3).Draw(t, "width")
		field := rapid.StringOf(rapid.SampledFrom([]rune("a,\"\r\n\ufeff")))
		want := rapid.SliceOfN(rapid.SliceOfN(field, width, width), 1, 5).Draw(t, "rows")
		format := CSVFormat{NoHeader: true}
		if got := readRows[[]string](t, format, writeRows(t, format, want)); !reflect.DeepEqual(got, want) {
			t.Fatalf("read %q, want %q", got, want)
		}
	})
}

func writeRows[R any](t *rapid.T, format CSVFormat, rows []R) (text string) {
	output := CSVOutput(format, func(_ struct{}, r R) R { return r }).(*csvOutput[struct{}, R, R])
	if output.err != nil {
		t.Fatal(output.err)
	}
	task := &Task{}
	write := output.rows(task)
	for _, row := range rows {
		text += string(write(nil, struct{}{}, row))
	}
	if task.err != nil {
		t.Fatal(task.err)
	}
	return text
}

func readRows[R any](t *rapid.T, format CSVFormat, text string) (rows []R) {
	separator, err := format.separator()
	if err != nil {
		t.Fatal(err)
	}
	plan, err := rowPlanOf(reflect.TypeFor[R]())
	if err != nil {
		t.Fatal(err)
	}
	table := &csvTable{plan: plan, noHeader: format.NoHeader}
	in := &csvReader{in: bufio.NewReader(strings.NewReader(text)), separator: separator}
	for {
		row, err := in.next()
		if err == io.EOF {
			return rows
		}
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if !table.begun {
			isData, err := table.begin(row)
			if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			if !isData {
				continue
			}
		}
		var r R
		if err := table.decode(row, &r); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		rows = append(rows, r)
	}
}

type csvTotal struct {
	Word string
	N    int64 `csv:"total"`
}

// wordsAs counts words, and writes them in a format.
func wordsAs(f Format) bridge.Compiler {
	words := Map(Lines(), func(_ *Task, line string, emit func(string, int64)) error {
		for w := range strings.FieldsSeq(line) {
			emit(w, 1)
		}
		return nil
	})
	job := Reduce(words, func(t *Task, w string, ns iter.Seq[int64], emit func(string, int64)) error {
		total := int64(0)
		for n := range ns {
			total += n
		}
		emit(w, total)
		Write(t, "again", w, total)
		return nil
	}).Job("words")
	job.Format, job.Outputs = f, []string{"again"}
	return job
}

func TestCSVOutputFiles(t *testing.T) {
	b := &jobRunner{files: map[string]string{"in": "b,c a a"}, properties: map[string]string{"mapreduce.job.reduces": "2"}}
	out, err := b.run(wordsAs(CSVOutput(CSVFormat{}, func(w string, n int64) csvTotal { return csvTotal{w, n} })))
	if err != nil {
		t.Fatal(err)
	}
	var files int
	for name, text := range out {
		if text != "" && !strings.HasPrefix(text, "Word,total\n") {
			t.Errorf("%s has %q, without a header", name, text)
		}
		if text != "" {
			files++
		}
	}
	if all := mainText(out, "words"); !strings.Contains(all, "\"b,c\",1\n") || !strings.Contains(all, "\na,2\n") || files < 2 {
		t.Errorf("%d files, the main ones have %q", files, all)
	}
}

func TestCSVOutputRefused(t *testing.T) {
	row := func(w string, n int64) csvTotal { return csvTotal{w, n} }
	for want, f := range map[string]Format{
		"output of CSV: the separator cannot be \"\\n\"":                        CSVOutput(CSVFormat{Separator: '\n'}, row),
		"output of CSV: []string has no names for a header":                     CSVOutput(CSVFormat{}, func(string, int64) []string { return nil }),
		"output of CSV: field mapreduce.bad.A: a column cannot be a []int":      CSVOutput(CSVFormat{}, func(string, int64) (b bad) { return b }),
		"output of CSV: column T: mapreduce.readable has UnmarshalText, but no": CSVOutput(CSVFormat{}, func(string, int64) (r struct{ T readable }) { return r }),
		"does not write records of string and int64":                            CSVOutput(CSVFormat{}, func(n int64, w string) csvTotal { return csvTotal{w, n} }),
		"output of CSV: the row has 1 fields, but the first row of the file has 2": CSVOutput(CSVFormat{NoHeader: true}, func(w string, _ int64) []string {
			return strings.Split(w, ",")
		}),
	} {
		checkError(t, wordsAs(f), &jobRunner{files: map[string]string{"in": "a,b c"}}, want)
	}
}

type bad struct{ A []int }

type readable struct{}

func (*readable) UnmarshalText([]byte) error { return nil }
