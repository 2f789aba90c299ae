package machine

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWordBatches compares the hand-written program with the loop, also for words that fit no slot, parts
// without a line, and lines and parts that end at buffers.
func TestWordBatches(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	words := []string{"a", "b", "ab", "abcdefgh", "abcdefghi", "sixteen-bytes-16", "seventeen-bytes-7", "gr\u00fcn", "x\u0085y", "nul\x00", "\x00"}
	for range 100_000 {
		words = append(words, string(rune('a'+r.IntN(26)))+strings.Repeat("z", r.IntN(3))+string(rune('a'+r.IntN(26)))+string(rune('a'+r.IntN(26)))+string(rune('a'+r.IntN(26))))
	}
	separators := []string{" ", " ", " ", "\n", "\t", "  ", "\r\n", "\n\n"}
	for _, n := range []int{0, 1, 2, 3, 10, 100, 600_000} {
		var text strings.Builder
		for range n {
			text.WriteString(words[r.IntN(len(words))] + separators[r.IntN(len(separators))])
		}
		dir := t.TempDir()
		input, want, got := filepath.Join(dir, "input"), filepath.Join(dir, "want"), filepath.Join(dir, "got")
		if err := os.WriteFile(input, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := CountWords(input, want, 1); err != nil {
			t.Fatal(err)
		}
		a, err := os.ReadFile(want)
		if err != nil {
			t.Fatal(err)
		}
		for cores := 1; cores < 6; cores++ {
			if err := CountWordsInBatches(input, got, cores); err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(got)
			if err != nil {
				t.Fatal(err)
			}
			if string(a) != string(b) {
				t.Fatalf("%d words, %d cores: %d bytes, want %d", n, cores, len(b), len(a))
			}
		}
	}
}
