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

// TestWithOutput: the last lines of stdout and stderr are labelled, and both together keep the limits of one.
func TestWithOutput(t *testing.T) {
	lines := func(s string, n int) string { return strings.TrimSuffix(strings.Repeat(s+"\n", n), "\n") }
	long := func(s string) string { return strings.Repeat(s, lastBytes) }
	room := lastBytes - len(outputLabel) - len(errorsLabel)
	for _, c := range []struct {
		name, output, text string
		first              bool
		wantOutput, want   string
	}{
		{"none", "", "", false, "", ""},
		{"only stderr", "", "e", false, "", "e"},
		{"only stdout", "o", "", false, "o", ""},
		{"both", "o", "e", false, "o", "e"},
		{"many lines each", lines("o", 20), lines("e", 20), false, lines("o", 10), lines("e", 10)},
		{"few lines of stdout", lines("o", 2), lines("e", 20), false, lines("o", 2), lines("e", 18)},
		{"few lines of stderr", lines("o", 20), lines("e", 3), false, lines("o", 17), lines("e", 3)},
		{"long lines", long("o"), long("e"), false, long("o")[:room-room/2], long("e")[:room/2]},
		{"long stdout alone", long("o"), "", false, long("o")[len(outputLabel):], ""},
		{"long stdout", long("o"), "e", false, long("o")[:room-1], "e"},
		{"a crash", lines("o", 20), "panic: x\n" + lines("e", 19), true, lines("o", 10), "panic: x\n" + lines("e", 19)},
		{"a long crash", long("o"), "panic: " + long("e"), true, long("o")[:room-room/2], "panic: " + long("e")[:room/2-len("panic: ")-len("…")] + "…"},
	} {
		want := c.want
		switch {
		case c.wantOutput != "" && c.want != "":
			want = "last lines of standard output:\n" + c.wantOutput + "\nlast lines of standard error:\n" + c.want
		case c.wantOutput != "":
			want = "last lines of standard output:\n" + c.wantOutput
		}
		if got := WithOutput(c.output, c.text, c.first); got != want || len(got) > lastBytes {
			t.Errorf("%s: got %d bytes\n%s\nwant %d\n%s", c.name, len(got), got, len(want), want)
		}
	}
}
