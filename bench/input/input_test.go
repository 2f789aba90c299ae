package input

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestNeedle: a grep finds some lines, but not many, in any block of the text.
func TestNeedle(t *testing.T) {
	const block = 1 << 20
	file := filepath.Join(t.TempDir(), "text")
	if err := Text(file, 16*block); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at+block <= len(text); at += block {
		found, lines := 0, bytes.Split(text[at:at+block], []byte("\n"))
		for _, line := range lines {
			if bytes.Contains(line, []byte(Needle)) {
				found++
			}
		}
		if found == 0 || found > len(lines)/100 {
			t.Errorf("%d of %d lines at %d have %q", found, len(lines), at, Needle)
		}
	}
}
