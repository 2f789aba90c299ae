package mapreduce_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/mapreduce/mrtest"
)

type sale struct {
	Item   string `csv:"item" json:"item"`
	Amount int64  `csv:"amount" json:"amount"`
}

// sales adds up the amounts of items.
func sales(in mapreduce.Input[sale]) *mapreduce.Job {
	amounts := mapreduce.Map(in, func(_ *mapreduce.Task, s sale, emit func(string, int64)) error {
		emit(s.Item, s.Amount)
		return nil
	})
	return mapreduce.Fold(amounts, mapreduce.Sum).Job("sales")
}

// failure runs a job on files, and returns the error with which it fails.
func failure(t *testing.T, job mrtest.Runnable, files map[string]string) (text string) {
	t.Helper()
	defer func() {
		p := recover()
		if text = fmt.Sprint(p); p == nil {
			t.Error("the job succeeds")
		}
	}()
	mrtest.PrintFiles(job, files)
	return ""
}

func wantFailure(t *testing.T, job mrtest.Runnable, files map[string]string, words ...string) {
	t.Helper()
	text := failure(t, job, files)
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("error %q, want %q in it", text, w)
		}
	}
}

func TestCSV(t *testing.T) {
	job := sales(mapreduce.CSV[sale](mapreduce.CSVFormat{}))
	out := mrtest.RunFiles(t, job, map[string]string{
		"a.csv": "\xef\xbb\xbfitem,amount\r\n\"pen, red\",2\r\n\r\n\"a \"\"b\"\"\nc\",3\r\n", "b.csv": "amount,colour,item\n5,red,cup\n", "empty.csv": ""})
	if want := "a \"b\"\nc\t3\ncup\t5\npen, red\t2\n"; out.Text() != want {
		t.Errorf("got %q, want %q", out.Text(), want)
	}
	job = sales(mapreduce.CSV[sale](mapreduce.CSVFormat{Separator: ';', NoHeader: true}))
	if got := mrtest.Run(t, job, "pen;2\npen;3\n"); got != "pen\t5\n" {
		t.Errorf("without a header: %q", got)
	}
}

func TestCSVErrors(t *testing.T) {
	for content, words := range map[string][]string{
		"item,amount\npen,1\ncup\n":         {"/a.csv, offset 18, line 3: bad input: ", "the row has 1 fields, but the first row has 2"},
		"item,amount\n\"pen\n\",1\ncup,x\n": {"/a.csv, offset 21, line 4: bad input: ", `column amount: "x" as int64: invalid syntax`},
		"item,amount\n\"pen,1\ncup,2\n":     {"/a.csv, offset 12, line 2: bad input: ", "field 1 has no closing quote"},
		"item,price\npen,1\n":               {"/a.csv, offset 0, line 1: bad input: ", `there is no column "amount"; the columns are: item, price`},
		"item,amount,amount\npen,1,2\n":     {"/a.csv, offset 0, line 1: bad input: ", `two columns are named "amount"`},
	} {
		wantFailure(t, sales(mapreduce.CSV[sale](mapreduce.CSVFormat{})), map[string]string{"a.csv": content}, words...)
	}
	job := sales(mapreduce.CSV[sale](mapreduce.CSVFormat{}))
	job.Properties = map[string]string{"mapreduce.map.skip.maxrecords": "1", "mapreduce.job.skip.outdir": "none"}
	if got := mrtest.RunFiles(t, job, map[string]string{"a.csv": "item,amount\npen,1\ncup\nmug,2\n"}).Text(); got != "mug\t2\npen\t1\n" {
		t.Errorf("with skipping: %q", got)
	}
}

func TestJSONLines(t *testing.T) {
	job := sales(mapreduce.JSONLines[sale]())
	if got := mrtest.Run(t, job, `{"item":"pen","amount":2,"colour":"red"}`+"\n \n"+`{"item":"cup\n"}`+"\n"); got != "cup\n\t0\npen\t2\n" {
		t.Errorf("got %q", got)
	}
	wantFailure(t, job, map[string]string{"a": "{}\n{\"amount\":\"x\"}\n"}, "/a, offset 3, line 2: bad input: ", "cannot unmarshal string")
	job.Properties = map[string]string{"mapreduce.map.skip.maxrecords": "1", "mapreduce.job.skip.outdir": "none"}
	if got := mrtest.Run(t, job, "{\"item\":\"pen\"}\nbad\n"); got != "pen\t0\n" {
		t.Errorf("with skipping: %q", got)
	}
}

