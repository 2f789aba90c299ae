package runtime

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/runtime/search"
	"github.com/quernmr/quern/wire"
)

// foundLine is what a map can know of a line.
type foundLine struct {
	Text     string
	At, Line int64
	Records  int64 // read up to this line
}

// linesOf reads splits, and drops the lines that keep refuses.
func linesOf(t fataler, splits []*Split, ask int, keep func(string) bool) (found []foundLine, records, bytes int64, failure string) {
	t.Helper()
	for _, s := range splits {
		n := 0
		for text := range s.Lines() {
			if keep != nil && !keep(text) {
				continue
			}
			f := foundLine{Text: text, At: s.Offset(), Records: s.records}
			if n++; ask > 0 && n%ask == 0 {
				f.Line, _ = s.Line()
			}
			found = append(found, f)
		}
		records += s.records
		bytes += s.bytesRead()
		if err := s.Err(); err != nil {
			failure = err.Error()
		}
		s.close()
	}
	for i := range found {
		found[i].Text = strings.Clone(found[i].Text)
	}
	return found, records, bytes, failure
}

var searchPieces = []string{"ab", "a", "b", "abc", "k", "K", "S", "ſ", "K", "é", "É", "\xff", "\xc3", "\ufffd", "\n", "\n", "\r\n", "\r", "\n\n", "\x00", " ", byteOrderMark, strings.Repeat("x", 30)}

func drawText(t *rapid.T, most int) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(searchPieces), 0, most).Draw(t, "text"), "")
}

var expressionParts = []string{"ab", "a", "b", "k", "é", "s", ".", "^", "$", "x*", "a+", "b?", "[ab]", "[^a]", "(ab|b)", "(?i)", "(?:ab|k|é)+", "(?m)", "(?s)", "a{2}", "b+?",
	`\b`, `\B`, `\z`, `\A`, "\ufffd", "|", `\r`, `\n`, "(?i:kab)", "(?i:xA)", `[[:word:]]`, `\x{ff}`}

func drawExpression(t *rapid.T) *regexp.Regexp {
	for {
		expr := strings.Join(rapid.SliceOfN(rapid.SampledFrom(expressionParts), 1, 5).Draw(t, "expression"), "")
		if re, err := regexp.Compile(expr); err == nil {
			return re
		}
	}
}

// TestSearchedLines compares a search with a reader of all lines, with a test of each one: for splits and blocks of
// all sizes, compressed files, delimiters, lines left out, lines that are too long, and skipped records.
func TestSearchedLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := mem.New(1 << 20)
		content := drawText(t, 40)
		suffix := rapid.SampledFrom([]string{"", "", "", ".gz", ".bz2"}).Draw(t, "suffix")
		putFile(f, "mem://t/in"+suffix, compress(suffix, []byte(content)))
		settings := splitSettings(rapid.SampledFrom([]int64{1, 5, 12, 30, 70, 300}).Draw(t, "split"))
		settings.lineMax = rapid.SampledFrom([]int{1 << 30, 1 << 30, 10, 40}).Draw(t, "line's maximum")
		settings.recordMax = rapid.SampledFrom([]int{1 << 30, 1 << 30, 10, 40}).Draw(t, "record's maximum")
		settings.linesPerMap = 3
		in := wire.InputPlan{Format: formatLines, Paths: []string{"mem://t/in" + suffix}}
		if suffix == "" && rapid.IntRange(0, 4).Draw(t, "format") == 0 {
			in.Format = "nlines"
		} else if suffix == "" {
			settings.delimiter = rapid.SampledFrom([]string{"", "", "b", "ab", "\n\n"}).Draw(t, "delimiter")
		}
		block := rapid.SampledFrom([]int{1, 2, 7, 64, blockSize}).Draw(t, "block")
		ask := rapid.IntRange(0, 3).Draw(t, "asked at each of")

		var predicates []search.Predicate
		var tests []func(string) bool
		for range rapid.IntRange(1, 2).Draw(t, "predicates") {
			if rapid.Bool().Draw(t, "is text") {
				text := drawText(t, 2)
				predicates, tests = append(predicates, search.Text(text)), append(tests, func(line string) bool { return strings.Contains(line, text) })
			} else {
				re := drawExpression(t)
				predicates, tests = append(predicates, search.Expression(re)), append(tests, re.MatchString)
			}
		}
		keep := func(line string) bool {
			return !slices.ContainsFunc(tests, func(test func(string) bool) bool { return !test(line) })
		}
		want, wantRecords, wantBytes, wantErr := linesOf(t, reader(t, f, in, settings, block), ask, keep)
		searching := reader(t, f, in, settings, block)
		for _, s := range searching {
			for _, p := range predicates {
				s.Only(p)
			}
		}
		got, records, read, err := linesOf(t, searching, ask, nil)
		if !slices.Equal(got, want) || records != wantRecords || read != wantBytes || err != wantErr {
			t.Fatalf("%q:\ngot  %+v, %d records, %d bytes, error %q\nwant %+v, %d records, %d bytes, error %q", content, got, records, read, err, want, wantRecords, wantBytes, wantErr)
		}
	})
}

