package client

import (
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

// TestVisible: a terminal obeys nothing in a visible text, however it is cut into writes.
func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"plain, ä and 世\n\ttoo": "plain, ä and 世\n\ttoo",
		"\x1b]0;title\a":        `\x1b]0;title\x07`,
		"\x1b[2J":               `\x1b[2J`,
		"over\rwritten":         `over\x0dwritten`,
		"c1 \u009b2J":           `c1 \u009b2J`,
		"raw c1 \x9b2J":         `raw c1 \x9b2J`,
		"\u202eevil":            `\u202eevil`,
		"\x7f\x00":              `\x7f\x00`,
	} {
		if got := Visible(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOf(rapid.SampledFrom([]string{"a", "\x1b", "世", "\x9b", "\xe4", "\n", "\u202e", "\xb8"})).Draw(t, "text")
		var out strings.Builder
		w := &VisibleWriter{To: &out}
		joined := strings.Join(text, "")
		for i := 0; i < len(joined); {
			n := rapid.IntRange(1, len(joined)-i).Draw(t, "bytes")
			if written, err := w.Write([]byte(joined[i : i+n])); err != nil || written != n {
				t.Fatal(written, err)
			}
			i += n
		}
		got := out.String() + Visible(string(w.rest))
		if got != Visible(joined) || strings.ContainsFunc(got, func(r rune) bool { return unicode.IsControl(r) && r != '\n' }) {
			t.Fatalf("%q is shown as %q, want %q", joined, got, Visible(joined))
		}
	})
}
