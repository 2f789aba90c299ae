package mapreduce

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestWords compares Words with strings.FieldsSeq: all white space of ASCII and Unicode, bytes that differ from it in
// one bit, parts of encoded characters, and words at all places of a block.
func TestWords(t *testing.T) {
	var parts []string
	for b := range 256 {
		parts = append(parts, string([]byte{byte(b)}))
	}
	parts = append(parts, "\u0085", "\u00a0", "\u1680", "\u2003", "\u2028", "\u3000", "é", "語", "😀", "word", "a longer piece of text", strings.Repeat("x", 70))
	part := rapid.OneOf(rapid.SampledFrom([]string{" ", "\t", "a", "of", "words"}), rapid.SampledFrom(parts))
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(part, 0, 150).Draw(t, "text"), "")
		got, want := slices.Collect(Words(text)), slices.Collect(strings.FieldsSeq(text))
		if !slices.Equal(got, want) {
			t.Fatalf("words of %q: got %q, want %q", text, got, want)
		}
		take := rapid.IntRange(1, 5).Draw(t, "take")
		for w := range Words(text) { // which must end after a break
			if want[0] != w {
				t.Fatalf("got %q, want %q", w, want[0])
			}
			want = want[1:]
			if take--; take == 0 {
				break
			}
		}
	})
}

func BenchmarkWords(b *testing.B) {
	line := "jokrwq bd lqoeiru ab xjwkeqro oqw mnbv zx qpowieur ty"
	for name, words := range map[string]func(string) func(func(string) bool){
		"Words":     func(s string) func(func(string) bool) { return Words(s) },
		"FieldsSeq": func(s string) func(func(string) bool) { return strings.FieldsSeq(s) },
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(line)))
			n := 0
			for b.Loop() {
				for w := range words(line) {
					n += len(w)
				}
			}
		})
	}
}
