package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/wire"
)

// Failures of a job program in plan mode.
var (
	// ErrUsage reports wrong flags. The program has printed an explanation.
	ErrUsage = errors.New("refused its flags")
	// ErrHelp reports that the program printed its help.
	ErrHelp = errors.New("printed its help")
	// ErrPanic reports a panic. The program has printed its trace.
	ErrPanic = errors.New("panicked while making its plan")
	// ErrExit reports an exit code other than 0 and 2, or an end by a signal.
	ErrExit = errors.New("ended without a plan")
	// ErrNoPlan reports that the program ended with code 0, but without a plan.
	ErrNoPlan = errors.New("never called mapreduce.Main")
	// ErrHang reports that the program took too long to make its plan.
	ErrHang = errors.New("made no plan")
)

// planDeadline is the time within which a program must write its plan and end.
const planDeadline = 30 * time.Second

// Plan runs a job program in plan mode and returns its submission, with Plan, Program.Args and
// Program.Flags. The program's standard output and standard error go to stderr. When ctx ends, or
// after 30 s, Plan kills the program and its children. Every error names exe. Errors that the
// program causes match a sentinel above.
func Plan(ctx context.Context, exe string, args []string, stderr io.Writer) (*wire.Submission, error) {
	return planWithin(ctx, exe, args, stderr, planDeadline)
}

func planWithin(parent context.Context, exe string, args []string, stderr io.Writer, limit time.Duration) (*wire.Submission, error) {
	ctx, cancel := context.WithTimeoutCause(parent, limit, ErrHang)
	defer cancel()
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", exe, err)
	}
	defer r.Close()
	output := &tracer{to: stderr}
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Env = append(os.Environ(), "QUERN_MODE=plan")
	cmd.ExtraFiles = []*os.File{w} // descriptor 3 of the program
	cmd.Stdout, cmd.Stderr = output, output
	cmd.WaitDelay = time.Second // a child of the program may hold its standard error open
	ownGroup(cmd)
	err = cmd.Start()
	w.Close()
	switch {
	case parent.Err() != nil && err != nil:
		return nil, fmt.Errorf("%s: plan: %w", exe, context.Cause(parent))
	case err != nil:
		return nil, fmt.Errorf("run %s: %w", exe, err)
	}
	frames := make(chan planFrame, 1)
	go func() {
		sub, err := wire.ReadAs[*wire.Submission](r)
		frames <- planFrame{sub, err}
	}()
	waitErr := cmd.Wait()
	endGroup(cmd)
	// The program has ended, so its plan is in the pipe. The deadline ends the read if a descendant
	// outside the group holds the pipe open.
	r.SetReadDeadline(time.Now().Add(time.Second))
	frame := <-frames
	switch {
	case parent.Err() != nil:
		return nil, fmt.Errorf("%s: plan: %w", exe, context.Cause(parent))
	case ctx.Err() != nil && waitErr != nil:
		return nil, fmt.Errorf("%s %w within %v; it was killed", exe, ErrHang, limit)
	case waitErr != nil && !errors.Is(waitErr, exec.ErrWaitDelay):
		return nil, exitError(exe, waitErr, output)
	case errors.Is(frame.err, io.EOF), errors.Is(frame.err, os.ErrDeadlineExceeded):
		if wantsHelp(args) {
			return nil, fmt.Errorf("%s %w", exe, ErrHelp)
		}
		return nil, fmt.Errorf("%s ended with code 0 but %w", exe, ErrNoPlan)
	case frame.err != nil:
		return nil, fmt.Errorf("%s: plan: %w", exe, frame.err)
	}
	return frame.sub, nil
}

type planFrame struct {
	sub *wire.Submission
	err error
}

// exitError explains the end of a program that failed.
func exitError(exe string, err error, output *tracer) error {
	var exit *exec.ExitError
	switch {
	case !errors.As(err, &exit):
		return fmt.Errorf("%s: plan: %w", exe, err)
	case output.panicked:
		return fmt.Errorf("%s %w", exe, ErrPanic)
	case exit.ExitCode() == 2:
		return fmt.Errorf("%s %w", exe, ErrUsage)
	}
	err = fmt.Errorf("%s %w: %v", exe, ErrExit, exit) // "exit status 3", "signal: killed"
	switch {
	case output.failed:
		return err
	case output.last == "":
		return fmt.Errorf("%w, in mapreduce.Main or before", err)
	}
	return fmt.Errorf("%w, in mapreduce.Main or before; its last line: %s", err, output.last)
}

func wantsHelp(args []string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		return arg == "-h" || arg == "-help" || arg == "--help" || arg == "--h"
	})
}

// tracer copies a program's output and looks for the trace of a panic. The exit code does not help:
// it is 2 for a panic and for wrong flags.
type tracer struct {
	to       io.Writer
	line     []byte // the beginning of the current line
	last     string // the beginning of the last line that was not empty
	failed   bool   // mapreduce.Main has printed an error
	crashed  bool   // a line begins a panic or fatal error
	panicked bool   // after it, a goroutine's trace begins
}

// maxLineStart is how many bytes of a line the tracer keeps.
const maxLineStart = 200

func (t *tracer) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		piece, after, ended := bytes.Cut(rest, []byte{'\n'})
		t.line = append(t.line, piece[:min(len(piece), maxLineStart-len(t.line))]...)
		if ended {
			t.endLine()
		}
		rest = after
	}
	return t.to.Write(p)
}

func (t *tracer) endLine() {
	line := string(t.line)
	t.line = t.line[:0]
	if line != "" {
		t.last = strings.ToValidUTF8(line, "")
	}
	t.failed = t.failed || strings.HasPrefix(line, "error: ")
	if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
		t.crashed = true
	}
	if t.crashed && strings.HasPrefix(line, "goroutine ") {
		t.panicked = true
	}
}
