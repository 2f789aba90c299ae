// Command mrsubmit is Quern's command line: it runs jobs and asks about them.
// There is one file for each subcommand; this one picks among them.
//
// Results go to standard output; progress and messages to standard error. Exit codes:
//
//	0    done
//	1    the job or command failed
//	2    bad usage
//	129  the terminal has gone; the jobs go on without mrsubmit
//	141  standard output is not read any more
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"syscall"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/cmd/internal/build"
	"github.com/quernmr/quern/wire"
)

const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2

	exitBrokenPipe = 128 + int(syscall.SIGPIPE) // what a shell has for a process that it ended
)

func main() {
	ctx, signals, stop := client.Interrupts(context.Background())
	t := &tool{
		stdout:   results{os.Stdout},
		stderr:   os.Stderr,
		getenv:   os.Getenv,
		width:    client.Terminal(os.Stderr),
		signals:  signals,
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
	width          func() int // columns of the terminal that stderr is; nil: it is none
	signals        client.Signals
	embedded       startCluster
}

// errUnread reports that standard output is not read any more, as in "mrsubmit logs JOB | head".
var errUnread = errors.New("standard output is closed")

// unread says whether that is all that is wrong.
func unread(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok && len(joined.Unwrap()) > 1 {
		return false
	}
	return errors.Is(err, errUnread)
}

// results are written to standard output.
type results struct{ to io.Writer }

func (r results) Write(p []byte) (int, error) {
	n, err := r.to.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		err = errUnread
	}
	return n, err
}

// command is a subcommand. Its run takes what follows its name and returns the
// exit code.
type command struct {
	name     string
	synopsis string // its arguments
	summary  string
	help     string // more than the summary, for its own help
	run      func(t *tool, ctx context.Context, args []string) int
}

func commands() []command {
	return []command{
		{"run", runSynopsis, "run a job and wait for its end", runHelp, (*tool).run},
		{"list", "[-json]", "list the jobs that the cluster knows", "", asking("list", 0, 0, (*query).list)},
		{"status", "[-json] JOB|FLOW", "tell how a job, or each of a flow, is getting on", "", asking("status", 1, 1, (*query).status)},
		{"wait", "[-json] JOB|FLOW…", "wait for the end of jobs; exit code 0 if all succeed", "", asking("wait", 1, 1000, (*query).wait)},
		{"kill", "[-reason TEXT] [-json] JOB|FLOW…", "kill jobs, each with all of its flow", "", asking("kill", 1, 1000, (*query).kill, func(q *query) {
			q.flags.StringVar(&q.reason, "reason", "", "what the job's status will say")
		})},
		{"suspend", "[-json] JOB|FLOW…", "have jobs get no more slots; what runs goes on", suspendHelp, asking("suspend", 1, 1000, hold(true))},
		{"resume", "[-json] JOB|FLOW…", "have suspended jobs go on", "", asking("resume", 1, 1000, hold(false))},
		{"set", "[-json] JOB|FLOW TERM=VALUE…", "change what is asked for a job while it runs", setHelp, asking("set", 2, 100, (*query).set)},
		{"counters", "[-json] JOB|FLOW", "print a job's counters, or those of each job of a flow", "", asking("counters", 1, 1, (*query).counters)},
		{"explain", "[-json] [JOB|FLOW]", "tell why a job has the slots it has, and when it should end", explainHelp, asking("explain", 0, 1, (*query).explain)},
		{"logs", "[-tail BYTES] [-json] JOB|FLOW [TASK]", "print what attempts wrote to standard output and error",
			"The attempts are those of TASK, which may be one attempt's id; without it those that failed or, if none did, all.",
			asking("logs", 1, 2, (*query).logs, func(q *query) {
				q.flags.Int64Var(&q.tail, "tail", defaultTail, "print the last `bytes` of each; 0: all")
			})},
		{"history", "[-n LINES] [-staging URL] [-json] [JOB|FLOW]", "list jobs that have ended, newest first, or print all about one, or each of a flow", "",
			asking("history", 0, 1, (*query).history, func(q *query) {
				q.flags.IntVar(&q.most, "n", 20, "list so many `jobs`; 0: all")
				q.flags.StringVar(&q.staging, "staging", "", "the cluster's staging `directory`, to read it without a job tracker")
			})},
		{"cluster", "[-json] | scheduler [-metric METRIC] [-delay RULE] [NAME] | drain TRACKER [-wait] | undrain TRACKER | certs DIR … | remove ID | recover -data DIR -id ID -raft HOST:PORT", "tell how the cluster is, change how it shares its slots, or mend it", clusterHelp, (*tool).clusterCommand},
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
			build.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH, wire.WorkerProtocol)
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
	if len(args) == 0 || slices.Contains([]string{"-h", "-help", "--help", "help"}, args[0]) {
		t.usage(t.stdout)
		return exitDone
	}
	return t.main(ctx, []string{args[0], "-h"})
}

func (t *tool) usage(w io.Writer) {
	fmt.Fprint(w, "mrsubmit runs MapReduce jobs written in Go.\n\nCommands:\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "  mrsubmit %s %s\n        %s\n", c.name, c.synopsis, c.summary)
	}
	fmt.Fprint(w, "  mrsubmit help [COMMAND]\n  mrsubmit -version\n\n"+
		"All but run ask a running cluster: -jobtracker HOST:PORT,… or QUERN_JOBTRACKER names its job trackers.\n")
}
