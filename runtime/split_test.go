package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/wire"
)

const (
	formatLines   = "lines"
	formatRecords = "records"
	formatFiles   = "files"
)

// fataler has the common method of testing.T and rapid.T.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func putFile(f dfs.FS, name string, content []byte) {
	if err := errors.Join(f.MkdirAll(dfs.Dir(name)), f.RemoveAll(name), writeAll(f, name, content)); err != nil {
		panic(err)
	}
}

func splitSettings(splitMax int64) settings {
	return settings{splitMin: 1, splitMax: splitMax, recordMax: 64 << 20, lineMax: math.MaxInt32}
}

// reader plans the splits of one input and opens each.
func reader(t fataler, f dfs.FS, in wire.InputPlan, s settings, block int) []*Split {
	t.Helper()
	files, err := inputFiles(f, &in, formatOf(&in), s)
	if err != nil {
		t.Fatalf("input: %v", err)
	}
	opener := newSplit(context.Background(), f, splitEntry{}, nil, s, new(pulse))
	entries, err := planSplits(0, &in, formatOf(&in), files, s, nil, opener.Open)
	if err != nil {
		t.Fatalf("splits: %v", err)
	}
	var splits []*Split
	for _, e := range entries {
		split := newSplit(context.Background(), f, e, &in, s, new(pulse))
		split.blockSize = block
		splits = append(splits, split)
	}
	return splits
}

// simpleLines is the reference for the lines of a text.
func simpleLines(content string) []string {
	if content == "" {
		return nil
	}
	lines := strings.SplitAfter(content, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	for i, line := range lines {
		if body, ok := strings.CutSuffix(line, "\n"); ok {
			lines[i] = strings.TrimSuffix(body, "\r")
		}
	}
	return lines
}

func readLines(t fataler, splits []*Split) (lines []string, read int64) {
	t.Helper()
	for _, s := range splits {
		before := len(lines)
		for line := range s.Lines() {
			lines = append(lines, line)
		}
		if s.Err() != nil {
			t.Fatalf("read: %v", s.Err())
		}
		if s.records != int64(len(lines)-before) {
			t.Fatalf("counted %d records of %d", s.records, len(lines)-before)
		}
		read += s.bytesRead()
		s.close()
	}
	return lines, read
}

var oddTexts = []string{
	"", "\n", "\r\n", "\r", "a", "a\n", "a\r\n", "\n\n\n", "a\n\nb", "a\rb\r\r\nc\r",
	"one\ntwo\r\n\r\nthree\x00four\n\xff\xfe\n  \n\ttab\nlast without end",
	"\r\n\r\n\n\r\n\r", strings.Repeat("x", 50) + "\n" + strings.Repeat("y", 50),
}

// TestEverySplitSize checks that every line is read exactly once and in order, for all
// sizes of splits and blocks.
func TestEverySplitSize(t *testing.T) {
	f := mem.New(128 << 20)
	for i, content := range oddTexts {
		name := fmt.Sprint("mem://t/", i)
		putFile(f, name, []byte(content))
		want := simpleLines(content)
		for size := int64(1); size <= int64(len(content))+2; size++ {
			for _, block := range []int{1, 2, 3, 7, 64, blockSize} {
				splits := reader(t, f, wire.InputPlan{Format: formatLines, Paths: []string{name}}, splitSettings(size), block)
				got, read := readLines(t, splits)
				if !slices.Equal(got, want) {
					t.Fatalf("%q in splits of %d, blocks of %d:\ngot  %q\nwant %q", content, size, block, got, want)
				}
				if read != int64(len(content)) {
					t.Fatalf("%q in splits of %d: read %d bytes of %d", content, size, read, len(content))
				}
			}
		}
	}
}

// TestWhere checks that Where returns the start of each record, and "" after the last one.
func TestWhere(t *testing.T) {
	f := mem.New(128 << 20)
	for i, content := range oddTexts {
		name := fmt.Sprintf("mem://t/%d.gz", i)
		putFile(f, name, compress(".gz", []byte(content)))
		putFile(f, "mem://t/plain", []byte(content))
		for _, in := range []wire.InputPlan{
			{Format: formatLines, Paths: []string{name}},
			{Format: formatLines, Paths: []string{"mem://t/plain"}},
			{Format: formatRecords, RecordSize: 1, Paths: []string{"mem://t/plain"}},
		} {
			next := 0
			for _, s := range reader(t, f, in, splitSettings(5), 7) {
				records := s.Lines()
				if in.RecordSize > 0 {
					records = func(yield func(string) bool) {
						s.Records(1)(func(r []byte) bool { return yield(string(r)) })
					}
				}
				for rec := range records {
					want := fmt.Sprintf("%s, offset %d", in.Paths[0], next)
					if in.RecordSize == 0 {
						want += fmt.Sprintf(", line %d", 1+strings.Count(content[:next], "\n"))
					}
					if s.Where() != want || !strings.HasPrefix(content[next:], rec) {
						t.Fatalf("%q: %q is at %s, want %s", content, rec, s.Where(), want)
					}
					if next += len(rec); in.RecordSize == 0 {
						next += strings.IndexByte(content[next:]+"\n", '\n') + 1
					}
				}
				if s.Where() != "" {
					t.Fatalf("%q: at the end it is at %s", content, s.Where())
				}
				s.close()
			}
		}
	}
}

func TestLinesOfAnyFiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := mem.New(rapid.Int64Range(1, 300).Draw(t, "file system's block"))
		var want []string
		var size int64
		for i := range rapid.IntRange(0, 5).Draw(t, "files") {
			content := rapid.SliceOfN(rapid.SampledFrom([]byte("ab\n\r\x00\xff")), 0, 200).Draw(t, "content")
			suffix := rapid.SampledFrom([]string{"", "", ".gz", ".zst", ".bz2", ".deflate", ".lz4", ".snappy"}).Draw(t, "suffix")
			stored := compress(suffix, content)
			if suffix != "" && rapid.Bool().Draw(t, "members") {
				stored = append(compress(suffix, content[:len(content)/2]), compress(suffix, content[len(content)/2:])...)
			}
			putFile(f, fmt.Sprint("mem://t/in/", i, suffix), stored)
			want = append(want, simpleLines(string(content))...)
			size += int64(len(stored))
		}
		if err := f.MkdirAll("mem://t/in"); err != nil {
			t.Fatal(err)
		}
		s := splitSettings(rapid.Int64Range(1, 300).Draw(t, "split"))
		splits := reader(t, f, wire.InputPlan{Format: formatLines, Paths: []string{"mem://t/in"}}, s, rapid.IntRange(1, 64).Draw(t, "block"))
		got, read := readLines(t, splits)
		if !slices.Equal(got, want) || read != size {
			t.Fatalf("got  %q\nwant %q\nread %d bytes of %d", got, want, read, size)
		}
	})
}

