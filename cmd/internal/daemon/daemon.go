// Package daemon has the common parts of cmd/jobtracker and cmd/tasktracker: flags, the
// ready line, signals and exit codes.
//
// When a daemon serves, it prints a line to standard output: "ready" and its addresses. It
// logs to standard error. Exit codes:
//
// 0  after SIGTERM or SIGINT; a second signal ends it at once
//
//	1  it failed
//	2  bad usage
//
// SIGHUP has no effect: a daemon continues without its terminal, and it reads changed files by
// itself.
//
// The same program checks the health of a running daemon:
//
//	<daemon> healthz [-tls-dir DIR] [-insecure] HOST:PORT
//
// sends GET /healthz, which a working daemon answers with a [Health].
package daemon

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/quernmr/quern/cmd/internal/build"
	"github.com/quernmr/quern/cmd/internal/userstate"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/builtin"
	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/wire"
)

// Exit codes.
const (
	ExitDone   = 0
	ExitFailed = 1
	ExitUsage  = 2
)

// ErrUsage reports a wrong command line.
var ErrUsage = errors.New("bad usage")

// usageError is an ErrUsage with another text.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

func (e usageError) Is(target error) bool { return target == ErrUsage }

// Usagef returns an ErrUsage with a text.
func Usagef(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

// Output has the outputs of a daemon.
type Output struct {
	Stdout, Stderr io.Writer
}

// Run parses a daemon's arguments and serves until ctx ends.
type Run func(ctx context.Context, args []string, out Output) error

// Main runs a daemon and returns the exit code.
func Main(name string, run Run) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	context.AfterFunc(ctx, stop) // so that a second signal ends the process
	// Catch SIGHUP instead of ignoring it: workers would inherit an ignored signal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	out := Output{Stdout: os.Stdout, Stderr: os.Stderr}
	args := os.Args[1:]
	if len(args) == 1 && (args[0] == "-version" || args[0] == "--version") {
		fmt.Fprintf(out.Stdout, "%s %s, %s %s/%s, tracker protocol %d\n",
			name, build.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH, wire.Version)
		return ExitDone
	}
	if len(args) > 0 && args[0] == healthCommand {
		args = args[1:]
		run = func(ctx context.Context, args []string, out Output) error { return checkHealth(ctx, name, args, out) }
	}
	hideMemory()
	switch err := run(ctx, args, out); {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return ExitDone
	case errors.Is(err, ErrUsage):
		fmt.Fprintf(out.Stderr, "%s: %v; see %s -h\n", name, err, name)
		return ExitUsage
	default:
		fmt.Fprintf(out.Stderr, "%s: %v\n", name, err)
		return ExitFailed
	}
}

// Parse parses the flags of a daemon, as ParseCommand does.
func Parse(set *flag.FlagSet, args []string, out Output, about string) error {
	name := set.Name()
	usage := fmt.Sprintf("%s [flags]\n       %s %s\n       %s -version", name, name, healthSynopsis, name)
	return ParseCommand(set, args, out, usage, about)
}

// ParseCommand parses flags, and refuses other arguments. For -h it prints usage, about and the flags, and
// returns flag.ErrHelp.
func ParseCommand(set *flag.FlagSet, args []string, out Output, usage, about string) error {
	set.SetOutput(io.Discard)
	switch err := set.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(out.Stdout, "usage: %s\n\n%s\n", usage, about)
		set.SetOutput(out.Stdout)
		set.PrintDefaults()
		return err
	case err != nil:
		return Usagef("%v", err)
	case set.NArg() > 0:
		return Usagef("unexpected argument %q", set.Arg(0))
	}
	return nil
}

// SplitList splits a comma-separated list and drops empty items.
func SplitList(text string) []string {
	var list []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			list = append(list, item)
		}
	}
	return list
}

// ID checks a daemon's name. The default is the name of the machine.
func ID(id string) (string, error) {
	if id == "" {
		host, err := os.Hostname()
		if err != nil {
			return "", fmt.Errorf("find a default for -id: %w", err)
		}
		id = host
	}
	for _, r := range id {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.') {
			return "", Usagef("-id %s: use letters, digits, dots, dashes and underscores only", id)
		}
	}
	if len(id) > 64 {
		return "", Usagef("-id %s: use at most 64 characters", id)
	}
	return id, nil
}

// CheckStaging checks and cleans the URL of a staging directory, which may be empty.
func CheckStaging(url string) (string, error) {
	if url == "" {
		return "", nil
	}
	if scheme, _, err := dfs.Scheme(url); err == nil && scheme == "" {
		return "", Usagef("-staging %s: want a URL, such as file:///shared/quern", url)
	}
	clean, err := builtin.FileSystems().Clean(url)
	if err != nil {
		return "", Usagef("-staging: %v", err)
	}
	return clean, nil
}

// WarnIfReadable logs a warning if other users can read a daemon's directory, which has data and
// tokens of jobs.
func WarnIfReadable(log *slog.Logger, dir string) {
	info, err := os.Stat(dir)
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		log.Warn("the data directory is open to other users of this machine: chmod 700 it", "directory", dir, "mode", info.Mode().Perm())
	}
}

// DefaultData returns the -data of a daemon that has no such flag. It is below the user's home, since
// another user could make a directory below /tmp or /var/tmp first.
func DefaultData(role identity.Role, id string) (string, error) {
	dir, err := userstate.DataDir(os.Getenv, role, id)
	if err != nil {
		return "", Usagef("-data is missing, and has no default: %v", err)
	}
	return dir, nil
}

// LogDir returns the directory of a job tracker's log, below its -data.
func LogDir(data string) string { return filepath.Join(data, "raft") }
