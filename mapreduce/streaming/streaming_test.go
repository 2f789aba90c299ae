package streaming

import (
	"bufio"
	"bytes"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/mapreduce/streaming/streamtest"
)

func TestWords(t *testing.T) {
	for command, want := range map[string][]string{
		"cat":                  {"cat"},
		"  python3  m.py -x ":  {"python3", "m.py", "-x"},
		"a'b c'd":              {"a", "b c", "d"},
		`awk '{print $1}' "x"`: {"awk", "{print $1}", "x"},
		`a '' b`:               {"a", "b"},
		`'a"b'`:                {`a"b`},
		`a\ b`:                 {`a\`, "b"},
		"a\tb":                 {"a\tb"},
		"":                     nil,
		"'open":                {"open"},
	} {
		if got := words(command); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", command, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		line, separator string
		fields          int
		key, value      string
	}{
		{"a\tb\tc", "\t", 1, "a", "b\tc"},
		{"a\tb\tc", "\t", 0, "a", "b\tc"},
		{"a\tb\tc", "\t", 2, "a\tb", "c"},
		{"a\tb\tc", "\t", 3, "a\tb\tc", ""},
		{"abc", "\t", 1, "abc", ""},
		{"\tx", "\t", 1, "", "x"},
		{"a::b:::c", "::", 2, "a::b", ":c"},
		{"", "\t", 1, "", ""},
	} {
		key, value := splitting{[]byte(c.separator), c.fields}.cut([]byte(c.line))
		if string(key) != c.key || string(value) != c.value {
			t.Errorf("%q at %d of %q: %q %q, want %q %q", c.line, c.fields, c.separator, key, value, c.key, c.value)
		}
	}
}

// simpleLines splits a text into lines, as the type lines does.
func simpleLines(text string) (all []string) {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	all = strings.Split(text, "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return all
}

func TestLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune("ab\r\n\n"))).Draw(t, "text")
		from := iotest.OneByteReader(strings.NewReader(text))
		if rapid.Bool().Draw(t, "at once") {
			from = strings.NewReader(text)
		}
		l := newLines(from, 1<<20, func() {})
		l.buf = make([]byte, rapid.IntRange(1, 8).Draw(t, "buffer"))
		var got []string
		for {
			line, err := l.next()
			if err != nil {
				break
			}
			got = append(got, string(line))
		}
		if want := simpleLines(text); !slices.Equal(got, want) {
			t.Fatalf("%q: %q, want %q", text, got, want)
		}
	})
}

// TestInputLines: lines reach a command whole, as often as they are written, also those that are longer than the buffer.
func TestInputLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var got, want bytes.Buffer
		in := &input{w: bufio.NewWriterSize(&got, 16)}
		for _, pieces := range rapid.SliceOf(rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 20), 1, 3)).Draw(t, "lines") {
			n := rapid.IntRange(1, 20).Draw(t, "times")
			if err := in.lines(n, pieces...); err != nil {
				t.Fatal(err)
			}
			want.Write(bytes.Repeat(append(bytes.Join(pieces, nil), '\n'), n))
		}
		if err := in.w.Flush(); err != nil || !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Fatalf("%q, %v, want %q", got.Bytes(), err, want.Bytes())
		}
	})
}

func TestLongLine(t *testing.T) {
	l := newLines(bytes.NewReader(bytes.Repeat([]byte("x"), 3<<20)), 1<<20, func() {})
	if _, err := l.next(); err == nil || !strings.Contains(err.Error(), "quern.record.max.bytes=1048576") {
		t.Errorf("a line of 3 MiB: %v", err)
	}
}

// TestCases: a case is parsed to what was written.
func TestCases(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		content := rapid.StringOf(rapid.SampledFrom([]rune("a\\\"\n\r\t=\x00 é"))).Draw(t, "content")
		c := &streamtest.Case{Comment: "# x\n", Args: []string{"-input", "in"}, Files: []streamtest.File{{Name: "f", Content: content}}, Exit: 5}
		got, err := streamtest.Parse(c.String())
		if err != nil || len(got.Files) != 1 || got.Files[0].Content != content || got.Exit != 5 || !slices.Equal(got.Args, c.Args) {
			t.Fatalf("%q became %+v, %v\n%s", content, got, err, c)
		}
	})
}