// TestLongLines checks that kept lines do not change: no block is written twice.
func TestLongLines(t *testing.T) {
	var content bytes.Buffer
	for _, size := range []int{0, 10, 3 << 20, 1 << 20, 1<<20 - 1, 30 << 20, 5} {
		content.Write(bytes.Repeat([]byte{byte('a' + size%26)}, size))
		content.WriteString("\r\n")
	}
	f := mem.New(4 << 20)
	want := simpleLines(content.String())
	for _, suffix := range []string{"", ".gz"} {
		name := "mem://t/long" + suffix
		putFile(f, name, compress(suffix, content.Bytes()))
		got, _ := readLines(t, reader(t, f, wire.InputPlan{Format: formatLines, Paths: []string{name}}, splitSettings(4<<20), blockSize))
		if !slices.Equal(got, want) {
			t.Fatalf("%s: lines differ", name)
		}
	}
}

func firstError(splits []*Split) error {
	for _, s := range splits {
		switch s.in.Format {
		case formatLines:
			for range s.Lines() {
			}
		case formatRecords:
			for range s.Records(s.in.RecordSize) {
			}
		case formatFiles:
			for range s.Files() {
			}
		case formatBinary:
			for range s.Binary() {
			}
		}
		if s.Err() != nil {
			return s.Err()
		}
	}
	return nil
}

