package streaming

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

// inputBuffer is Hadoop's. It decides whether a command that does not read its input fails: what is in the buffer when
// the input ends may stay unread.
const inputBuffer = 128 << 10

// child is one run of a command.
type child struct {
	role      string // for messages: mapper
	command   string
	split     string // of a map, for messages
	task      *runtime.Task
	exitFails bool // stream.non.zero.exit.is.failure
	cmd       *exec.Cmd
	in        *os.File
	out       *os.File
	errors    *os.File
	stderr    *stderr
}

// start starts a command in the attempt's directory.
func (c *compiled) start(t *runtime.Task, role, command string, counts bool) (*child, error) {
	args := words(command)
	if len(args) == 0 {
		return nil, runtime.Fatal(fmt.Errorf("the %s's command is empty", role))
	}
	ch := &child{role: role, command: command, task: t, exitFails: c.exitFails}
	if c.input != nil {
		ch.split = fmt.Sprintf("%s:%d+%d", hadoopURI(c.input.Path), c.input.Offset, c.input.Length) // as Hadoop logs it
	}
	ch.stderr = newStderr(t, c, counts)
	ch.cmd = exec.Command(lookUp(t.Dir(), args[0]), args[1:]...)
	ch.cmd.Args[0] = args[0]
	ch.cmd.Dir, ch.cmd.Env = t.Dir(), c.environment(t)
	return ch, ch.begin()
}

// lookUp finds a program as Hadoop does: in the attempt's directory, then by PATH.
func lookUp(dir, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	local := filepath.Join(dir, name)
	if info, err := os.Stat(local); err == nil && !info.IsDir() {
		return local
	}
	if found, err := exec.LookPath(name); err == nil {
		return found
	}
	return local // for the error
}

// begin starts the process with its three pipes.
func (c *child) begin() error {
	inR, inW, inErr := os.Pipe()
	outR, outW, outErr := os.Pipe()
	errR, errW, errErr := os.Pipe()
	c.in, c.out, c.errors = inW, outR, errR
	defer closeAll(inR, outW, errW)
	if err := cmp.Or(inErr, outErr, errErr); err != nil {
		c.close()
		return fmt.Errorf("start the %s: %w", c.role, err)
	}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = inR, outW, errW
	cmd, err := startProcess(c.cmd)
	if err != nil {
		c.close()
		return fmt.Errorf("cannot run the %s %q: %w", c.role, c.command, c.startError(err))
	}
	c.cmd = cmd
	return nil
}

func (c *child) close() { closeAll(c.in, c.out, c.errors) }

// closeAll closes pipes. The Close of a nil one, which could not be made, only returns an error.
func closeAll(pipes ...*os.File) {
	for _, f := range pipes {
		f.Close()
	}
}

// run feeds the command and passes on the records of its output, until the command ends.
func (c *child) run(feed func(*input) error, read func(out io.Reader, alive func()) nextRecord, each sink) error {
	end := func() {
		c.cmd.Process.Kill()
		c.close()
	}
	stop := context.AfterFunc(c.task.Ctx, end)
	defer stop()
	defer c.close()
	fed, told, waited := make(chan error, 1), make(chan struct{}), make(chan error, 1)
	go func() {
		in := &input{w: bufio.NewWriterSize(c.in, inputBuffer)}
		err := feed(in)
		if err == nil {
			in.w.Flush() // as in Hadoop, the command need not read what was still in the buffer
		}
		c.in.Close()
		fed <- err
	}()
	go func() {
		c.stderr.read(c.errors)
		close(told)
	}()
	go func() {
		err := c.cmd.Wait()
		if c.fails(err) {
			c.leave()
		}
		waited <- err
	}()
	err := c.readOutput(read(output{c.out}, c.task.Alive), each)
	switch {
	case errors.Is(err, errLeft):
		err = nil // the exit code is the error
	case err != nil: // the command's own children may hold the pipes open
		end()
	}
	<-told
	exit := c.exitError(<-waited)
	c.in.Close() // a process that the command has left behind may hold the other end, and never read
	feedErr := <-fed
	if ended := context.Cause(c.task.Ctx); ended != nil {
		return ended
	}
	if broken := new(brokenPipe); errors.As(feedErr, broken) {
		return cmp.Or(err, exit, c.failed("did not read its input: %w: %s", broken.error, c.unread()))
	}
	return cmp.Or(err, feedErr, exit)
}

