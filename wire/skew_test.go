package wire

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestPrintableKey(t *testing.T) {
	for key, want := range map[string]string{
		"":                            "",
		"the":                         "the",
		"日本 é":                        "日本 é",
		"a\tb\n":                      `a\x09b\x0a`,
		"\x1b[31mred":                 `\x1b[31mred`,
		"\x80\x00\x00\x07":            `\x80\x00\x00\x07`,
		"a\u202eb":                    `a\u202eb`,
		strings.Repeat("x", 64):       strings.Repeat("x", 64),
		strings.Repeat("x", 65):       strings.Repeat("x", 64) + "…",
		strings.Repeat("é", 33):       strings.Repeat("é", 32) + "…",
		strings.Repeat("x", 63) + "é": strings.Repeat("x", 63) + "…",
	} {
		if got := PrintableKey(key); got != want {
			t.Errorf("%q: %q, want %q", key, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		got := PrintableKey(string(rapid.SliceOf(rapid.Byte()).Draw(t, "key")))
		if !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) || len(got) > MaxHotKey+len("…") {
			t.Fatalf("%q", got)
		}
	})
}

// TestHot tests what is reported after a report, and what is cut of a report.
func TestHot(t *testing.T) {
	group := func(n int) HotGroup { return HotGroup{Key: strings.Repeat("k", 2*MaxHotKey), Bytes: int64(n)} }
	none, one, two := &Hot{Read: 1}, &Hot{Read: 2, Groups: []HotGroup{group(1)}}, &Hot{Read: 3, Groups: []HotGroup{group(2)}}
	for _, c := range []struct {
		now, last, want *Hot
	}{
		{none, nil, nil}, {one, nil, one}, {two, one, two}, {none, one, none}, {&Hot{Read: 9}, none, none}, {&Hot{Read: 9, Groups: slices.Clone(one.Groups)}, one, one},
	} {
		if got := c.now.After(c.last); got != c.want {
			t.Errorf("%+v after %+v: %+v, want %+v", c.now, c.last, got, c.want)
		}
	}
	many := (&Hot{Groups: []HotGroup{group(1), group(2), group(3), group(4), group(5), group(6), group(7), group(8), group(9)}}).Bound()
	if len(many.Groups) != MaxHotGroups || len(many.Groups[0].Key) > MaxHotKey+len("…") {
		t.Errorf("%d groups, %d bytes of a key", len(many.Groups), len(many.Groups[0].Key))
	}
	if (*Hot)(nil).Bound() != nil {
		t.Error("no report has bounds")
	}
}
