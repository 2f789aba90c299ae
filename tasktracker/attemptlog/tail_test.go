package attemptlog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLastLines(t *testing.T) {
	many := strings.Repeat("x\n", 5000)
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", ""},
		{"one", "one", "one"},
		{"newlines at the end", "one\ntwo\n\n", "one\ntwo"},
		{"twenty of many", many, strings.TrimSuffix(strings.Repeat("x\n", 20), "\n")},
		{"a line cut at its beginning", strings.Repeat("y", 5000) + "\nlast", "last"},
		{"one long line", strings.Repeat("z", 9000), strings.Repeat("z", 4096)},
		{"just fits", strings.Repeat("w", 4095) + "\n", strings.Repeat("w", 4095)},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "stderr")
			if err := os.WriteFile(file, []byte(c.text), 0o666); err != nil {
				t.Fatal(err)
			}
			if got := LastLines([]string{file, filepath.Join(dir, "missing")}); got != c.want {
				t.Errorf("got %q of %d bytes, want %d", got[:min(len(got), 100)], len(got), len(c.want))
			}
		})
	}
}
