// Command mrsubmit is Quern's command line: it runs jobs, and shows and changes jobs and the
// cluster. commands.go has the table of subcommands.
//
// It uses the standard package flag and a table, and no library for command lines. Flags have one
// dash, as Go's and Hadoop's, and arguments after a job's name are the job's own. Of the libraries
// that we tried, cobra knows only --flag. urfave/cli accepts -flag, but its help, its completion and
// its messages name --flag, it completes no values of flags, and in bash it evaluates the line that
// is completed. Either would replace about a hundred lines here, and need most of them again to keep this
// command line as it is; ff completes nothing.
//
// Results go to standard output; progress and messages to standard error. Exit codes:
//
//	0    done
//	1    the job or command failed
//	2    bad usage
//	5    streaming: an input is missing, or the output exists
//	129  the terminal was closed; the jobs go on without mrsubmit
//	141  the reader of standard output was closed
//	255  fs, and as one of Hadoop's programs: bad usage
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/cmd/internal/build"
	"github.com/quernmr/quern/mapreduce/streaming"
	"github.com/quernmr/quern/wire"
)

const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2

	exitBrokenPipe = 128 + int(syscall.SIGPIPE) // shells use it for a process that SIGPIPE has ended
)

func main() {
	if code, ended := streaming.Serve(); ended {
		os.Exit(code)
	}
	ctx, signals, stop := client.Interrupts(context.Background())
	t := &tool{
		stdin:    os.Stdin,
		stdout:   results(os.Stdout, term.IsTerminal(int(os.Stdout.Fd()))),
		stderr:   os.Stderr,
		getenv:   os.Getenv,
		width:    client.Terminal(os.Stderr),
		signals:  signals,
		embedded: embeddedCluster,
	}
	if client.Terminal(os.Stdout) != nil && os.Getenv("NO_COLOR") == "" {
		t.colors = resultWriter{os.Stdout}
	}
	if client.Terminal(os.Stdout) != nil && term.IsTerminal(int(os.Stdin.Fd())) {
		t.terminal = os.Stdout
	}
	var code int
	if name := filepath.Base(os.Args[0]); slices.Contains(hadoopPrograms(), name) {
		code = t.hadoop(ctx, name, os.Args[1:])
	} else {
		code = t.main(ctx, os.Args[1:])
	}
	stop()
	os.Exit(code)
}

// tool has the inputs and outputs of a command, which tests replace.
type tool struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(name string) string
	width          func() int // columns of the terminal; nil: stderr is not a terminal
	signals        client.Signals
	embedded       startCluster
	terminal       *os.File  // of standard input and output; nil: they are no terminal that can redraw
	colors         io.Writer // standard output for text with colors; nil: no colors
	ended          bool      // run -json has printed its last line

	poll    time.Duration           // pause between looks at logs that grow; 0: the usual one
	inspect func(set *flag.FlagSet) // if not nil, parse only calls it: see complete.go
}

func (t *tool) main(ctx context.Context, args []string) int {
	if len(args) == 0 {
		t.usage(t.stderr)
		return exitUsage
	}
	switch name := args[0]; name {
	case "-h", "-help", "--help", "help":
		return t.help(ctx, args[1:])
	case "-version", "--version", "version":
		fmt.Fprintf(t.stdout, "mrsubmit %s, %s %s/%s, job protocol %d\n",
			build.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH, wire.WorkerProtocol)
		return exitDone
	case completeCommand:
		return t.complete(ctx, args[1:])
	default:
		if c := find(commands(), name); c != nil {
			return c.execute(t, ctx, args[1:])
		}
		fmt.Fprintf(t.stderr, "mrsubmit: unknown command %q%s; see mrsubmit help\n", name, meant(name))
		return exitUsage
	}
}

// errOutputClosed reports that the reader of standard output has ended, as in "… | head".
var errOutputClosed = errors.New("standard output is closed")

// isOutputClosed reports whether err is errOutputClosed, and not joined with other errors.
func isOutputClosed(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok && len(joined.Unwrap()) > 1 {
		return false
	}
	return errors.Is(err, errOutputClosed)
}

// resultWriter writes to standard output, and returns errOutputClosed for a broken pipe.
type resultWriter struct{ to io.Writer }

func (r resultWriter) Write(p []byte) (int, error) {
	n, err := r.to.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		err = errOutputClosed
	}
	return n, err
}

// results returns the writer of results. On a terminal it shows control characters, which jobs may
// print and name themselves with; other readers get the bytes as they are.
func results(to io.Writer, terminal bool) io.Writer {
	if terminal {
		return &client.VisibleWriter{To: resultWriter{to}}
	}
	return resultWriter{to}
}

// errorText returns an error for standard error: a server's text can have control characters.
func errorText(err error) string { return client.Visible(err.Error()) }
