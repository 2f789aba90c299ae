package attemptlog

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestReplacedLog: a job may replace its log. The reader does not wait for a pipe, does not follow a
// link, and names the file.
func TestReplacedLog(t *testing.T) {
	for name, replace := range map[string]func(log string) error{
		"pipe": func(log string) error { return syscall.Mkfifo(log, 0o600) },
		"link": func(log string) error { return os.Symlink("/etc/passwd", log) },
	} {
		t.Run(name, func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "stderr")
			if err := replace(log); err != nil {
				t.Fatal(err)
			}
			text, err := Open(log)
			if err == nil {
				text.Close()
				t.Fatal("it was opened")
			}
			if !strings.Contains(err.Error(), log) {
				t.Errorf("the error does not name %s: %v", log, err)
			}
			if text := LastLines([]string{log}, ""); text != "" {
				t.Errorf("last lines %q", text)
			}
		})
	}
}