// TestSearchedLinesSkipped: skipped ranges count the lines that pass, and a skipped line counts for the numbers of lines.
func TestSearchedLinesSkipped(t *testing.T) {
	content := "x\nea\nx\neb\nx\nx\r\nec\r\ned\nx\nee"
	passing := regexp.MustCompile("e")
	f := mem.New(1 << 20)
	putFile(f, "mem://t/in", []byte(content))
	in := wire.InputPlan{Format: formatLines, Paths: []string{"mem://t/in"}}
	for size := int64(1); size <= int64(len(content)); size++ {
		all, searching := reader(t, f, in, splitSettings(size), 5), reader(t, f, in, splitSettings(size), 5)
		for i, s := range searching {
			var want []foundLine
			passed, _, _, _ := linesOf(t, all[i:i+1], 1, passing.MatchString)
			for k, line := range passed {
				if k != 1 && k != 2 {
					if k > 0 {
						line.Records -= 2 // the skipped ones are no records
					}
					want = append(want, line)
				}
			}
			s.Only(search.Expression(passing))
			s.skip = &skipping{ctx: s.ctx, ranges: []wire.RecordRange{{From: 1, To: 3}}}
			if got, _, _, _ := linesOf(t, searching[i:i+1], 1, nil); !slices.Equal(got, want) {
				t.Fatalf("splits of %d, split %d:\ngot  %+v\nwant %+v", size, i, got, want)
			}
			if n := int64(max(min(len(passed), 3)-1, 0)); s.skip.records != n {
				t.Fatalf("splits of %d, split %d: skipped %d records, want %d", size, i, s.skip.records, n)
			}
		}
	}
}

// TestSearchedEverySplitSize reads odd texts with lines that have a needle, for all sizes of splits and blocks.
func TestSearchedEverySplitSize(t *testing.T) {
	f := mem.New(1 << 20)
	for _, content := range []string{
		byteOrderMark + "one\ntwo\r\n\ntoe\nxx\nnose\n" + strings.Repeat("y", 40) + "e\n\n\r\ne\ne\nlast e", "e\n", "\n\ne", "x\ny\nz\nzen\n", "e\r\ne\n\xefe\nxx\nxx\nxx\ne",
	} {
		putFile(f, "mem://t/in", []byte(content))
		in := wire.InputPlan{Format: formatLines, Paths: []string{"mem://t/in"}}
		for _, expr := range []string{"e", "^.?e", "e$", "\xef", "\r", "(?i)NE"} {
			re, err := regexp.Compile(expr)
			p, keep := search.Text(expr), func(line string) bool { return strings.Contains(line, expr) }
			if err == nil {
				p, keep = search.Expression(re), re.MatchString
			}
			for size := int64(1); size <= int64(len(content)); size++ {
				for _, block := range []int{1, 7, 64, blockSize} {
					settings := splitSettings(size)
					settings.lineMax = []int{30, 1 << 30}[size%2]
					want, wantRecords, wantBytes, _ := linesOf(t, reader(t, f, in, settings, block), 1, keep)
					splits := reader(t, f, in, settings, block)
					for _, s := range splits {
						s.Only(p)
					}
					got, records, read, _ := linesOf(t, splits, 1, nil)
					if !slices.Equal(got, want) || records != wantRecords || read != wantBytes {
						t.Fatalf("%q in %q, splits of %d, blocks of %d:\ngot  %+v, %d records, %d bytes\nwant %+v, %d records, %d bytes", expr, content, size, block, got, records, read, want, wantRecords, wantBytes)
					}
				}
			}
		}
	}
}
