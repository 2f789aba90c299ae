package healthscript

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// private returns a directory that other users cannot write, under every umask.
func private(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// script writes an executable script.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(private(t), "health")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

const long = time.Minute

// start starts a script as exec.Cmd does.
func start(cmd *exec.Cmd) (ended func(), err error) { return func() {}, cmd.Start() }

func TestRun(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"exit 3", ""},
		{"echo all is well; echo no ERROR here", ""},
		{"echo ' ERROR indented'", ""},
		{"echo fine; echo ERROR disk /d3 is slow; echo more", "ERROR disk /d3 is slow"},
		{"echo ERROR on standard error >&2; exit 1", "ERROR on standard error"},
		{"echo ERROR one; echo ERROR two", "ERROR one; ERROR two"},
		{"printf 'ERROR \\377'", "ERROR ?"},
		{"[ $# = 0 ] && read line || echo ERROR no input, no arguments", "ERROR no input, no arguments"},
	} {
		if got := Run(t.Context(), script(t, c.text), long, start); got != c.want {
			t.Errorf("%s: %q, want %q", c.text, got, c.want)
		}
	}
	if got := Run(t.Context(), script(t, "yes | head -c 10000000; echo ERROR late"), long, start); got != "" {
		t.Errorf("after ten megabytes: %q", got)
	}
	if got := Run(t.Context(), script(t, "yes ERROR | head -c 60000"), long, start); len(got) > 10_000 || !strings.HasPrefix(got, "ERROR; ERROR") {
		t.Errorf("%d bytes are reported", len(got))
	}
}

// TestTimeout: a script that hangs is killed, with its children: the last writer of the pipe ends.
func TestTimeout(t *testing.T) {
	dir := t.TempDir()
	pipe, started := filepath.Join(dir, "pipe"), filepath.Join(dir, "started")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	path := script(t, "exec 3>"+pipe+"; touch "+started+"; sleep 1000 & wait")
	for wait, begun := time.Second, false; !begun; wait *= 2 { // on a slow machine the script may not begin in time
		if got := Run(t.Context(), path, wait, start); !strings.Contains(got, "did not end within "+wait.String()) {
			t.Fatalf("a script that hangs: %q", got)
		}
		_, err := os.Stat(started)
		begun = err == nil
	}
	w.Close()
	if text, err := io.ReadAll(r); err != nil || len(text) > 0 {
		t.Errorf("%q, %v", text, err)
	}
}

// TestLeftover: a process that the script leaves behind does not hold Run up.
func TestLeftover(t *testing.T) {
	if got := Run(t.Context(), script(t, "sleep 1000 & echo ERROR bad"), long, start); got != "ERROR bad" {
		t.Errorf("%q", got)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := Run(ctx, script(t, "echo ERROR bad"), long, start); got != "" {
		t.Errorf("after the end of ctx: %q", got)
	}
}

func TestCheck(t *testing.T) {
	good := script(t, "")
	mode := func(perm os.FileMode) string {
		path := script(t, "")
		if err := os.Chmod(path, perm); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for path, want := range map[string]string{
		good: "", "health.sh": "not an absolute path", good + "x": "no such file", filepath.Dir(good): "not a regular file",
		mode(0o600): "is not executable", mode(0o720): "may write", mode(0o702): "may write", mode(0o755): "",
	} {
		err := Check(path)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
		if got := Run(t.Context(), path, long, start); (got == "") != (want == "") {
			t.Errorf("running %s: %q", path, got)
		}
	}
}

// TestCheckDirectories: no other user may be able to replace the script.
func TestCheckDirectories(t *testing.T) {
	path := script(t, "")
	dir := filepath.Dir(path)
	link := filepath.Join(private(t), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		perm os.FileMode
		want string
	}{{0o755, ""}, {0o777 | os.ModeSticky, ""}, {0o757, "may write " + dir}, {0o775, "may write " + dir}} {
		if err := os.Chmod(dir, c.perm); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{path, link} {
			err := Check(path)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s in a directory with %v: %v, want %q", path, c.perm, err, c.want)
			}
		}
	}
}

// TestCheckOwner: the owner of a script may write it.
func TestCheckOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	const other = 65534
	path := script(t, "")
	dir := filepath.Dir(path)
	for _, owned := range []string{path, dir} {
		if err := os.Chown(owned, other, -1); err != nil {
			t.Fatal(err)
		}
		if err := Check(path); err == nil || !strings.Contains(err.Error(), owned+" belongs to user 65534") {
			t.Errorf("user %d owns %s: %v", other, owned, err)
		}
		if err := os.Chown(owned, 0, -1); err != nil {
			t.Fatal(err)
		}
	}
}
