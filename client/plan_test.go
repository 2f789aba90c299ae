package client

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quernmr/quern/wire"
)

// TestMain makes this test binary a job program in plan mode. The first argument selects its
// behaviour.
func TestMain(m *testing.M) {
	if os.Getenv("QUERN_MODE") == "plan" {
		os.Exit(planner(os.Args[1:]))
	}
	if os.Getenv("QUERN_MODE") == "drive" {
		driveAsProgram()
	}
	os.Exit(m.Run())
}

func planner(args []string) int {
	pipe := os.NewFile(3, "plan")
	behaviour := "good"
	if len(args) > 0 {
		behaviour = args[0]
	}
	frame, err := wire.Append(nil, &wire.Submission{
		Plan:    wire.Plan{Jobs: []wire.JobPlan{{Name: "j"}}},
		Program: wire.Program{Args: args, Flags: map[string]string{"size": strings.Repeat("x", 300_000)}},
	})
	if err != nil {
		panic(err)
	}
	switch behaviour {
	case "usage":
		fmt.Fprintln(os.Stderr, "flag provided but not defined: -x")
		return 2
	case "exit":
		fmt.Fprintln(os.Stderr, "panic: only a word")
		return 3
	case "fail":
		fmt.Fprintln(os.Stderr, "error: type T has no encoding\n  nor has U")
		return 1
	case "panic":
		fmt.Println(args[len(args)])
	case "killed":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "silent":
		fmt.Println("hello")
		return 0
	case "hang", "hang after":
		if behaviour == "hang after" {
			pipe.Write(frame)
		}
		<-time.After(time.Minute)
	case "torn":
		pipe.Write(frame[:100])
		return 0
	case "other":
		frame, _ = wire.Append(nil, &wire.CommitReady{})
	case "child": // starts a child that holds its descriptors open
		child := exec.Command(os.Args[0], "hang")
		child.ExtraFiles = []*os.File{pipe}
		if len(args) > 1 { // the child holds the lock of a file until it ends
			file, err := os.Open(args[1])
			if err == nil {
				err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
			}
			if err != nil {
				panic(err)
			}
			child.ExtraFiles = append(child.ExtraFiles, file)
		}
		if err := child.Start(); err != nil {
			panic(err)
		}
		return 0
	case "-h":
		flag.CommandLine.SetOutput(os.Stderr)
		flag.Usage()
		return 0
	}
	pipe.Write(frame)
	return 0
}

func TestPlan(t *testing.T) {
	t.Setenv("GORACE", "atexit_sleep_ms=0") // otherwise every process waits a second at its end
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		behaviour string
		limit     time.Duration
		want      error
		text      string // part of the error
		stderr    string // part of the output
	}{
		{"usage", planDeadline, ErrUsage, "refused its flags", "not defined: -x"},
		{"exit", planDeadline, ErrExit, "exit status 3, in mapreduce.Main or before; its last line: panic: only a word", "only a word"},
		{"fail", planDeadline, ErrExit, "ended without a plan: exit status 1", "has no encoding"},
		{"panic", planDeadline, ErrPanic, "panicked", "index out of range [1]"},
		{"killed", planDeadline, ErrExit, "signal: killed, in mapreduce.Main or before", ""},
		{"silent", planDeadline, ErrNoPlan, "never called mapreduce.Main", "hello"},
		{"child", planDeadline, ErrNoPlan, "never called mapreduce.Main", ""},
		{"torn", planDeadline, nil, "unexpected EOF", ""},
		{"other", planDeadline, nil, "got a *wire.CommitReady", ""},
		{"hang", 200 * time.Millisecond, ErrHang, "within 200ms", ""},
		{"hang after", 200 * time.Millisecond, ErrHang, "within 200ms", ""},
		{"-h", planDeadline, ErrHelp, "printed its help", "Usage"},
	} {
		var stderr bytes.Buffer
		_, err := planWithin(t.Context(), exe, []string{c.behaviour}, &stderr, c.limit)
		if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) || !strings.Contains(err.Error(), exe) {
			t.Errorf("%s: error %v, want %v with %q", c.behaviour, err, c.want, c.text)
		}
		if !strings.Contains(stderr.String(), c.stderr) {
			t.Errorf("%s: printed %q, want %q", c.behaviour, stderr.String(), c.stderr)
		}
	}

	args := []string{"good", "-a", "b c", ""}
	sub, err := Plan(t.Context(), exe, args, os.Stderr)
	if err != nil || !reflect.DeepEqual(sub.Program.Args, args) || len(sub.Plan.Jobs) != 1 {
		t.Errorf("good plan: %+v, %v", sub, err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("got signal interrupt"))
	if _, err := Plan(ctx, exe, []string{"hang"}, os.Stderr); err == nil || !strings.Contains(err.Error(), "got signal interrupt") {
		t.Errorf("interrupted: %v", err)
	}
	if _, err := Plan(t.Context(), filepath.Join(t.TempDir(), "none"), nil, os.Stderr); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}

