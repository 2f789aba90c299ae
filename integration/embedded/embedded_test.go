// Package embedded_test runs job programs as a user does, in their own processes, and
// compares their output with a simple word count.
package embedded_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/integration/trial"
)

// programs is the directory of the programs, which TestMain builds.
var programs string

func TestMain(m *testing.M) {
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "quern-integration-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // TestUnreadableInput runs a program as another user
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	programs = dir
	if err := processes.BuildPrograms(dir, "cmd/mrsubmit", "examples/wordcount", "examples/sort", "examples/grep", "examples/leftjoin",
		"integration/embedded/faulty", "integration/embedded/words", trial.Bad, trial.Paced); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// outcome is the result of a program.
type outcome struct {
	exit   int
	stderr string
}

// deadline is generous: it only ends a test that hangs.
const deadline = 15 * time.Minute

func command(t *testing.T, stderr *bytes.Buffer, program string, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, filepath.Join(programs, program), args...)
	cmd.Stderr = stderr
	cmd.Env = append(os.Environ(), "TMPDIR="+tempDir(t))
	return cmd
}

func start(t *testing.T, stderr *bytes.Buffer, program string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := command(t, stderr, program, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func wait(t *testing.T, cmd *exec.Cmd, stderr *bytes.Buffer) outcome {
	t.Helper()
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return outcome{cmd.ProcessState.ExitCode(), stderr.String()}
}

func run(t *testing.T, program string, args ...string) outcome {
	t.Helper()
	var stderr bytes.Buffer
	return wait(t, start(t, &stderr, program, args...), &stderr)
}

// filePoll is the interval for polling files and processes.
const filePoll = 10 * time.Millisecond

// whileRuns polls until a condition holds or the program has ended, and reports whether it holds.
// It does not spin: the program needs the processor.
func whileRuns(cmd *exec.Cmd, every time.Duration, holds func() bool) bool {
	held := false
	trial.Poll(deadline, every, func() bool {
		held = holds()
		return held || !running(cmd.Process.Pid)
	})
	return held
}

// succeed runs a program that must exit 0.
func succeed(t *testing.T, program string, args ...string) outcome {
	t.Helper()
	o := run(t, program, args...)
	if o.exit != 0 {
		t.Fatalf("%s %s: exit %d\n%s", program, strings.Join(args, " "), o.exit, o.stderr)
	}
	return o
}

// checkRefused runs a program that must exit with the given code, print every want, and leave no
// output.
func checkRefused(t *testing.T, exit int, output string, wants []string, program string, args ...string) {
	t.Helper()
	o := run(t, program, args...)
	if o.exit != exit {
		t.Errorf("%s %s: exit %d, want %d\n%s", program, strings.Join(args, " "), o.exit, exit, o.stderr)
	}
	for _, want := range wants {
		if !strings.Contains(o.stderr, want) {
			t.Errorf("message lacks %q:\n%s", want, o.stderr)
		}
	}
	if _, err := os.Stat(output); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left behind (%v)", output, err)
	}
	checkNoLeftovers(t)
}

// tempDir returns the TMPDIR of the test's programs.
func tempDir(t *testing.T) string {
	dir := filepath.Join(programs, "tmp", strings.ReplaceAll(t.Name(), "/", "-"))
	if err := errors.Join(os.MkdirAll(filepath.Dir(dir), 0o755), os.MkdirAll(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// checkNoLeftovers fails the test if programs have left files in TMPDIR.
func checkNoLeftovers(t *testing.T) {
	t.Helper()
	filepath.Walk(tempDir(t), func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() && info.Size() > 0 {
			t.Errorf("left behind: %s", path)
		}
		return nil
	})
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// readParts joins the part files of an output directory, which must have _SUCCESS.
func readParts(t *testing.T, output string) string {
	t.Helper()
	return string(trial.JoinParts(trial.ReadParts(t, local.FS{}, output)))
}

// countWords returns the right output of a word count.
func countWords(text string) string { return string(trial.CountWords([]byte(text))) }

func sortedLines(s string) string { return string(trial.SortLines([]byte(s))) }

func checkEqual(t *testing.T, what, got, want string) {
	t.Helper()
	trial.CheckEqual(t, what, []byte(got), []byte(want))
}
