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

// What a job program may do instead of telling its plan.
var (
	// ErrUsage reports bad flags; the program has said what is wrong with them.
	ErrUsage = errors.New("refused its flags")
	// ErrHelp reports that the program printed its help, as it was asked to.
	ErrHelp = errors.New("printed its help")
	// ErrPanic reports a panic; its trace has been printed.
	ErrPanic = errors.New("panicked while it made its plan")
	// ErrExit reports an exit with another code than 0 or 2, or an end by a signal.
	ErrExit = errors.New("ended without a plan")
	// ErrNoPlan reports that the program ended well without having told a plan.
	ErrNoPlan = errors.New("never called mapreduce.Main")
	// ErrHang reports that the program took too long to make its plan.
	ErrHang = errors.New("made no plan")
)

// planDeadline is how long a program may take to tell its plan and end.
const planDeadline = 30 * time.Second

// Plan runs a job program in its plan mode with the given arguments and returns
// the submission it describes: Plan, Program.Args and Program.Flags are set. Its
// standard error passes through to stderr, and so does its standard output. The
// program and what it started are killed when ctx ends or after 30 s. Every error
// names exe; those the program causes match one of the sentinels above.
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
	said := &tracer{to: stderr}
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Env = append(os.Environ(), "QUERN_MODE=plan")
	cmd.ExtraFiles = []*os.File{w} // its descriptor 3
	cmd.Stdout, cmd.Stderr = said, said
	cmd.WaitDelay = time.Second // for whoever inherited its standard error
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
	// What the program wrote is in the pipe by now; a descendant that has left the
	// group and still holds the other end is not waited for.
	r.SetReadDeadline(time.Now().Add(time.Second))
	frame := <-frames
	switch {
	case parent.Err() != nil:
		return nil, fmt.Errorf("%s: plan: %w", exe, context.Cause(parent))
	case ctx.Err() != nil && waitErr != nil:
		return nil, fmt.Errorf("%s %w within %v; it was killed", exe, ErrHang, limit)
	case waitErr != nil && !errors.Is(waitErr, exec.ErrWaitDelay):
		return nil, exitError(exe, waitErr, said)
	case errors.Is(frame.err, io.EOF), errors.Is(frame.err, os.ErrDeadlineExceeded):
		if asksHelp(args) {
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

// exitError says how a program ended that did not end well.
func exitError(exe string, err error, said *tracer) error {
	var exit *exec.ExitError
	switch {
	case !errors.As(err, &exit):
		return fmt.Errorf("%s: plan: %w", exe, err)
	case said.panicked:
		return fmt.Errorf("%s %w", exe, ErrPanic)
	case exit.ExitCode() == 2:
		return fmt.Errorf("%s %w", exe, ErrUsage)
	}
	err = fmt.Errorf("%s %w: %v", exe, ErrExit, exit) // "exit status 3", "signal: killed"
	switch {
	case said.failed:
		return err
	case said.last == "":
		return fmt.Errorf("%w, in mapreduce.Main or before", err)
	}
	return fmt.Errorf("%w, in mapreduce.Main or before; it said last: %s", err, said.last)
}

func asksHelp(args []string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		return arg == "-h" || arg == "-help" || arg == "--help" || arg == "--h"
	})
}

// tracer passes text through and notices the trace of a panic, which ends a
// program with the same code as bad flags do.
type tracer struct {
	to       io.Writer
	line     []byte // the beginning of the current line
	last     string // the beginning of the last one that was not empty
	failed   bool   // a line is mapreduce.Main's, with what is wrong
	died     bool   // a line has announced it
	panicked bool   // and a goroutine's trace has followed
}

// traceStart is more than enough of a line to know it by.
const traceStart = 200

func (t *tracer) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		piece, after, ended := bytes.Cut(rest, []byte{'\n'})
		t.line = append(t.line, piece[:min(len(piece), traceStart-len(t.line))]...)
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
		t.died = true
	}
	if t.died && strings.HasPrefix(line, "goroutine ") {
		t.panicked = true
	}
}