// TestPlanEndsChildren: when a program has ended, its children end too.
func TestPlanEndsChildren(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "lock")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Plan(t.Context(), exe, []string{"child", name}, io.Discard); !errors.Is(err, ErrNoPlan) {
		t.Fatal(err)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	ended := make(chan error, 1)
	go func() { ended <- syscall.Flock(int(file.Fd()), syscall.LOCK_EX) }()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the child goes on")
	}
}

// TestPlanNoticesPanics: the tracer finds a trace, however it is split into writes.
func TestPlanNoticesPanics(t *testing.T) {
	trace := "some output\npanic: " + strings.Repeat("long ", 100) + "\n\ngoroutine 1 [running]:\nmain.main()\n"
	for size := 1; size < len(trace); size++ {
		var to bytes.Buffer
		tr := &tracer{to: &to}
		for rest := trace; rest != ""; {
			n := min(size, len(rest))
			if _, err := tr.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if !tr.panicked || to.String() != trace {
			t.Fatalf("in pieces of %d: panicked %v, passed on %q", size, tr.panicked, to.String())
		}
	}
	tr := &tracer{to: io.Discard}
	for range 10 {
		if _, err := io.WriteString(tr, strings.Repeat("x", maxLineStart)); err != nil {
			t.Fatal(err)
		}
	}
	if len(tr.line) != maxLineStart {
		t.Errorf("it keeps %d bytes of a line, want %d", len(tr.line), maxLineStart)
	}
}

func TestInterrupts(t *testing.T) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP) // otherwise it stays ignored if the tests run under nohup
	signal.Stop(hangups)
	ctx, signals, stop := Interrupts(t.Context())
	defer stop()
	for _, c := range []struct {
		signal syscall.Signal
		done   <-chan struct{}
	}{
		{syscall.SIGHUP, signals.HangUp},
		{syscall.SIGHUP, signals.HangUp}, // repeated
		{syscall.SIGTERM, ctx.Done()},
		{syscall.SIGTERM, signals.GiveUp},
	} {
		select {
		case <-ctx.Done():
			if c.signal == syscall.SIGHUP {
				t.Fatal("SIGHUP has ended the context")
			}
		default:
		}
		if err := syscall.Kill(os.Getpid(), c.signal); err != nil {
			t.Fatal(err)
		}
		select {
		case <-c.done:
		case <-t.Context().Done():
			t.Fatal("signal not noticed")
		}
	}
	if cause := context.Cause(ctx); !strings.Contains(cause.Error(), "terminated") {
		t.Errorf("cause: %v", cause)
	}
}

// TestIgnoredHangUp: under nohup, SIGHUP stays ignored.
func TestIgnoredHangUp(t *testing.T) {
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	ctx, signals, stop := Interrupts(t.Context())
	defer stop()
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM} {
		if err := syscall.Kill(os.Getpid(), s); err != nil {
			t.Fatal(err)
		}
	}
	<-ctx.Done()
	select {
	case <-signals.HangUp:
		t.Error("SIGHUP was noticed")
	default:
	}
}
