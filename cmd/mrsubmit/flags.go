package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/internal/spelling"
)

// usageError reports a wrong command line.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

// usagef returns a usageError.
func usagef(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

func newFlags(name string) *flag.FlagSet {
	set := flag.NewFlagSet(name, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	return set
}

// parse parses flags, which may be between other arguments, and returns the other arguments. It
// stops after most of them: what follows is not ours.
func (t *tool) parse(set *flag.FlagSet, args []string, most int) (rest []string, err error) {
	if t.inspect != nil {
		t.inspect(set)
		return nil, errReported
	}
	for len(rest) < most {
		if err := set.Parse(args); err != nil {
			return nil, flagError(set, err)
		}
		if set.NArg() == 0 {
			return rest, nil
		}
		rest, args = append(rest, set.Arg(0)), set.Args()[1:]
	}
	return append(rest, args...), nil
}

// flagError names the flag that an unknown one may stand for.
func flagError(set *flag.FlagSet, err error) error {
	name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	switch {
	case errors.Is(err, flag.ErrHelp):
		return err
	case !unknown:
		return usagef("%v", err)
	}
	var known []string
	set.VisitAll(func(f *flag.Flag) { known = append(known, f.Name) })
	if len(name) > 1 && name[0] == 'D' && slices.Contains(known, "D") {
		return usagef("unknown flag -%s: write -D %s=VALUE, with a blank", name, name[1:])
	}
	return usagef("unknown flag -%s%s", name, spelling.DidYouMean("-", name, known))
}

// parseArgs parses the command line of a query.
func (q *query) parseArgs(args []string, least, most int) (err error) {
	if q.args, err = q.parse(q.flags, args, anyNumber); err != nil {
		return err
	}
	if n := len(q.args); n < least {
		return usagef("too few arguments: want %s", find(append(commands(), clusterCommands()...), q.flags.Name()).synopsis)
	} else if n > most {
		return usagef("unexpected argument %q", q.args[most])
	}
	return nil
}

// exitCode is the exit code of a command, job or program that has printed why.
type exitCode int

const (
	errReported = exitCode(exitFailed)
	errHungUp   = exitCode(client.ExitHungUp)
)

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// exitError returns the error for an exit code. Its cause has been printed.
func exitError(code int) error {
	if code == exitDone {
		return nil
	}
	return exitCode(code)
}

// exitCode prints a command's error or help, and returns its exit code.
func (t *tool) exitCode(name string, set *flag.FlagSet, err error) int {
	var usage usageError
	var printed exitCode
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, flag.ErrHelp):
		t.commandHelp(name, set)
		return exitDone
	case errors.As(err, &printed):
		return int(printed)
	case isOutputClosed(err):
		return exitBrokenPipe
	case errors.As(err, &usage):
		fmt.Fprintf(t.stderr, "mrsubmit %s: %v; see mrsubmit %s -h\n", name, errorText(err), name)
		return exitUsage
	}
	fmt.Fprintf(t.stderr, "mrsubmit %s: %v\n", name, errorText(err))
	return exitFailed
}