// TestJSONLinesNameTheField: errors of methods of a field's type name the field.
func TestJSONLinesNameTheField(t *testing.T) {
	type event struct {
		At   time.Time `json:"at"`
		Days []time.Time
		N    int8
	}
	job := mapreduce.Sort(mapreduce.Map(mapreduce.JSONLines[event](), func(_ *mapreduce.Task, e event, emit func(string, int)) error {
		emit(e.At.String(), int(e.N))
		return nil
	})).Job("events")
	for line, words := range map[string][]string{
		`{"Days":[],"N":1,"at":"noon"}`:                 {`/a, offset 0, line 1: bad input: field at: parsing time "noon"`},
		`{"at":"2026-11-28T12:00:00Z","days":["noon"]}`: {`bad input: field days: parsing time "noon"`},
		`{"N":300}`: {"bad input: json: cannot unmarshal number 300 into Go struct field event.N"},
		`{"at":"n`:  {"bad input: unexpected end of JSON input"},
		`["noon"]`:  {"bad input: json: cannot unmarshal array into Go value"},
	} {
		wantFailure(t, job, map[string]string{"a": line + "\n"}, words...)
	}
}

// TestPosition: a map asks for the places of its records, of lines and of a format of its own.
func TestPosition(t *testing.T) {
	place := func(task *mapreduce.Task, rec string, emit func(string, string)) error {
		line, err := task.Line()
		at := task.Position()
		emit(rec, fmt.Sprint(at.File[strings.LastIndex(at.File, "/")+1:], " ", at.Offset, " ", line))
		return err
	}
	files := map[string]string{"a": "x\ny\nz\n", "b": "long line\nw"}
	want := "long line\tb 0 1\nw\tb 10 2\nx\ta 0 1\ny\ta 2 2\nz\ta 4 3\n"
	for name, in := range map[string]mapreduce.Input[string]{
		"lines": mapreduce.Lines(),
		"own":   mapreduce.NewFileInput("own", ownLines),
	} {
		pairs := mapreduce.Map(in, place)
		if got := mrtest.RunFiles(t, mapreduce.Sort(pairs).Job(name), files).Text(); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	reduce := mapreduce.Reduce(mapreduce.Map(mapreduce.Lines(), place), func(task *mapreduce.Task, k string, _ iter.Seq[string], emit func(string, string)) error {
		_, err := task.Line()
		emit(k, fmt.Sprint(task.Position(), err))
		return nil
	})
	if got := mrtest.Run(t, reduce.Job("reduce"), "x\n"); !strings.Contains(got, "{ -1} a reduce has no current line") {
		t.Errorf("in a reduce: %q", got)
	}
}

// ownLines reads lines, and says where they are.
func ownLines(s mapreduce.Split, file io.Reader) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		in, offset := bufio.NewReader(file), int64(0)
		for line := int64(1); ; line++ {
			text, err := in.ReadString('\n')
			if text == "" {
				if !errors.Is(err, io.EOF) {
					yield("", err)
				}
				return
			}
			s.At(offset, line)
			if offset += int64(len(text)); !yield(strings.TrimSuffix(text, "\n"), nil) {
				return
			}
		}
	}
}

// TestWhole: files of an own format are not split, if the input says so.
func TestWhole(t *testing.T) {
	read := func(s mapreduce.Split, in io.ReaderAt) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) { yield(fmt.Sprint(s.Offset, " ", s.Length), nil) }
	}
	in := mapreduce.NewInput("whole", read).Whole()
	pairs := mapreduce.Map(in, func(_ *mapreduce.Task, rec string, emit func(string, int64)) error { emit(rec, 1); return nil })
	if got := mrtest.RunFiles(t, mapreduce.Sort(pairs).Job("whole"), map[string]string{"a": strings.Repeat("x", 100), "b": ""}).Text(); got != "0 0\t1\n0 100\t1\n" {
		t.Errorf("got %q", got)
	}
	wrong := mapreduce.Map(mapreduce.Lines().Whole(), func(_ *mapreduce.Task, rec string, emit func(string, int64)) error { return nil })
	wantFailure(t, mapreduce.Sort(wrong).Job("wrong"), nil, "input format lines: Whole is for inputs of NewInput")
}

// TestKeyInCombiners: errors and panics of code that combines map output name the key, also in a join.
func TestKeyInCombiners(t *testing.T) {
	words := func() *mapreduce.Pairs[string, string] {
		return mapreduce.Map(mapreduce.Lines(), func(_ *mapreduce.Task, line string, emit func(string, string)) error {
			emit("a\ta", line)
			emit("b", line)
			return nil
		})
	}
	odd := func(a, b string) string { panic("odd") }
	group := func(fail func() error) *mapreduce.Pairs[string, string] {
		return words().CombineGroup(func(_ *mapreduce.Task, k string, _ iter.Seq[string], _ func(string)) error {
			if k != "b" {
				return nil
			}
			return fail()
		})
	}
	join := func(_ *mapreduce.Task, _ string, _, _ iter.Seq[string], _ func(string, string)) error { return nil }
	for name, c := range map[string]struct {
		result *mapreduce.Result[string, string]
		want   string
	}{
		"fold":        {mapreduce.Fold(words(), odd), `combine the values of key "a\ta": panic: odd`},
		"combine":     {mapreduce.Sort(words().Combine(odd)), `combine the values of key "a\ta": panic: odd`},
		"group":       {mapreduce.Sort(group(func() error { panic("odd") })), `combine the values of key "b": panic: odd`},
		"group error": {mapreduce.Sort(group(func() error { return errors.New("odd") })), `combine the values of key "b": odd`},
		"join":        {mapreduce.Join(words(), group(func() error { panic("odd") }), join), `combine the values of key "b": panic: odd`},
	} {
		t.Run(name, func(t *testing.T) {
			job := c.result.Job("job")
			job.Properties = map[string]string{"mapreduce.map.maxattempts": "1"} // no retries
			wantFailure(t, job, map[string]string{"a": "x\ny\n"}, c.want)
		})
	}
}

