package attemptlog

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// openBelow returns the open files of this process below a directory.
func openBelow(t *testing.T, dir string) (files []string) {
	t.Helper()
	for _, fd := range names(t, "/proc/self/fd") {
		if file, err := os.Readlink("/proc/self/fd/" + fd); err == nil && strings.HasPrefix(file, dir) {
			files = append(files, file)
		}
	}
	return files
}

// TestLogsThatCannotBeMade: if one pipe or log cannot be made, none stays open.
func TestLogsThatCannotBeMade(t *testing.T) {
	dir := t.TempDir()
	make := func(path string) {
		if err := os.MkdirAll(filepath.Join(dir, path), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	make("pipes/stderr/x") // a directory instead of a pipe
	if _, err := newPipes(filepath.Join(dir, "pipes")); !errors.Is(err, syscall.EEXIST) {
		t.Errorf("the error is %v", err)
	}
	if files := openBelow(t, dir); len(files) > 0 {
		t.Errorf("still open: %v", files)
	}

	make("logs/stderr") // a directory instead of a log
	w := &Streams{dir: filepath.Join(dir, "worker"), captures: new(Captures)}
	make("worker")
	if _, err := w.Capture(filepath.Join(dir, "logs"), nil); !errors.Is(err, syscall.EISDIR) {
		t.Errorf("the error is %v", err)
	}
	pipes := w.exchange(nil)
	pipes.release()
	if remaining := names(t, filepath.Join(dir, "worker/logs")); len(remaining) > 0 {
		t.Errorf("remaining: %q", remaining)
	}
	for _, c := range pipes.captures {
		if c.raw.Control(func(uintptr) {}) == nil {
			t.Errorf("%s is open", c.from.Name())
		}
	}
}

// TestPipesAreReused: the next attempt uses the same pipes, unless a process has them
// open. The output of such a process stays out of the logs of later attempts.
func TestPipesAreReused(t *testing.T) {
	dir := t.TempDir()
	w := &Streams{dir: dir, limit: 1 << 20, captures: new(Captures)}
	begin := func(attempt string) *os.File {
		t.Helper()
		logs := filepath.Join(dir, attempt)
		if err := os.Mkdir(logs, 0o777); err != nil {
			t.Fatal(err)
		}
		pipes, err := w.Capture(logs, func(err error) { t.Error(err) })
		if err != nil {
			t.Fatal(err)
		}
		stderr, err := os.OpenFile(filepath.Join(pipes, "stderr"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(stderr, attempt+"\n"); err != nil {
			t.Fatal(err)
		}
		return stderr
	}
	begin("first").Close()
	pipes := w.pipes
	second := begin("second")
	if w.pipes != pipes {
		t.Error("the second attempt got new pipes")
	}
	third := begin("third")
	if w.pipes == pipes {
		t.Error("the third attempt got pipes that a process has open")
	}
	if _, err := io.WriteString(second, "late\n"); err != nil {
		t.Fatal(err)
	}
	pipes.drain()
	second.Close()
	third.Close()
	w.pipes.drain()
	for attempt, want := range map[string]string{"first": "first\n", "second": "second\nlate\n", "third": "third\n"} {
		if got := readWholeLog(t, filepath.Join(dir, attempt, "stderr")); got != want {
			t.Errorf("the log of the %s attempt is %q", attempt, got)
		}
	}
	w.exchange(nil).release()
}

// TestPipesAfterEnd: pipes that are made for an attempt of a worker which has just ended do not
// stay.
func TestPipesAfterEnd(t *testing.T) {
	dir := t.TempDir()
	w := &Streams{dir: dir, limit: 1 << 20, captures: new(Captures), ended: true}
	if _, err := w.Capture(dir, func(err error) { t.Error(err) }); err != nil {
		t.Fatal(err)
	}
	if remaining := names(t, filepath.Join(dir, "logs")); len(remaining) > 0 || w.pipes != nil {
		t.Errorf("remaining: %q", remaining)
	}
}
