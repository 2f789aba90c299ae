// Command mrsubmit is Quern's command line: it runs jobs, and shows and changes jobs and the
// cluster. This file has the table of subcommands.
//
// Results go to standard output; progress and messages to standard error. Exit codes:
//
//	0    done
//	1    the job or command failed
//	2    bad usage
//	129  the terminal was closed; the jobs go on without mrsubmit
//	141  the reader of standard output was closed
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

	exitBrokenPipe = 128 + int(syscall.SIGPIPE) // shells use it for a process that SIGPIPE has ended
)

func main() {
	ctx, signals, stop := client.Interrupts(context.Background())
	t := &tool{
		stdout:   results(os.Stdout, client.Terminal(os.Stdout) != nil),
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

// tool has the inputs and outputs of a command, which tests replace.
type tool struct {
	stdout, stderr io.Writer
	getenv         func(name string) string
	width          func() int // columns of the terminal; nil: stderr is not a terminal
	signals        client.Signals
	embedded       startCluster
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

// command is a subcommand. Its run takes the arguments after the name and returns the exit code.
type command struct {
	name     string
	synopsis string // its arguments
	summary  string
	help     string // for the command's own help; empty: the summary
	run      func(t *tool, ctx context.Context, args []string) int
}

func commands() []command {
	return []command{
		{"run", runSynopsis, "run a job and wait until it ends", runHelp, (*tool).run},
		{"list", "[-state STATES] [-owner USER] [-pool POOL] [-name NAME] [-since TIME] [-json]", "list the jobs that the cluster knows, newest first", "",
			queryCommand("list", 0, 0, (*query).list, func(q *query) { q.filter.define(q) })},
		{"status", "[-json] JOB|FLOW", "print the state and progress of a job, or of each job of a flow", "", queryCommand("status", 1, 1, (*query).status)},
		{"wait", "[-json] JOB|FLOW…", "wait until jobs end; exit code 0 if all succeed", "", queryCommand("wait", 1, 1000, (*query).wait)},
		{"kill", "[-reason TEXT] [-json] JOB|FLOW…", "kill jobs, and all jobs of their flows", "", queryCommand("kill", 1, 1000, (*query).kill, func(q *query) {
			q.flags.StringVar(&q.reason, "reason", "", "`text` that the job's status will show")
		})},
		{"suspend", "[-now] [-json] JOB|FLOW…", "give jobs no more slots; running attempts go on", suspendHelp, queryCommand("suspend", 1, 1000, suspendCommand(true), func(q *query) {
			q.flags.BoolVar(&q.now, "now", false, "kill the running attempts that do not end soon; their tasks rerun when the job is resumed")
		})},
		{"resume", "[-json] JOB|FLOW…", "end a suspension", "", queryCommand("resume", 1, 1000, suspendCommand(false))},
		{"set", "[-json] JOB|FLOW NAME=VALUE…", "change settings of a running job", setHelp, queryCommand("set", 2, 100, (*query).set)},
		{"counters", "[-json] JOB|FLOW", "print the counters of a job, or of each job of a flow", "", queryCommand("counters", 1, 1, (*query).counters)},
		{"explain", "[-json] [JOB|FLOW]", "show why jobs have the slots they have, and their predicted ends", explainHelp, queryCommand("explain", 0, 1, (*query).explain)},
		{"whatif", "[-jobs] [-json]", "predict what each scheduler would make of the jobs that have not ended", whatIfHelp, queryCommand("whatif", 0, 0, (*query).whatIf, func(q *query) {
			q.flags.BoolVar(&q.eachJob, "jobs", false, "print when each job would end, too")
		})},
		{"logs", "[-tail BYTES] [-json] JOB|FLOW [TASK]", "print what attempts wrote to standard output and standard error", logsHelp,
			queryCommand("logs", 1, 2, (*query).logs, func(q *query) {
				q.flags.Int64Var(&q.tail, "tail", defaultTail, "print the last `bytes` of each log; 0: all")
			})},
		{"history", "[-n LINES] [-state STATES] [-owner USER] [-pool POOL] [-name NAME] [-since TIME] [-staging URL] [-json] [JOB|FLOW]", "list ended jobs, newest first, or print all about a job or about each job of a flow", "",
			queryCommand("history", 0, 1, (*query).history, func(q *query) {
				q.flags.IntVar(&q.limit, "n", 20, "list this many `jobs`; 0: all")
				q.filter.define(q)
				q.flags.StringVar(&q.staging, "staging", "", "read histories in this staging `directory`, without a job tracker")
			})},
		{"ui", "[-port PORT] [-no-browser]", "show the cluster's pages in a browser", uiHelp, queryCommand("ui", 0, 0, (*query).showUI, func(q *query) {
			q.flags.IntVar(&q.port, "port", 0, "serve at this loopback `port`; 0: any free one")
			q.flags.BoolVar(&q.noBrowser, "no-browser", false, "only print the address")
		})},
		{"trace", "[-o FILE] [-json] JOB|FLOW", "print when and where the attempts of a job ran, as a trace for Perfetto", traceHelp,
			queryCommand("trace", 1, 1, (*query).trace, func(q *query) {
				q.flags.StringVar(&q.output, "o", "", "write to this `file` (default standard output)")
			})},
		{"cluster", "[-json] | SUBCOMMAND …", "show the cluster, or change it with a subcommand", clusterHelp(), (*tool).clusterCommand},
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
		"-jobtracker HOST:PORT,… or QUERN_JOBTRACKER names the job trackers of the cluster.\n"+
		"Without them, run uses an embedded cluster on this machine.\n")
}
