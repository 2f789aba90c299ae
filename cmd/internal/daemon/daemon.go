// Package daemon is what cmd/jobtracker and cmd/tasktracker have in common: how
// they are asked to start, refuse to, say that they are ready, and are asked to
// stop. It knows nothing of what they do.
//
// A daemon prints one line beginning with "ready" and its addresses on standard
// output when it serves, and logs to standard error. It ends with 0 after SIGTERM
// or SIGINT, with 1 when it cannot go on and 2 when it was started wrongly; a
// second signal ends it at once. SIGHUP does nothing: a terminal that goes takes no
// daemon with it, and files that change are read again without being told.
//
// Its program also looks after one that runs, for health checks where there is no
// other program:
//
//	<daemon> healthz [-tls-dir DIR] HOST:PORT
//
// asks GET /healthz, which every daemon answers whose loop works, with a [Health].
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
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/builtin"
	"github.com/quernmr/quern/wire"
)

// Exit codes.
const (
	Done   = 0
	Failed = 1
	Usage  = 2
)

// ErrUsage is a daemon that was started wrongly.
var ErrUsage = errors.New("bad usage")

// usageError is an ErrUsage that does not say so twice.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

func (e usageError) Is(target error) bool { return target == ErrUsage }

// Wrong makes an ErrUsage.
func Wrong(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

// Output is where a daemon says things.
type Output struct {
	Stdout, Stderr io.Writer
}

// Run is one daemon: it parses its arguments and serves until ctx ends.
type Run func(ctx context.Context, args []string, out Output) error

// Main runs a daemon and returns the exit code.
func Main(name string, run Run) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	context.AfterFunc(ctx, stop) // the second signal is not caught
	// Caught, not ignored: workers would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	out := Output{Stdout: os.Stdout, Stderr: os.Stderr}
	args := os.Args[1:]
	if len(args) == 1 && (args[0] == "-version" || args[0] == "--version") {
		fmt.Fprintf(out.Stdout, "%s %s, %s %s/%s, tracker protocol %d\n",
			name, build.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH, wire.Version)
		return Done
	}
	if len(args) > 0 && args[0] == healthCommand {
		args = args[1:]
		run = func(ctx context.Context, args []string, out Output) error { return askHealth(ctx, name, args, out) }
	}
	switch err := run(ctx, args, out); {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return Done
	case errors.Is(err, ErrUsage):
		fmt.Fprintf(out.Stderr, "%s: %v; see %s -h\n", name, err, name)
		return Usage
	default:
		fmt.Fprintf(out.Stderr, "%s: %v\n", name, err)
		return Failed
	}
}

// Parse parses flags and refuses arguments. Asked for help, it prints about, then
// the flags, and returns flag.ErrHelp.
func Parse(set *flag.FlagSet, args []string, out Output, about string) error {
	set.SetOutput(io.Discard)
	switch err := set.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(out.Stdout, "usage: %s [flags]\n       %s %s\n       %s -version\n\n%s\n", set.Name(), set.Name(), healthSynopsis, set.Name(), about)
		set.SetOutput(out.Stdout)
		set.PrintDefaults()
		return err
	case err != nil:
		return Wrong("%v", err)
	case set.NArg() > 0:
		return Wrong("unexpected argument %q", set.Arg(0))
	}
	return nil
}

// List splits a comma list.
func List(text string) []string {
	var list []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			list = append(list, item)
		}
	}
	return list
}

// ID checks a daemon's name; none is the machine's.
func ID(id string) (string, error) {
	if id == "" {
		host, err := os.Hostname()
		if err != nil {
			return "", fmt.Errorf("find out a name, as there is no -id: %w", err)
		}
		id = host
	}
	for _, r := range id {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.') {
			return "", Wrong("-id %s: letters, digits, dots, dashes and underscores only", id)
		}
	}
	if len(id) > 64 {
		return "", Wrong("-id %s: at most 64 letters", id)
	}
	return id, nil
}

// Logger makes a daemon's logger.
func Logger(w io.Writer, verbose bool) *slog.Logger {
	level := slog.LevelInfo
	if verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}

// CheckStaging cleans the URL of a staging directory; none is allowed.
func CheckStaging(url string) (string, error) {
	if url == "" {
		return "", nil
	}
	if scheme, _, err := dfs.Scheme(url); err == nil && scheme == "" {
		return "", Wrong("-staging %s: want a URL, like file:///shared/quern", url)
	}
	clean, err := builtin.FileSystems().Clean(url)
	if err != nil {
		return "", Wrong("-staging: %v", err)
	}
	return clean, nil
}

// WarnOpen says so when others than its user can look into a daemon's directory,
// which has what jobs read and write, and what is to be kept from other users.
func WarnOpen(log *slog.Logger, dir string) {
	info, err := os.Stat(dir)
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		log.Warn("the data directory is open to other users of this machine: chmod 700 it", "directory", dir, "mode", info.Mode().Perm())
	}
}

// LogDir is where a job tracker keeps its log, below its -data.
func LogDir(data string) string { return filepath.Join(data, "raft") }
