// Command mrsim runs Quern's own code in simulated clusters with faults. It also computes the
// figures of the papers behind Quern's schedulers; docs/architecture.md says which of these
// simulations run Quern's code. This file has the table of subcommands, cluster.go, forecast.go and whatif.go
// the first of them and paper.go the others.
//
// Exit codes: 0 done, 1 a failed run or a figure outside its band, 2 bad usage. Results go to
// standard output; progress and messages to standard error.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"

	"github.com/quernmr/quern/cmd/internal/build"
	"github.com/quernmr/quern/sim/papers/delay"
	"github.com/quernmr/quern/sim/papers/flex"
	"github.com/quernmr/quern/sim/papers/flowflex"
	"github.com/quernmr/quern/sim/papers/hmhs"
	"github.com/quernmr/quern/sim/papers/overlap"
)

const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := (&tool{stdout: os.Stdout, stderr: os.Stderr}).main(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// tool is the environment of a command; tests bring their own.
type tool struct {
	stdout, stderr io.Writer
}

// command is a subcommand. Its run takes the arguments after its name and returns the exit
// code.
type command struct {
	name     string
	synopsis string // its arguments
	summary  string
	run      func(t *tool, ctx context.Context, args []string) int
}

func commands() []command {
	return []command{
		{"cluster", clusterSynopsis, "whole clusters with faults, in virtual time", (*tool).cluster},
		{"forecast", forecastSynopsis, "predicted ends of jobs against the true ones, in virtual time", (*tool).forecast},
		{"whatif", whatIfSynopsis, "predictions for schedulers against runs under them, in virtual time", (*tool).whatIf},
		{"flex", paperSynopsis, "FLEX: slots for independent jobs, against the optimum",
			paper{"flex", flex.Simulate, flex.WritePage}.run},
		{"flowflex", paperSynopsis, "FlowFlex: slots for flows of jobs, against lower bounds",
			paper{"flowflex", flowflex.Simulate, flowflex.WritePage}.run},
		{"overlap", paperSynopsis, "MaxSRPT and SplitSRPT: maps and shuffles together, against fair sharing",
			paper{"overlap", overlap.Simulate, overlap.WritePage}.run},
		{"hmhs", paperSynopsis, "HMHS: batches on unlike machines, against FIFO and its own sequence reversed",
			paper{"hmhs", hmhs.Simulate, hmhs.WritePage}.run},
		{"delay", paperSynopsis, "Dynamic Delay Scheduling: when a task waits for local data, against fixed waits",
			paper{"delay", delay.Simulate, delay.WritePage}.run},
	}
}

func (t *tool) main(ctx context.Context, args []string) int {
	if len(args) == 0 {
		t.usage(t.stderr)
		return exitUsage
	}
	switch name := args[0]; name {
	case "-h", "-help", "--help", "help":
		if len(args) > 1 {
			return t.main(ctx, []string{args[1], "-h"})
		}
		t.usage(t.stdout)
		return exitDone
	case "-version", "--version", "version":
		fmt.Fprintf(t.stdout, "mrsim %s, %s %s/%s\n", build.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return exitDone
	default:
		for _, c := range commands() {
			if c.name == name {
				return c.run(t, ctx, args[1:])
			}
		}
		fmt.Fprintf(t.stderr, "mrsim: unknown command %q; see mrsim help\n", name)
		return exitUsage
	}
}

// parse parses the flags of a subcommand, and checks them. Without ok, the subcommand ends with the exit code.
func (t *tool) parse(set *flag.FlagSet, help string, args []string, check func() error) (code int, ok bool) {
	set.SetOutput(io.Discard)
	err := set.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		all := commands()
		c := all[slices.IndexFunc(all, func(c command) bool { return c.name == set.Name() })]
		fmt.Fprintf(t.stdout, "usage: mrsim %s %s\n\n%s\n\n", c.name, c.synopsis, help)
		set.SetOutput(t.stdout)
		set.PrintDefaults()
		return exitDone, false
	case err == nil && set.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", set.Arg(0))
	case err == nil:
		err = check()
	}
	if err != nil {
		fmt.Fprintf(t.stderr, "mrsim %s: %v; see mrsim help %s\n", set.Name(), err, set.Name())
		return exitUsage, false
	}
	return exitDone, true
}

func (t *tool) usage(w io.Writer) {
	fmt.Fprint(w, "mrsim simulates Quern's clusters and the papers behind its schedulers.\n\nCommands:\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "  mrsim %s %s\n        %s\n", c.name, c.synopsis, c.summary)
	}
	fmt.Fprint(w, "  mrsim help [COMMAND]\n  mrsim -version\n")
}
