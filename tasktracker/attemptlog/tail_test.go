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
			if got := LastLines([]string{file, filepath.Join(dir, "missing")}, ""); got != c.want {
				t.Errorf("got %q of %d bytes, want %d", got[:min(len(got), 100)], len(got), len(c.want))
			}
		})
	}
}

// TestReportedError: the last lines of a log are those beside the error that the attempt has reported.
func TestReportedError(t *testing.T) {
	stack := "panic: oh\n\n" + strings.Repeat("main.f()\n\t/job/main.go:3 +0x1\n", 100)
	for _, c := range []struct{ name, log, reported, want string }{
		{"at the end", "one\ntwo\n" + stack + "\n", stack, "one\ntwo"},
		{"with a status", "one\n" + stack + "\n", stack + "(its status: x)", "one"},
		{"lines of another goroutine", "one\n" + stack + "two\n", stack, "one\ntwo"},
		{"alone", stack + "\n", stack, ""},
		{"twice", stack + "\n" + stack, "panic: oh\n\n", stack[:len(stack)-1]},
		{"of one line", "one\noh\n", "oh", "one\noh"},
		{"within a line", "one: panic: oh\ntwo\n", "panic: oh\n\nx", "one: panic: oh\ntwo"},
		{"not in the log", "one\n", stack, "one"},
		{"a line cut at its beginning", strings.Repeat("y", 5000) + "\nlast\n" + stack, stack, "last"},
		{"an empty log", "", stack, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "stderr")
			if err := os.WriteFile(file, []byte(c.log), 0o666); err != nil {
				t.Fatal(err)
			}
			want := strings.Split(c.want, "\n")
			want = want[max(len(want)-20, 0):]
			if got := LastLines([]string{file}, c.reported); got != strings.Join(want, "\n") {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
