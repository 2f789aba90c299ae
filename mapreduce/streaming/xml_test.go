package streaming

import (
	"bytes"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/internal/membound"
)

// readSplits reads all splits of a size.
func readSplits(t interface{ Fatal(...any) }, x *xmlRecords, text string, size int) (all []string) {
	for from := 0; from < len(text); from += size {
		var in io.Reader = strings.NewReader(text[from:])
		if size%2 == 0 {
			in = iotest.OneByteReader(in)
		}
		err := x.read(in, int64(min(size, len(text)-from)), 1<<20, func(record []byte) (bool, error) {
			all = append(all, string(record))
			return true, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// TestXMLSplits: splits of every size have each record once.
func TestXMLSplits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.StringOfN(rapid.SampledFrom([]rune("r>/é\n\x00 ")), 0, 12, -1), 1, 8).Draw(t, "parts")
		var text string
		var want []string
		for i, part := range parts {
			if i%2 == 1 {
				part = "<r>" + part + "</r>"
				want = append(want, part)
			}
			text += part
		}
		for _, slow := range []bool{false, true} {
			x := &xmlRecords{Begin: "<r>", End: "</r>", SlowMatch: slow, Window: 1000}
			for size := 1; size <= len(text); size++ {
				if got := readSplits(t, x, text, size); !slices.Equal(got, want) {
					t.Fatalf("%q in splits of %d bytes, slow %v: %q, want %q", text, size, slow, got, want)
				}
			}
		}
	})
}

// simpleXML searches for texts as Hadoop does: what does not match is not looked at again.
func simpleXML(text, begin, end string) (all []string) {
	for {
		_, at := simpleFind(text, begin)
		if at < 0 {
			return all
		}
		text = text[at-len(begin):]
		record, at := simpleFind(text, end)
		if at < 0 {
			return all
		}
		all, text = append(all, record), text[at:]
	}
}

// simpleFind returns the text up to the end of a mark, and its length; -1: there is no mark.
func simpleFind(text, mark string) (string, int) {
	matched := 0
	for i := range len(text) {
		if text[i] == mark[matched] {
			matched++
		} else {
			matched = 0
		}
		if matched == len(mark) {
			return text[:i+1], i + 1
		}
	}
	return "", -1
}

// TestXMLMarks compares texts of any shape with a second implementation.
func TestXMLMarks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{"<r>", "</r>", "<", "</", "r>", "x"})).Draw(t, "text"), "")
		x := &xmlRecords{Begin: "<r>", End: "</r>"}
		if got, want := readSplits(t, x, text, max(len(text), 1)), simpleXML(text, x.Begin, x.End); !slices.Equal(got, want) {
			t.Fatalf("%q: %q, want %q", text, got, want)
		}
	})
}

// TestXMLSections compares texts with CDATA sections, which begin outside of one, with a second implementation: a section
// cannot have a mark.
func TestXMLSections(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := "]]>" + strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{"<r>", "</r>", "<![CDATA[</r>]]>", "<![CDATA[<r>]]>", "x"})).Draw(t, "text"), "")
		hidden := regexp.MustCompile(`<!\[CDATA\[.*?\]\]>`).ReplaceAllStringFunc(text, func(s string) string { return strings.Repeat(".", len(s)) })
		var want []string
		for _, at := range regexp.MustCompile(`<r>.*?</r>`).FindAllStringIndex(hidden, -1) {
			want = append(want, text[at[0]:at[1]])
		}
		x := &xmlRecords{Begin: "<r>", End: "</r>", SlowMatch: true, Window: 1000}
		if got := readSplits(t, x, text, len(text)); !slices.Equal(got, want) {
			t.Fatalf("%q: %q, want %q", text, got, want)
		}
	})
}

// TestXMLLong: a record that does not end is refused before it fills the memory.
func TestXMLLong(t *testing.T) {
	text := "<r>" + strings.Repeat("x", 16<<20)
	x := &xmlRecords{Begin: "<r>", End: "</r>"}
	membound.Bound{Free: 8 << 20}.Check(t, 0, func() {
		err := x.read(strings.NewReader(text), int64(len(text)), 1<<20, func([]byte) (bool, error) { return true, nil })
		if err == nil || !strings.Contains(err.Error(), "quern.record.max.bytes=1048576") {
			t.Errorf("a record of 16 MiB: %v", err)
		}
	})
}

// TestXMLEmpty: a pattern that matches between two bytes is refused; the search would go on forever.
func TestXMLEmpty(t *testing.T) {
	for _, mark := range []string{`\b`, `x*?|(?m:$)`} {
		x := &xmlRecords{Begin: mark, End: "</r>", SlowMatch: true, Window: 50}
		err := x.read(strings.NewReader("a b"), 3, 1<<16, func([]byte) (bool, error) { return true, nil })
		if err == nil || !strings.Contains(err.Error(), "matches an empty text") {
			t.Errorf("%s: %v", mark, err)
		}
	}
}

// FuzzXML: no file makes the search panic, or take memory out of proportion. A record has both marks.
func FuzzXML(f *testing.F) {
	f.Add([]byte("<r>a</r><r><![CDATA[</r>]]></r>"), 3, true)
	f.Fuzz(func(t *testing.T, data []byte, length int, slow bool) {
		x := &xmlRecords{Begin: "<r>", End: "</r>", SlowMatch: slow, Window: 50}
		membound.Bound{Free: 2 << 20, PerByte: 4096}.Check(t, len(data), func() {
			err := x.read(bytes.NewReader(data), int64(length), 1<<16, func(record []byte) (bool, error) {
				if !bytes.HasPrefix(record, []byte("<r>")) || !bytes.HasSuffix(record, []byte("</r>")) {
					t.Errorf("the record %q of %q", record, data)
				}
				return true, nil
			})
			if err != nil && len(data) < 1<<16 {
				t.Errorf("%q: %v", data, err)
			}
		})
	})
}
