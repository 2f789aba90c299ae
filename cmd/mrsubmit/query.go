package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"sync"
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

// query is a command that needs a running cluster.
type query struct {
	*tool
	flags     *flag.FlagSet
	addresses string
	json      bool
	offline   bool     // no job tracker is needed
	args      []string // arguments that are not flags
	cluster   *web.Client
	staging   string // URL of the directory with histories; empty: ask the cluster
	security  security
	identity  *identity.Identity // nil: the cluster is not protected

	partial bool // reportSkipped has reported an error

	// Values of flags.
	reason        string        // of a kill or exclusion
	quiet         bool          // wait prints only failures
	eachJob       bool          // predictions of each job
	now           bool          // a suspension takes slots back
	excludeFor    time.Duration // 0: until it is readmitted
	untilDrained  bool
	newScheduling wire.Scheduling
	limit         int    // jobs to list; 0: all
	tail          int64  // bytes of each log; 0: all
	lines         int    // of each log; negative: all
	follow        bool   // logs goes on until the job ends
	output        string // file of a trace; empty: standard output
	port          int    // of the pages; 0: any
	noBrowser     bool
	filter        jobFilter
}

// runQuery runs a command that needs a cluster. Its flags may be between its other arguments.
func (c *command) runQuery(t *tool, ctx context.Context, args []string) int {
	q := &query{tool: t, flags: newFlags(c.name)}
	q.flags.StringVar(&q.addresses, "jobtracker", t.getenv("QUERN_JOBTRACKER"), addressesUsage)
	t.securityFlags(q.flags, &q.security)
	q.flags.BoolVar(&q.json, "json", false, "print JSON")
	if c.flags != nil {
		c.flags(q)
	}
	err := q.parseArgs(args, c.min, c.max)
	q.offline = c.offline != nil && c.offline(q.args)
	if err == nil {
		err = q.connect()
	}
	if err == nil {
		defer q.cluster.Close()
		err = c.query(q, ctx)
	}
	if err == nil && q.partial {
		err = errReported
	}
	return t.exitCode(c.name, q.flags, err)
}

// reportSkipped prints an error of one job of a flow. The command prints the others, and then
// fails.
func (q *query) reportSkipped(why error) {
	q.partial = true
	fmt.Fprintf(q.stderr, "mrsubmit %s: %v\n", q.flags.Name(), errorText(why))
}

// connect makes the client. With -staging and for paths, no job tracker is needed.
func (q *query) connect() error {
	addrs, err := addresses(q.addresses)
	if err != nil {
		return err
	}
	if len(addrs) == 0 && q.staging == "" && !q.offline {
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
