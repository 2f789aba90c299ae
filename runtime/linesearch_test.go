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
		settings := splitSettings(rapid.Int64Range(1, 300).Draw(t, "split"))
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