// lastErrors is how long a failed command's standard error is read, if processes that the command has left hold it open.
const lastErrors = 2 * time.Second

// leave ends the reading from a failed command, which may have left processes that hold its pipes. Without them the pipes
// end anyway. The last lines of standard error may still be in its pipe.
func (c *child) leave() {
	_ = c.out.SetReadDeadline(time.Now()) // the only possible error is that the pipe is closed
	_ = c.errors.SetReadDeadline(time.Now().Add(lastErrors))
}

// errLeft reports that a failed command's output was not read to its end.
var errLeft = errors.New("the command has failed")

// output is the standard output of a command.
type output struct{ pipe *os.File }

func (o output) Read(p []byte) (int, error) {
	n, err := o.pipe.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errLeft
	}
	return n, err
}

func (c *child) readOutput(next nextRecord, each sink) error {
	for {
		key, value, err := next()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("read the output of the %s: %w", c.role, err)
		}
		if err := each(key, value); err != nil {
			return err
		}
	}
}

// fails reports whether what Wait returned is an exit code that fails the attempt.
func (c *child) fails(err error) bool {
	_, exited := errors.AsType[*exec.ExitError](err)
	return exited && c.exitFails
}

// exitError returns an error for an exit code other than 0, unless such codes are accepted. A signal counts as in shells:
// SIGKILL is 137.
func (c *child) exitError(err error) error {
	exit, ok := errors.AsType[*exec.ExitError](err)
	switch {
	case !ok:
		return err
	case !c.fails(err):
		return nil
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return c.failed("subprocess failed with code %d: signal %d, %v", 128+int(status.Signal()), status.Signal(), status.Signal())
	}
	return c.failed("subprocess failed with code %d", exit.ExitCode())
}

// unread says what to do about a command that left input unread.
func (c *child) unread() string {
	if c.role == "mapper" {
		return "read to the end, or set " + enoughProperty + "=0"
	}
	return "read to the end"
}

// Limits of what comes before the last lines of standard error in an error. Lists of attempts cut errors to 500 bytes.
const (
	commandText = 150
	endText     = 200
)

// failed describes a failure of the command. The last line of standard error comes first, since it mostly has the cause
// and a long error is cut; then the split, and the lines before.
func (c *child) failed(format string, args ...any) error {
	err := fmt.Errorf("the "+c.role+" %q "+format, append([]any{wire.Truncate(c.command, commandText)}, args...)...)
	last := c.stderr.last()
	if end := last[strings.LastIndexByte(last, '\n')+1:]; end != "" {
		err = fmt.Errorf("%w: %s", err, wire.Truncate(strings.TrimSpace(end), endText))
	}
	if c.split != "" {
		err = fmt.Errorf("%w; its split is %s", err, c.split)
	}
	if strings.Contains(last, "\n") || len(last) > endText {
		err = fmt.Errorf("%w; the last lines of its standard error:\n%s", err, last)
	}
	return err
}

// input is the standard input of a command.
type input struct{ w *bufio.Writer }

// brokenPipe is an error of a command that has closed its standard input.
type brokenPipe struct{ error }

func (b brokenPipe) Unwrap() error { return b.error }

// lines writes a line n times, given in pieces.
func (in *input) lines(n int, pieces ...[]byte) error {
	size := 1
	for _, p := range pieces {
		size += len(p)
	}
	for n > 0 {
		fit := min(n, in.w.Available()/size)
		if fit == 0 {
			fit = 1
			if err := in.line(pieces...); err != nil {
				return err
			}
		} else { // one write for all of short lines
			lines := in.w.AvailableBuffer()
			for _, p := range pieces {
				lines = append(lines, p...)
			}
			lines = append(lines, '\n')
			for len(lines) < fit*size {
				lines = append(lines, lines[:min(len(lines), fit*size-len(lines))]...)
			}
			in.w.Write(lines) // only copies
		}
		n -= fit
	}
	return nil
}

// line writes a line that does not fit into the buffer.
func (in *input) line(pieces ...[]byte) error {
	for _, p := range pieces {
		if err := in.write(p); err != nil {
			return err
		}
	}
	if err := in.w.WriteByte('\n'); err != nil {
		return brokenPipe{err}
	}
	return nil
}

func (in *input) write(p []byte) error {
	if _, err := in.w.Write(p); err != nil {
		return brokenPipe{err}
	}
	return nil
}
