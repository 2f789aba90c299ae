package runtime

import (
	"bytes"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/wire"
)

// TestLine compares the numbers of lines with a count of the line feeds before them: for splits and blocks of
// all sizes, with lines that are left out and records that are skipped, asked for at some lines or at all.
func TestLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := mem.New(1 << 20)
		content := rapid.SliceOfN(rapid.SampledFrom([]byte("ab\n\r\xff")), 0, 200).Draw(t, "content")
		suffix := rapid.SampledFrom([]string{"", "", ".gz", ".bz2"}).Draw(t, "suffix")
		putFile(f, "mem://t/in"+suffix, compress(suffix, content))
		format := rapid.SampledFrom([]string{formatLines, "keyvalues", "jsonlines", "nlines"}).Draw(t, "format")
		if suffix != "" && format == "nlines" {
			format = formatLines // nlines refuses compressed files
		}
		settings := splitSettings(rapid.Int64Range(1, 250).Draw(t, "split"))
		settings.linesPerMap = rapid.Int64Range(1, 5).Draw(t, "lines of a split")
		settings.lineMax = rapid.SampledFrom([]int{3, 10, 1 << 30}).Draw(t, "line's maximum")
		in := wire.InputPlan{Format: format, Paths: []string{"mem://t/in" + suffix}}
		for _, s := range reader(t, f, in, settings, rapid.SampledFrom([]int{1, 7, 64, blockSize}).Draw(t, "block")) {
			if rapid.Bool().Draw(t, "skips") {
				s.skip = &skipping{ctx: s.ctx, ranges: []wire.RecordRange{{From: 1, To: 3}}}
			}
			ask := rapid.IntRange(1, 3).Draw(t, "asked at each of")
			n := 0
			for range s.Lines() {
				if n++; n%ask != 0 {
					continue
				}
				file, offset := s.Place()
				line, err := s.Line()
				if s.pieceAt > 0 {
					if offset != -1 || err == nil {
						t.Fatalf("in a later piece: offset %d, line %d, error %v", offset, line, err)
					}
					continue
				}
				if want := bytes.Count(content[:offset], []byte("\n")) + 1; err != nil || line != int64(want) || file != in.Paths[0] {
					t.Fatalf("%s, offset %d of %q: line %d, want %d, error %v", file, offset, content, line, want, err)
				}
			}
			if file, _ := s.Place(); file != "" {
				t.Fatalf("after the last record: %s", file)
			}
			if _, err := s.Line(); err == nil {
				t.Fatalf("there is a line after the last record")
			}
			s.close()
		}
	})
}

func TestNoLine(t *testing.T) {
	f := mem.New(1 << 20)
	putFile(f, "mem://t/a", []byte("abc\ndef\n"))
	paragraphs := splitSettings(100)
	paragraphs.delimiter = "\n\n"
	for format, s := range map[string]settings{formatRecords: splitSettings(100), formatLines: paragraphs} {
		split := reader(t, f, wire.InputPlan{Format: format, RecordSize: 4, Paths: []string{"mem://t/a"}}, s, 100)[0]
		check := func() bool {
			if n, err := split.Line(); !errors.Is(err, errNoLine) {
				t.Errorf("%s: line %d, error %v", format, n, err)
			}
			return false
		}
		if format == formatRecords {
			split.Records(4)(func([]byte) bool { return check() })
		} else {
			split.Lines()(func(string) bool { return check() })
		}
	}
}

// TestStream reads own files that are not cut: compressed, empty, shorter than before, and damaged ones.
func TestStream(t *testing.T) {
	for _, suffix := range []string{"", ".gz", ".bz2", ".zst"} {
		f := mem.New(1 << 20)
		content := []byte(strings.Repeat("some content\n", 1000))
		stored := compress(suffix, content)
		putFile(f, "mem://t/in/a"+suffix, stored)
		if suffix == "" {
			putFile(f, "mem://t/in/b", nil)
		}
		s := splitSettings(100)
		files := must(inputFiles(f, &wire.InputPlan{Paths: []string{"mem://t/in"}}, Whole(true), s))
		entries := must(planSplits(0, &wire.InputPlan{}, Whole(true), files, s, nil, nil))
		var got []byte
		var split *Split
		for _, e := range entries {
			split = newSplit(t.Context(), f, e, &wire.InputPlan{}, s, new(pulse))
			for _, c := range e.Chunks {
				if c.Length != c.Size {
					t.Errorf("%s is cut", c.Path)
				}
				in := must(split.Stream(c))
				split.At(7, 2)
				if where := split.Where(); where != c.Path+", offset 7, line 2" {
					t.Errorf("the record is at %s", where)
				}
				got = append(got, must(io.ReadAll(in))...)
				must(0, in.Close())
			}
		}
		if !bytes.Equal(got, content) {
			t.Errorf("%s: %d bytes, want %d", suffix, len(got), len(content))
		}
		chunk := entries[0].Chunks[0]
		putFile(f, chunk.Path, stored[:len(stored)/2])
		chunk.Modified = 0
		in := must(split.Stream(chunk))
		if _, err := io.ReadAll(in); !errors.Is(err, ErrTruncated) || !strings.Contains(err.Error(), chunk.Path) || split.Err() == nil {
			t.Errorf("%s: half of the file: error %v, the split's %v", suffix, err, split.Err())
		}
	}
	if slices.Contains([]bool{BuiltIn("csv"), BuiltIn("jsonlines")}, false) {
		t.Error("a format is not built in")
	}
}

// BenchmarkPlace reads lines of 99 bytes, and asks for the place or the number of each.
func BenchmarkPlace(b *testing.B) {
	f := mem.New(1 << 30)
	const lines = 640_000
	putFile(f, "mem://t/in", bytes.Repeat([]byte(strings.Repeat("x", 99)+"\n"), lines))
	in := wire.InputPlan{Format: formatLines, Paths: []string{"mem://t/in"}}
	splits := reader(b, f, in, splitSettings(math.MaxInt64), blockSize)
	for name, ask := range map[string]func(s *Split) error{
		"nothing": func(*Split) error { return nil },
		"place":   func(s *Split) error { s.Place(); return nil },
		"line":    func(s *Split) error { _, err := s.Line(); return err },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				for range splits[0].Lines() {
					if err := ask(splits[0]); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/lines, "ns/line")
		})
	}
}