func TestRecordLimit(t *testing.T) {
	f := mem.New(1 << 20)
	putFile(f, "mem://t/in", []byte("12345678\r\n123456789\nx"))
	for _, block := range []int{1, 4, 1 << 20} {
		for limit, at := range map[int]string{9: "", 8: "offset 10", 7: "offset 0"} {
			s := splitSettings(math.MaxInt64)
			s.recordMax = limit
			err := firstError(reader(t, f, wire.InputPlan{Format: formatLines, Paths: []string{"mem://t/in"}}, s, block))
			if at == "" && err == nil {
				continue
			}
			if !errors.Is(err, ErrRecordTooLarge) || !isFatal(err) || at == "" ||
				!strings.Contains(err.Error(), at) || !strings.Contains(err.Error(), fmt.Sprint(RecordMaxBytes, "=", limit)) ||
				strings.Count(err.Error(), "mem://t/in") != 1 {
				t.Errorf("limit %d, block %d: %v", limit, block, err)
			}
		}
	}
	s := splitSettings(math.MaxInt64)
	s.recordMax = 10
	if err := firstError(reader(t, f, wire.InputPlan{Format: formatFiles, Paths: []string{"mem://t/in"}}, s, 64)); !errors.Is(err, ErrRecordTooLarge) {
		t.Errorf("a file above the limit: %v", err)
	}
}

func TestRecords(t *testing.T) {
	f := mem.New(1 << 20)
	for size := 1; size <= 5; size++ {
		for count := range 12 {
			content := make([]byte, size*count)
			for i := range content {
				content[i] = byte(i)
			}
			putFile(f, "mem://t/a", content)
			putFile(f, "mem://t/b.gz", compress(".gz", content))
			for split := int64(1); split < int64(len(content))+3; split++ {
				var got []byte
				in := wire.InputPlan{Format: formatRecords, RecordSize: size, Paths: []string{"mem://t/a", "mem://t/b.gz"}}
				for _, s := range reader(t, f, in, splitSettings(split), 1<<20) {
					for rec := range s.Records(size) {
						if len(rec) != size {
							t.Fatalf("record of %d bytes", len(rec))
						}
						got = append(got, rec...)
					}
					if s.Err() != nil {
						t.Fatal(s.Err())
					}
				}
				if !bytes.Equal(got, append(slices.Clone(content), content...)) {
					t.Fatalf("%d records of %d in splits of %d: got %v", count, size, split, got)
				}
			}
		}
	}
	putFile(f, "mem://t/part", []byte("12345678"))
	putFile(f, "mem://t/part.gz", compress(".gz", []byte("12345678")))
	for _, name := range []string{"mem://t/part", "mem://t/part.gz"} {
		for split := int64(1); split < 10; split++ {
			err := firstError(reader(t, f, wire.InputPlan{Format: formatRecords, RecordSize: 3, Paths: []string{name}}, splitSettings(split), 64))
			if !errors.Is(err, ErrTruncated) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s with a partial record in splits of %d: %v", name, split, err)
			}
		}
	}
}

func TestFiles(t *testing.T) {
	f := mem.New(1 << 20)
	want := map[string]string{"mem://t/in/a": "A\n\n", "mem://t/in/b": "", "mem://t/in/c": strings.Repeat("long", 100_000)}
	for name, content := range want {
		putFile(f, name, []byte(content))
	}
	putFile(f, "mem://t/in/d.zst", compress(".zst", []byte("packed")))
	want["mem://t/in/d.zst"] = "packed"
	for _, size := range []int64{1, 100, math.MaxInt64} {
		got := make(map[string]string)
		for _, s := range reader(t, f, wire.InputPlan{Format: formatFiles, Paths: []string{"mem://t/in"}}, splitSettings(size), 64) {
			for name, content := range s.Files() {
				got[name] += string(content)
			}
			if s.Err() != nil {
				t.Fatal(s.Err())
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%d files of %d", len(got), len(want))
		}
		for name := range want {
			if got[name] != want[name] {
				t.Errorf("%s: %d bytes, want %d", name, len(got[name]), len(want[name]))
			}
		}
	}
}

func TestBreakAndCancel(t *testing.T) {
	f := mem.New(1 << 20)
	putFile(f, "mem://t/in", []byte("a\nb\nc\n"))
	in := wire.InputPlan{Format: formatLines, Paths: []string{"mem://t/in", "mem://t/in"}}
	s := reader(t, f, in, splitSettings(math.MaxInt64), 64)[0]
	for range s.Lines() {
		break
	}
	if s.Err() != nil || s.records != 1 {
		t.Errorf("after a break: %d records, %v", s.records, s.Err())
	}
	s = reader(t, f, in, splitSettings(math.MaxInt64), 64)[0]
	ctx, cancel := context.WithCancel(t.Context())
	s.ctx = ctx
	cancel()
	for range s.Lines() {
		t.Error("a line after the attempt's end")
	}
	if !errors.Is(s.Err(), context.Canceled) {
		t.Errorf("after the attempt's end: %v", s.Err())
	}
}

func TestLinesAllocations(t *testing.T) {
	f := mem.New(1 << 30)
	putFile(f, "mem://t/in", bytes.Repeat([]byte(strings.Repeat("x", 99)+"\n"), 20_000))
	in := wire.InputPlan{Format: formatLines, Paths: []string{"mem://t/in"}}
	splits := reader(t, f, in, splitSettings(math.MaxInt64), blockSize)
	n := testing.AllocsPerRun(3, func() {
		for range splits[0].Lines() {
		}
	})
	if perRecord := n / 20_000; perRecord > 0.01 {
		t.Errorf("%v allocations per line", perRecord)
	}
}

func BenchmarkLines(b *testing.B) {
	f := mem.New(1 << 30)
	content := bytes.Repeat([]byte(strings.Repeat("x", 99)+"\n"), 640_000)
	putFile(f, "mem://t/in", content)
	in := wire.InputPlan{Format: formatLines, Paths: []string{"mem://t/in"}}
	splits := reader(b, f, in, splitSettings(math.MaxInt64), blockSize)
	b.SetBytes(int64(len(content)))
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for line := range splits[0].Lines() {
			n += len(line)
		}
		if n != 99*640_000 {
			b.Fatal(n)
		}
	}
}

