// Command mrsubmit is Quern's command line: it runs jobs and asks about them.
// There is one file for each subcommand; this one picks among them.
//
// Exit codes: 0 done, 1 the job or command failed, 2 bad usage. Results go to
// standard output; progress and messages to standard error.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/wire"
)

const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, giveUp, stop := client.Interrupts(context.Background())
	t := &tool{
		stdout:   os.Stdout,
		stderr:   os.Stderr,
		getenv:   os.Getenv,
		width:    client.Terminal(os.Stderr),
		giveUp:   giveUp,
		embedded: embeddedCluster,
	}
	code := t.main(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// tool is what a command works with; the tests bring their own.
type tool struct {
	stdout, stderr io.Writer
	getenv         func(name string) string
	width          func() int      // columns of the terminal that stderr is; nil: it is none
	giveUp         <-chan struct{} // closed by the user's second interrupt
	embedded       startCluster
}

// command is a subcommand. Its run takes what follows its name and returns the
// exit code.
type command struct {
	name     string
	synopsis string // its arguments
	summary  string
	run      func(t *tool, ctx context.Context, args []string) int
}

func commands() []command {
	return []command{
		{"run", runSynopsis, "run a job and wait for its end", (*tool).run},
	}
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
			version(), runtime.Version(), runtime.GOOS, runtime.GOARCH, wire.WorkerProtocol)
		return exitDone
	default:
		for _, c := range commands() {
			if c.name == name {
				return c.run(t, ctx, args[1:])
			}
		}
		fmt.Fprintf(t.stderr, "mrsubmit: unknown command %q; see mrsubmit help\n", name)
		return exitUsage
	}
}

// help prints the list of commands, or one command's own help.
func (t *tool) help(ctx context.Context, args []string) int {
	if len(args) > 0 {
		return t.main(ctx, []string{args[0], "-h"})
	}
	t.usage(t.stdout)
	return exitDone
}

func (t *tool) usage(w io.Writer) {
	fmt.Fprint(w, "mrsubmit runs MapReduce jobs written in Go.\n\nCommands:\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "  mrsubmit %s %s\n        %s\n", c.name, c.synopsis, c.summary)
	}
	fmt.Fprint(w, "  mrsubmit help [COMMAND]\n  mrsubmit -version\n")
}

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
