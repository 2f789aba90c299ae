package runtime

import (
	"cmp"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/wire"
)

// simpleRecords is the reference for records with a delimiter. It leaves out long ones.
func simpleRecords(content, delimiter string, lineMax int) (records []string) {
	plain := delimiter == ""
	if plain {
		delimiter = lineFeed
	}
	all := strings.SplitAfter(content, delimiter)
	for i, record := range all {
		if i == 0 {
			record = strings.TrimPrefix(record, byteOrderMark)
		}
		if i == len(all)-1 && record == "" || len(record) >= lineMax {
			continue
		}
		body, ended := strings.CutSuffix(record, delimiter)
		if ended && plain {
			body = strings.TrimSuffix(body, "\r")
		}
		records = append(records, body)
	}
	return records
}

// TestDelimiters checks that every record is read exactly once and in order, with any delimiter, maximum length, and
// size of splits and blocks. Delimiters may cross splits and blocks, and share bytes.
func TestDelimiters(t *testing.T) {
	f := mem.New(128 << 20)
	rapid.Check(t, func(t *rapid.T) {
		delimiter := rapid.SampledFrom([]string{"", "\n", "a", "aa", "ab", "aba", "aab", "abab", "aabaa", "\r\n\r\n"}).Draw(t, "delimiter")
		letters := rapid.SampledFrom([]string{"a", "a", "b", "\n", "\r", "x", delimiter, strings.Repeat("b", 9)})
		content := rapid.SampledFrom([]string{"", "", byteOrderMark}).Draw(t, "mark") + strings.Join(rapid.SliceOfN(letters, 0, 40).Draw(t, "content"), "")
		suffix := rapid.SampledFrom([]string{"", "", ".bz2", ".gz"}).Draw(t, "suffix")
		streams := rapid.IntRange(0, len(content)).Draw(t, "streams") // two, each with a block of its own
		stored := append(compress(suffix, []byte(content[:streams])), compress(suffix, []byte(content[streams:]))...)
		name := "mem://t/in" + suffix
		putFile(f, name, stored)
		s := splitSettings(rapid.Int64Range(1, int64(len(stored))+2).Draw(t, "split"))
		s.delimiter = delimiter
		s.lineMax = rapid.SampledFrom([]int{1, 2, 3, 5, 8, 20, 1 << 30}).Draw(t, "maximum")
		want := simpleRecords(content, delimiter, s.lineMax)
		block := rapid.SampledFrom([]int{1, 2, 3, 7, 64, blockSize}).Draw(t, "block")
		got, _ := readLines(t, reader(t, f, wire.InputPlan{Format: formatLines, Paths: []string{name}}, s, block))
		if !slices.Equal(got, want) {
			t.Fatalf("got  %q\nwant %q", got, want)
		}
	})
}

// TestDelimiterRow reads a long row of delimiters that share bytes. Whether one counts depends on the row's beginning.
func TestDelimiterRow(t *testing.T) {
	f := mem.New(128 << 20)
	putFile(f, "mem://t/in", []byte("x"+strings.Repeat("aa", 6_000)+"a\nyaaz"))
	s := splitSettings(1000)
	s.delimiter = "aa"
	in := wire.InputPlan{Format: formatLines, Paths: []string{"mem://t/in"}}
	want := simpleRecords("x"+strings.Repeat("aa", 6_000)+"a\nyaaz", "aa", 1<<30)
	if got, _ := readLines(t, reader(t, f, in, s, 100)); !slices.Equal(got, want) {
		t.Errorf("got %d records, want %d", len(got), len(want))
	}
	s.recordMax = 5_000
	if err := firstError(reader(t, f, in, s, 100)); err == nil || !strings.Contains(err.Error(), "delimiters that share bytes fill more than 5000 bytes before offset 9000") {
		t.Errorf("a row longer than a record may be: %v", err)
	}
}

// TestLinesLeftOut: lines that are left out need no memory, and are no error.
func TestLinesLeftOut(t *testing.T) {
	f := mem.New(128 << 20)
	content := "\nshort\n" + strings.Repeat("x", 10_000) + "\nlast\n" + strings.Repeat("y", 1000)
	putFile(f, "mem://t/in", []byte(content))
	for _, format := range []string{formatLines, "keyvalues"} {
		for _, size := range []int64{1, 7, 100, 20_000} {
			s := splitSettings(size)
			s.recordMax, s.lineMax, s.delimiter = 50, 10, ""
			got, _ := readLines(t, reader(t, f, wire.InputPlan{Format: format, Paths: []string{"mem://t/in"}}, s, 100))
			if want := []string{"", "short", "last"}; !slices.Equal(got, want) {
				t.Errorf("%s in splits of %d: got %q", format, size, got)
			}
		}
	}
	s := splitSettings(7)
	s.delimiter = "t"
	if got, _ := readLines(t, reader(t, f, wire.InputPlan{Format: "keyvalues", Paths: []string{"mem://t/in"}}, s, 100)); !slices.Equal(got, simpleLines(content)) {
		t.Errorf("key-value lines ignore the delimiter: got %d lines", len(got))
	}
}