// TestKeyInErrors: errors and panics of reduces name the key, also after its last value, in every kind of reduce.
func TestKeyInErrors(t *testing.T) {
	words := mapreduce.Map(mapreduce.Lines(), func(_ *mapreduce.Task, line string, emit func(string, int64)) error {
		emit(line, int64(len(line)))
		emit("a", 1)
		return nil
	})
	fail := func(k string, vals iter.Seq[int64], how string) error {
		for range vals {
		}
		switch {
		case k == "a":
			return nil
		case how == "panic":
			panic("odd")
		}
		return errors.New("odd")
	}
	for _, how := range []string{"error", "panic"} {
		want := `key "b\tb": odd`
		if how == "panic" {
			want = `key "b\tb": panic: odd`
		}
		results := map[string]*mapreduce.Result[string, int64]{
			"reduce": mapreduce.Reduce(words, func(_ *mapreduce.Task, k string, vals iter.Seq[int64], _ func(string, int64)) error {
				return fail(k, vals, how)
			}),
			"all": mapreduce.ReduceAll(words, func(_ *mapreduce.Task, groups iter.Seq2[string, iter.Seq[int64]], _ func(string, int64)) error {
				for k, vals := range groups {
					if err := fail(k, vals, how); err != nil {
						return err
					}
				}
				return nil
			}),
			"join": mapreduce.Join(words, words, func(_ *mapreduce.Task, k string, as, bs iter.Seq[int64], _ func(string, int64)) error {
				return fail(k, as, how)
			}),
		}
		for name, result := range results {
			job := result.Job(name)
			job.Properties = map[string]string{"mapreduce.reduce.maxattempts": "1"} // no retries
			t.Run(name+" "+how, func(t *testing.T) {
				text := failure(t, job, map[string]string{"in": "b\tb\n", "in2": "b\tb\n"})
				if !strings.Contains(text, want) {
					t.Errorf("error %.300q, want %q in it", text, want)
				}
			})
		}
	}
	after := mapreduce.ReduceAll(words, func(_ *mapreduce.Task, groups iter.Seq2[string, iter.Seq[int64]], _ func(string, int64)) error {
		for range groups {
		}
		return errors.New("cleanup")
	}).Job("after")
	if text := failure(t, after, map[string]string{"in": "b\n"}); strings.Contains(text, "key ") || !strings.Contains(text, "cleanup") {
		t.Errorf("after the last key: %q", text)
	}
}

// TestCheck: a map that emits other records in a second run fails the job before it starts, and the error has the
// first of them. The order of records does not matter.
func TestCheck(t *testing.T) {
	builds := 0
	job := func(mapOnly, random bool) mrtest.Runnable {
		return mrtest.Program(func() (*mapreduce.Job, error) {
			builds++
			n := builds
			pairs := mapreduce.Map(mapreduce.Lines(), func(_ *mapreduce.Task, line string, emit func(string, int64)) error {
				for word := range map[string]bool{"x": true, "y": true, "z": true} {
					emit(line+word, 1)
				}
				if random {
					emit("k", int64(n))
				}
				return nil
			})
			result := mapreduce.Fold(pairs, mapreduce.Sum)
			if mapOnly {
				result = mapreduce.MapOnly(pairs)
			}
			job := result.Job("check")
			job.Properties = map[string]string{"quern.check": "true"}
			return job, nil
		})
	}
	if got := mrtest.Run(t, job(false, false), "a\n"); got != "ax\t1\nay\t1\naz\t1\n" {
		t.Errorf("got %q", got)
	}
	mrtest.Run(t, job(true, false), "a\n")
	for _, mapOnly := range []bool{false, true} {
		wantFailure(t, job(mapOnly, true), map[string]string{"in": "a\n"}, "s_000000", "quern.check=true: job check, map of mem://mrtest/in/in from offset 0 emits something else",
			"in sorted order, \"k\\t", " instead of \"k\\t")
	}
}
