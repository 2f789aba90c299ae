package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/builtin"
	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/wire"
)

// queryPatience is how long a query looks for a leader.
const queryPatience = 10 * time.Second

// addressesUsage is the help of -jobtracker.
const addressesUsage = "`addresses` of the job trackers: host:port, separated by commas (default $QUERN_JOBTRACKER)"

// usageError reports a wrong command line.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

// usagef returns a usageError.
func usagef(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

// query is a command that needs a running cluster.
type query struct {
	*tool
	flags     *flag.FlagSet
	addresses string
	json      bool
	args      []string // arguments that are not flags
	cluster   *web.Client
	staging   string // URL of the directory with histories; empty: ask the cluster
	security  security
	identity  *identity.Identity // nil: the cluster is not protected

	partial bool // reportSkipped has reported an error

	// Values of flags.
	reason        string        // of a kill or exclusion
	eachJob       bool          // predictions of each job
	now           bool          // a suspension takes slots back
	excludeFor    time.Duration // 0: until it is readmitted
	untilDrained  bool
	newScheduling wire.Scheduling
	limit         int    // jobs to list; 0: all
	tail          int64  // bytes of each log; 0: all
	output        string // file of a trace; empty: standard output
	port          int    // of the pages; 0: any
	noBrowser     bool
	filter        jobFilter
}

// queryCommand makes the run function of a command that needs a cluster. The command takes flags,
// and between minArgs and maxArgs other arguments, in any order.
func queryCommand(name string, minArgs, maxArgs int, do func(q *query, ctx context.Context) error, define ...func(q *query)) func(t *tool, ctx context.Context, args []string) int {
	return func(t *tool, ctx context.Context, args []string) int {
		q := &query{tool: t, flags: newFlags(name)}
		q.flags.StringVar(&q.addresses, "jobtracker", t.getenv("QUERN_JOBTRACKER"), addressesUsage)
		t.securityFlags(q.flags, &q.security)
		q.flags.BoolVar(&q.json, "json", false, "print JSON")
		for _, d := range define {
			d(q)
		}
		err := q.parse(args, minArgs, maxArgs)
		if err == nil {
			err = q.connect()
		}
		if err == nil {
			defer q.cluster.Close()
			err = do(q, ctx)
		}
		if err == nil && q.partial {
			err = errReported
		}
		return t.exitCode(name, q.flags, err)
	}
}

// reportSkipped prints an error of one job of a flow. The command prints the others, and then
// fails.
func (q *query) reportSkipped(why error) {
	q.partial = true
	fmt.Fprintf(q.stderr, "mrsubmit %s: %v\n", q.flags.Name(), errorText(why))
}

func newFlags(name string) *flag.FlagSet {
	set := flag.NewFlagSet(name, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	return set
}

func (q *query) parse(args []string, minArgs, maxArgs int) (err error) {
	if q.args, err = parseMixed(q.flags, args); err != nil {
		return err
	}
	if n := len(q.args); n < minArgs {
		return usagef("too few arguments")
	} else if n > maxArgs {
		return usagef("unexpected argument %q", q.args[maxArgs])
	}
	return nil
}

// parseMixed parses flags, which may be between other arguments, and returns the other arguments.
func parseMixed(set *flag.FlagSet, args []string) (rest []string, err error) {
	for {
		if err := set.Parse(args); errors.Is(err, flag.ErrHelp) {
			return nil, err
		} else if err != nil {
			return nil, usagef("%v", err)
		}
		if set.NArg() == 0 {
			return rest, nil
		}
		rest, args = append(rest, set.Arg(0)), set.Args()[1:]
	}
}

// connect makes the client. With -staging, no job tracker is needed.
func (q *query) connect() error {
	addrs, err := addresses(q.addresses)
	if err != nil {
		return err
	}
	if len(addrs) == 0 && q.staging == "" {
		return usagef("name the job trackers with -jobtracker or QUERN_JOBTRACKER")
	}
	if len(addrs) == 0 && q.security.tlsDir == "" {
		q.security.insecure = true // it connects to no daemon
	}
	if q.identity, err = q.identityOf(q.security); err != nil {
		return err
	}
	q.cluster = web.NewClient(addrs)
	q.cluster.Secure(q.identity.Dialer(identity.JobTracker))
	q.cluster.Patience = queryPatience
	q.cluster.Note = func(line string) { fmt.Fprintln(q.stderr, client.Visible(line)) }
	return nil
}

// addresses splits a comma-separated list of host:port.
func addresses(list string) ([]string, error) {
	var addrs []string
	for a := range strings.SplitSeq(list, ",") {
		a = strings.TrimSpace(a)
		if a == "" {
			continue
		}
		if host, port, err := net.SplitHostPort(a); err != nil || host == "" || port == "" {
			return nil, usagef("address %q of a job tracker: want host:port", a)
		}
		addrs = append(addrs, a)
	}
	return addrs, nil
}

// exitCode prints a command's error or help, and returns its exit code.
func (t *tool) exitCode(name string, set *flag.FlagSet, err error) int {
	var usage usageError
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, flag.ErrHelp):
		t.commandHelp(name, set)
		return exitDone
	case errors.Is(err, errReported):
		return exitFailed
	case isOutputClosed(err):
		return exitBrokenPipe
	case errors.Is(err, errHungUp):
		return client.ExitHungUp
	case errors.As(err, &usage):
		fmt.Fprintf(t.stderr, "mrsubmit %s: %v; see mrsubmit %s -h\n", name, err, name)
		return exitUsage
	}
	fmt.Fprintf(t.stderr, "mrsubmit %s: %v\n", name, errorText(err))
	return exitFailed
}

func (t *tool) commandHelp(name string, set *flag.FlagSet) {
	for _, c := range append(commands(), clusterCommands()...) {
		if c.name == name {
			fmt.Fprintf(t.stdout, "usage: mrsubmit %s %s\n\n%s\n\n", name, c.synopsis, cmp.Or(c.help, c.summary))
		}
	}
	set.SetOutput(t.stdout)
	set.PrintDefaults()
}

// files returns the file systems for histories and for staging.
var files = sync.OnceValue(func() dfs.FS { return builtin.FileSystems() })

// fromHistory reads the history of a job that the cluster has forgotten. unknown is the error from
// the cluster: fromHistory returns it if it is not ErrUnknownJob, or if there is no history.
func (q *query) fromHistory(ctx context.Context, id wire.JobID, unknown error) (*web.History, error) {
	if !errors.Is(unknown, admission.ErrUnknownJob) {
		return nil, unknown
	}
	h, err := q.past().History(ctx, id)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, unknown
	case errors.Is(err, admission.ErrNotAllowed):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w; %w", unknown, err)
	}
	return h, nil
}

// job returns a job's status, from the cluster or from its history.
func (q *query) job(ctx context.Context, id wire.JobID) (wire.JobStatus, error) {
	j, err := q.cluster.Job(ctx, id)
	if err == nil {
		return j.Status()
	}
	h, err := q.fromHistory(ctx, id, err)
	if err != nil {
		return wire.JobStatus{}, err
	}
	return h.Status()
}

// user returns the name of the user of this command.
func (q *query) user() string { return userName(q.identity, q.getenv) }

// printJSON prints a value as indented JSON.
func (t *tool) printJSON(v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	_, err = fmt.Fprintf(t.stdout, "%s\n", text)
	return err
}

// printTable prints rows in columns, without control characters.
func (t *tool) printTable(rows [][]string) error {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = client.OneLine(cell)
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	w.Flush() // writes to a buffer never fail
	_, err := t.stdout.Write(b.Bytes())
	return err
}