// TestByteOrderMark checks that a mark at a file's start is not part of a line. Hadoop
// 3.4.2's LineRecordReader gives these lines too.
func TestByteOrderMark(t *testing.T) {
	f := mem.New(128 << 20)
	for content, want := range map[string][]string{
		"\ufeffa\nb\ufeff\n\ufeffc":   {"a", "b\ufeff", "\ufeffc"},
		"\ufeff":                      nil,
		"\ufeff\n":                    {""},
		"\ufeff\r\n\ufeff":            {"", "\ufeff"},
		"\ufeff\ufefftwice\n":         {"\ufefftwice"},
		"\xef\xbb\na":                 {"\xef\xbb", "a"},
		"\ufeff" + "long line of all": {"long line of all"},
	} {
		for _, suffix := range []string{"", ".gz", ".zst"} {
			name := "mem://t/x" + suffix
			stored := compress(suffix, []byte(content))
			putFile(f, name, stored)
			for size := int64(1); size <= int64(len(content))+2; size++ {
				for _, block := range []int{1, 2, 3, 7, blockSize} {
					in := wire.InputPlan{Format: formatLines, Paths: []string{name}}
					got, read := readLines(t, reader(t, f, in, splitSettings(size), block))
					if !slices.Equal(got, want) || read != int64(len(stored)) {
						t.Fatalf("%q%s in splits of %d, blocks of %d: %q of %d bytes, want %q of %d", content, suffix, size, block, got, read, want, len(stored))
					}
				}
			}
		}
	}
	s := splitSettings(math.MaxInt64)
	s.recordMax = 8
	putFile(f, "mem://t/x", []byte("\ufeff12345678\r\n"))
	if err := firstError(reader(t, f, wire.InputPlan{Format: formatLines, Paths: []string{"mem://t/x"}}, s, 1)); err != nil {
		t.Errorf("a line of the greatest length after a mark: %v", err)
	}
}

// TestHadoopSplitBytes: a split counts as Hadoop's description of it, with a length of one to three bytes.
func TestHadoopSplitBytes(t *testing.T) {
	for path, want := range map[string]int64{
		"file:///in":                                65 + 8,   // file:/in
		"hdfs://nn:8020/in":                         65 + 17,  // as it is
		"hdfs:///in":                                65 + 8,   // hdfs:/in
		"file:///" + strings.Repeat("a", 127-6):     65 + 127, // one byte of length
		"file:///" + strings.Repeat("a", 128-6):     66 + 128, // two
		"hdfs://nn/" + strings.Repeat("a", 256-10):  67 + 256, // three
		"hdfs://nn/" + strings.Repeat("a", 4096-10): 67 + 4096,
	} {
		if got := hadoopSplitBytes([]Chunk{{Path: path}}); got != want {
			t.Errorf("%.20s of %d bytes: %d, want %d", path, len(path), got, want)
		}
	}
	if got := hadoopSplitBytes([]Chunk{{Offset: 3}}); got != 0 {
		t.Errorf("a split of an input without files: %d", got)
	}
	if got := hadoopSplitBytes([]Chunk{{Path: "file:///a"}, {Path: "file:///b"}}); got != 2*72 {
		t.Errorf("two files in a split: %d", got)
	}
}
