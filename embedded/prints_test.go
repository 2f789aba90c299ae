//go:build unix

package embedded

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	trackercore "github.com/quernmr/quern/tasktracker/core"
)

// TestPrintsLongLog: when an attempt's log has lost its middle, the lines after it are shown, once.
func TestPrintsLongLog(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, trackerDir+"1", trackercore.LogsDir, "job_1", "attempt_1", "stdout")
	if err := os.MkdirAll(filepath.Dir(log), 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var shown strings.Builder
	p := &prints{dir: dir, to: &shown, shown: make(map[string]int64)}
	copied := func(last bool, want ...string) {
		t.Helper()
		shown.Reset()
		p.copy(last)
		got := strings.ReplaceAll(shown.String(), "attempt_1: ", "")
		if got != strings.Join(want, "\n")+"\n" {
			t.Errorf("shown %q, want %q", got, want)
		}
	}
	write(log, "first\n")
	write(log+"+6", "line 2\nline 3\nhal")
	copied(false, "first", "line 2", "line 3")
	if err := os.Remove(log + "+6"); err != nil {
		t.Fatal(err)
	}
	write(log+"+1000", "line 90\nline 91\nli")
	note := "[994 bytes were left out here: of a long log the first and the last part are kept]"
	copied(false, "", note, "line 90", "line 91")
	write(log+"+1000", "line 90\nline 91\nline 92\nend")
	copied(true, "line 92", "end")
}