// TestNLines checks that each split has the wanted number of lines, and the last one of a file the rest.
func TestNLines(t *testing.T) {
	f := mem.New(128 << 20)
	rapid.Check(t, func(t *rapid.T) {
		content := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"\n", "\n", "\r\n", "a", "bcd"}), 0, 60).Draw(t, "content"), "")
		putFile(f, "mem://t/in/a", []byte(content))
		putFile(f, "mem://t/in/b", []byte("one\ntwo\nthree"))
		s := splitSettings(1)
		s.linesPerMap = rapid.Int64Range(1, 7).Draw(t, "lines")
		splits := reader(t, f, wire.InputPlan{Format: "nlines", Paths: []string{"mem://t/in"}}, s, rapid.SampledFrom([]int{1, 3, 64}).Draw(t, "block"))
		var want [][]string
		for _, file := range []string{content, "one\ntwo\nthree"} {
			want = slices.AppendSeq(want, slices.Chunk(simpleLines(file), int(s.linesPerMap)))
		}
		var got [][]string
		for _, split := range splits {
			lines, _ := readLines(t, []*Split{split})
			got = append(got, lines)
		}
		if !slices.EqualFunc(got, want, slices.Equal) {
			t.Fatalf("got  %q\nwant %q", got, want)
		}
	})
	putFile(f, "mem://t/in/c.gz", compress(".gz", []byte("x\n")))
	in := &wire.InputPlan{Format: "nlines", Paths: []string{"mem://t/in"}}
	if _, err := inputFiles(f, in, formatOf(in), splitSettings(1)); err == nil || !strings.Contains(err.Error(), "c.gz is gzip data by its name, and NLines reads only plain files") {
		t.Errorf("a compressed file: %v", err)
	}
}

// TestLinesOfHadoop compares the lines of splits with those of Hadoop. The file explains its lines.
func TestLinesOfHadoop(t *testing.T) {
	f := mem.New(128 << 20)
	compared := 0
	for line := range strings.Lines(string(must(os.ReadFile("testdata/lines.txt")))) {
		question, want, found := strings.Cut(strings.TrimSpace(line), " = ")
		if !found || line[0] == '#' {
			continue
		}
		if _, own, differs := strings.Cut(want, " ! "); differs {
			want = own
		}
		words := strings.Split(question, " ")
		s, in := splitSettings(math.MaxInt64), wire.InputPlan{Format: words[0], Paths: []string{"mem://t/in"}}
		content := unescapedLine(words[1])
		putFile(f, "mem://t/in", []byte(content))
		var splits []*Split
		if in.Format == "nlines" {
			s.linesPerMap = must(strconv.ParseInt(words[2], 10, 64))
			splits = reader(t, f, in, s, blockSize)
		} else {
			if in.Format == formatRecords {
				in.RecordSize = must(strconv.Atoi(words[2]))
			} else if s.delimiter = strings.TrimPrefix(unescapedLine(words[2]), "-"); words[3] != "-" {
				s.lineMax = must(strconv.Atoi(words[3]))
			}
			size, length := must(strconv.Atoi(words[len(words)-1])), len(content)
			for from := 0; from < length; from += size {
				c := Chunk{Path: "mem://t/in", Offset: int64(from), Length: int64(min(size, length-from)), Size: int64(length)}
				splits = append(splits, newSplit(t.Context(), f, splitEntry{Chunks: []Chunk{c}}, &in, s, new(pulse)))
			}
		}
		var got []string
		for _, split := range splits {
			got = append(got, strings.NewReplacer("\n", `\n`, "\r", `\r`, "\ufeff", `\ufeff`).Replace(bracketed(t, split, &in)))
		}
		if compared++; strings.Join(got, " ") != want {
			t.Errorf("%s\ngot  %s\nwant %s", question, strings.Join(got, " "), want)
		}
	}
	if compared < 70 {
		t.Errorf("compared %d lines", compared)
	}
}

// bracketed returns the records of a split in brackets, after them "error" if reading fails.
func bracketed(t *testing.T, split *Split, in *wire.InputPlan) (text string) {
	t.Helper()
	if in.Format == formatRecords {
		for record := range split.Records(in.RecordSize) {
			text += "[" + string(record) + "]"
		}
		if split.Err() != nil {
			text += "error"
		}
	} else if lines, _ := readLines(t, []*Split{split}); len(lines) > 0 {
		text = "[" + strings.Join(lines, "][") + "]"
	}
	return cmp.Or(text, "-")
}

func unescapedLine(s string) string {
	return strings.NewReplacer(`\n`, "\n", `\r`, "\r", `\ufeff`, "\ufeff").Replace(s)
}
