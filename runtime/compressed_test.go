package runtime

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	dsnet "github.com/dsnet/compress/bzip2"

	"github.com/quernmr/quern/compression"
	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/wire"
)

func compress(suffix string, content []byte) []byte {
	codec := compression.OfFile("x" + suffix)
	if codec == nil {
		return content
	}
	var buf bytes.Buffer
	w := must(codec.NewWriter(&buf))
	must(w.Write(content))
	if err := w.Close(); err != nil {
		panic(err)
	}
	return buf.Bytes()
}

// TestTruncated checks that reading a truncated compressed file is an error, wherever it is
// cut. It must not just yield fewer records.
func TestTruncated(t *testing.T) {
	content := []byte(strings.Repeat("some line that repeats, and a number: ", 3) + "\nend\n")
	for _, codec := range compression.Codecs() {
		suffix := codec.Suffix
		whole := compress(suffix, content)
		name := "mem://t/in" + suffix
		for n := 1; n < len(whole); n++ {
			f := mem.New(1 << 20)
			putFile(f, name, whole[:n])
			for _, format := range []string{formatLines, formatFiles, formatRecords} {
				in := wire.InputPlan{Format: format, Paths: []string{name}, RecordSize: 1}
				err := firstError(reader(t, f, in, splitSettings(math.MaxInt64), 1<<20))
				if !errors.Is(err, ErrTruncated) || !isFatal(err) || strings.Count(err.Error(), name) != 1 {
					t.Fatalf("%s cut to %d of %d bytes as %s: %v", suffix, n, len(whole), format, err)
				}
			}
		}
	}
	f := mem.New(1 << 20)
	putFile(f, "mem://t/in", content)
	splits := reader(t, f, wire.InputPlan{Format: formatLines, Paths: []string{"mem://t/in"}}, splitSettings(math.MaxInt64), 64)
	putFile(f, "mem://t/in", content[:20])
	if err := firstError(splits); !errors.Is(err, ErrChanged) {
		t.Errorf("a file that shrank: %v", err)
	}
	// Hadoop refuses all of these too; gzip(1) would skip zeros.
	for trailing, kind := range map[string]error{
		"\x00": ErrInput, strings.Repeat("\x00", 511): ErrInput, "\n": ErrInput, "garbage": ErrInput, "\x1fx": ErrInput,
		"\x1f": ErrTruncated, "\x1f\x8b": ErrTruncated, "\x1f\x8b\x08\x00": ErrTruncated,
	} {
		putFile(f, "mem://t/in.gz", append(compress(".gz", content), trailing...))
		err := firstError(reader(t, f, wire.InputPlan{Format: formatLines, Paths: []string{"mem://t/in.gz"}}, splitSettings(1), 64))
		if !errors.Is(err, kind) || !isFatal(err) || strings.Count(err.Error(), "mem://t/in.gz") != 1 {
			t.Errorf("gzip data with %q after it: %v", trailing, err)
		}
	}
	for _, name := range []string{"mem://t/in.gz", "mem://t/in.zst", "mem://t/in.bz2", "mem://t/in.deflate"} {
		putFile(f, name, []byte("only text\n"))
		err := firstError(reader(t, f, wire.InputPlan{Format: formatLines, Paths: []string{name}}, splitSettings(1), 64))
		if !errors.Is(err, ErrInput) || !isFatal(err) || strings.Count(err.Error(), name) != 1 {
			t.Errorf("a file that is not what its name says: %v", err)
		}
	}
}

// TestBzip2Splits checks that every line of a bzip2 file is read exactly once and in order, for all
// sizes of splits. Lines cross blocks and streams; some begin where a block does.
func TestBzip2Splits(t *testing.T) {
	f := mem.New(128 << 20)
	level1 := func(content string) []byte { // blocks of 100,000 bytes
		var buf bytes.Buffer
		w := must(dsnet.NewWriter(&buf, &dsnet.WriterConfig{Level: 1}))
		must(w.Write([]byte(content)))
		if err := w.Close(); err != nil {
			panic(err)
		}
		return buf.Bytes()
	}
	long := "\ufeff" + strings.Repeat("ab\r\ncd\n\nxyz\n", 9_000) + strings.Repeat("x", 99_990) + "\n" + strings.Repeat("yz\n", 20_000) + "end"
	for name, parts := range map[string][]string{
		"one":       {long},
		"streams":   {"", "\ufeffa\nb", "c\n", "", "\nd\n", "e", "f", "\n"},
		"first":     {"one line\n"},
		"no end":    {"one line"},
		"long line": {strings.Repeat("zy", 70_000) + "\nand one more\n"},
		"blocks":    {long, long[3:]},
	} {
		url := "mem://t/" + strings.ReplaceAll(name, " ", "") + ".bz2"
		var stored []byte
		for _, part := range parts {
			stored = append(stored, level1(part)...)
		}
		putFile(f, url, stored)
		want := simpleLines(strings.TrimPrefix(strings.Join(parts, ""), "\ufeff"))
		sizes := []int64{int64(len(stored))/20 + 1, int64(len(stored)), int64(len(stored)) - 1, int64(len(stored))/2 + 1, int64(len(stored))/3 + 1}
		if len(stored) < 500 {
			sizes = append(sizes, 2, 4, 5, 14, 15, 16, 33, 41, 100) // the first mark is at byte 4, the first end mark at 4 or later
		}
		for _, size := range sizes {
			in := wire.InputPlan{Format: formatLines, Paths: []string{url}}
			splits := reader(t, f, in, splitSettings(size), 1000)
			got, read := readLines(t, splits)
			if !slices.Equal(got, want) || read != int64(len(stored)) {
				t.Fatalf("%s in %d splits of %d: %d lines of %d, %d bytes of %d", name, len(splits), size, len(got), len(want), read, len(stored))
			}
			if whole := reader(t, f, wire.InputPlan{Format: formatRecords, RecordSize: 1, Paths: []string{url}}, splitSettings(size), 64); len(whole) != 1 {
				t.Errorf("%s: records of a fixed size are in %d splits", name, len(whole))
			}
		}
	}
	putFile(f, "mem://t/long.bz2", level1(strings.Repeat("line\n", 50_000)+strings.Repeat("zy", 2000)))
	s := splitSettings(must(f.Stat("mem://t/long.bz2")).Size/2 + 1)
	s.recordMax = 1000
	err := firstError(reader(t, f, wire.InputPlan{Format: formatLines, Paths: []string{"mem://t/long.bz2"}}, s, 64)[1:])
	if !errors.Is(err, ErrRecordTooLarge) || !strings.Contains(err.Error(), " of the content after byte ") {
		t.Errorf("a long line: %v", err)
	}
}

// TestBzip2SplitsOfHadoop checks that splits of a bzip2 file of Hadoop have the lines that they have in Hadoop.
func TestBzip2SplitsOfHadoop(t *testing.T) {
	file := must(os.ReadFile("../compression/testdata/hadoop/long.bz2"))
	f := mem.New(128 << 20)
	putFile(f, "mem://t/long.bz2", file)
	info := must(f.Stat("mem://t/long.bz2"))
	in := &wire.InputPlan{Format: formatLines}
	compared := 0
	for line := range strings.Lines(string(must(os.ReadFile("testdata/bzip2splits.txt")))) {
		var size int64
		if n, _ := fmt.Sscanf(line, "text long.bz2 %d", &size); n != 1 {
			continue
		}
		got := fmt.Sprintf("text long.bz2 %d", size)
		for from := int64(0); from < info.Size; from += size {
			chunk := Chunk{Path: info.Name, Offset: from, Length: min(size, info.Size-from), Size: info.Size}
			s := newSplit(t.Context(), f, splitEntry{Chunks: []Chunk{chunk}}, in, splitSettings(1), new(pulse))
			sum, n := sha256.New(), 0
			for line := range s.Lines() {
				fmt.Fprintln(sum, line)
				n++
			}
			if s.Err() != nil {
				t.Fatal(s.Err())
			}
			s.close()
			got += fmt.Sprintf(" %d:%x", n, sum.Sum(nil)[:8])
		}
		if compared++; got != strings.TrimSpace(line) {
			t.Errorf("got  %s\nwant %s", got, line)
		}
	}
	if compared < 5 {
		t.Errorf("compared %d sizes", compared)
	}
}

// TestRatio checks that a compressed file may not become too large.
func TestRatio(t *testing.T) {
	f := mem.New(128 << 20)
	putFile(f, "mem://t/in.zst", compress(".zst", bytes.Repeat([]byte(strings.Repeat("x", 9999)+"\n"), 6800)))
	for ratio, want := range map[int64]error{1000: ErrInput, 0: nil} {
		s := splitSettings(math.MaxInt64)
		s.ratioMax = ratio
		err := firstError(reader(t, f, wire.InputPlan{Format: formatLines, Paths: []string{"mem://t/in.zst"}}, s, blockSize))
		if !errors.Is(err, want) || want != nil && (!isFatal(err) || !strings.Contains(err.Error(), DecompressedMaxRatio) || strings.Count(err.Error(), "mem://t/in.zst") != 1) {
			t.Errorf("ratio %d: %v", ratio, err)
		}
	}
}

// TestCompressedMapOutput checks that each codec of map output makes it smaller, and that reduces read it.
func TestCompressedMapOutput(t *testing.T) {
	const want = "/data/out/ /data/out/_SUCCESS= /data/out/part-r-00000=aaaaaaaa\t400\nbbbbbbbb\t400\n"
	var plain int64
	for _, codec := range []string{"", "DefaultCodec", "GzipCodec", "Lz4Codec", "SnappyCodec", "ZStandardCodec"} {
		plan := linesPlan()
		plan.Reduces = 1
		plan.Properties = map[string]string{MapCompress: strconv.FormatBool(codec != ""), MapCodec: codec}
		job := wordCount()
		job.Combine = nil
		b := newTrackerSim(t, plan, job)
		for _, name := range []string{"a", "b"} {
			putFile(b.fs, "mem://t/in/"+name, bytes.Repeat([]byte("aaaaaaaa bbbbbbbb\n"), 200))
		}
		counters := b.runJob()
		b.checkOutput(want)
		switch n := counters.Get(wire.TaskCounters, wire.MapOutputFileBytes); {
		case codec == "":
			plain = n
		case n > plain/2:
			t.Errorf("%s: map output of %d bytes, %d without codec", codec, n, plain)
		}
	}
}
