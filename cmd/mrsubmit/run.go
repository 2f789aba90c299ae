package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/jobfile"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/wire"
)

const runSynopsis = "[-jobtracker HOST:PORT,…] [-shared-local] [-D NAME=VALUE]… [terms] JOB [job flags]"

const runHelp = `JOB is an executable that calls mapreduce.Main, or the directory of its Go
package, which is built first. What follows JOB is the job's own: see them with
"mrsubmit run JOB -h". Without a job tracker the job runs embedded: on this
machine, with a cluster that lives as long as the job. For example:

  mrsubmit run ./examples/wordcount -input README.md -output /tmp/wc

Files are local or, as hdfs://NAMENODE:PORT/…, hdfs://NAMESERVICE/… and hdfs:///…,
in HDFS: HADOOP_CONF_DIR names its configuration, HADOOP_USER_NAME the user.`

// runFlags are what stands before JOB, and JOB with what follows it.
type runFlags struct {
	jobtrackers []string
	tlsDir      string
	who         *identity.Identity // that it holds; nil: nobody has to know, or there is no job tracker
	shared      bool               // local files are the same on all machines
	properties  []string           // NAME=VALUE, in order
	terms       *[][2]string
	began       time.Time     // from which durations count
	ahead       time.Duration // of our clock the cluster's is
	job         string
	args        []string
}

func (t *tool) run(ctx context.Context, args []string) int {
	set := newFlags("run")
	f, err := t.parseRun(set, args)
	if err == nil {
		err = t.runJob(ctx, f)
	}
	switch {
	case errors.Is(err, client.ErrHelp):
		return exitDone
	case errors.Is(err, client.ErrUsage):
		fmt.Fprintf(t.stderr, "mrsubmit run: %v\n", err)
		return exitUsage
	}
	return t.exitCode("run", set, err)
}

func (t *tool) parseRun(set *flag.FlagSet, args []string) (*runFlags, error) {
	f := &runFlags{began: time.Now()}
	list := set.String("jobtracker", t.getenv("QUERN_JOBTRACKER"), addressesUsage)
	set.StringVar(&f.tlsDir, "tls-dir", t.getenv("QUERN_TLS_DIR"), tlsUsage)
	set.BoolVar(&f.shared, "shared-local", false, "local files are the same on all of the cluster's machines")
	set.Func("D", "set a job property, `NAME=VALUE`; in a flow JOB:NAME=VALUE sets that of one job, and wins; may be repeated", func(p string) error {
		if name, _, ok := strings.Cut(p, "="); !ok || name == "" {
			return errors.New("want NAME=VALUE")
		}
		f.properties = append(f.properties, p)
		return nil
	})
	f.terms = termFlags(set)
	switch err := set.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil, err
	case err != nil:
		return nil, wrong("%v", err)
	case set.NArg() == 0:
		return nil, wrong("no job is named")
	}
	f.job, f.args = set.Arg(0), set.Args()[1:]
	var err error
	f.jobtrackers, err = addresses(*list)
	return f, err
}

// Errors that the user has been told already, so that they are not printed.
var (
	errReported = errors.New("the command has failed")
	errHungUp   = errors.New("the terminal has gone, and the jobs go on")
)

// reported is the error behind an exit code of the client, which has printed why.
func reported(code int) error {
	switch code {
	case exitDone:
		return nil
	case client.ExitHungUp:
		return errHungUp
	}
	return errReported
}

func (t *tool) runJob(ctx context.Context, f *runFlags) (err error) {
	var cluster *web.Client
	var about *web.Cluster
	if len(f.jobtrackers) > 0 { // first of all: there is nothing to be done without it
		if f.who, err = identityOf(f.tlsDir); err != nil {
			return err
		}
		if cluster, about, err = t.reach(ctx, f.jobtrackers, f.who); err != nil {
			return err
		}
		defer cluster.Close()
		if !about.Wall.IsZero() { // of a job tracker that tells it
			f.ahead = time.Until(about.Wall)
		}
	}
	exe, remove, err := t.executable(ctx, f.job)
	if err != nil {
		return err
	}
	defer remove()
	sub, err := t.plan(ctx, f, exe)
	if err != nil {
		return err
	}
	cfg := client.Config{Out: t.stderr, Width: t.width, GiveUp: t.signals.GiveUp}
	if cluster == nil {
		return t.runEmbedded(ctx, cfg, sub)
	}
	if err := checkShared(&sub.Plan, about, f.shared); err != nil {
		return err
	}
	t.warnUnheeded(*f.terms, about.Scheduling)
	notes := make(chan string, 16)
	cluster.Note = noteTo(notes)
	cfg.Cluster, cfg.FS, cfg.Staging, cfg.Notes = cluster, files(), about.Staging, notes
	cfg.Program, cfg.Today, cfg.HangUp = exe, about.Wall, t.signals.HangUp
	return reported(client.Run(ctx, cfg, sub))
}

// plan asks the job for what it wants to run.
func (t *tool) plan(ctx context.Context, f *runFlags, exe string) (*wire.Submission, error) {
	var args []string
	for _, p := range f.properties {
		args = append(args, "-D", p)
	}
	sub, err := client.Plan(ctx, exe, append(args, f.args...), t.stderr)
	if err != nil {
		return nil, err
	}
	if sub.Program.Path, err = dfs.Clean(exe); err != nil {
		return nil, err
	}
	sub.Owner = userName(f.who, t.getenv)
	began := f.began.Add(f.ahead)
	if sub.Terms, err = submitTerms(sub.Plan.Jobs[0].Properties, *f.terms, began); err != nil {
		return nil, wrong("%v", err)
	}
	if d := sub.Terms.Deadline; d != 0 { // building and uploading take their time
		sub.Due = began.Add(d).UnixMilli()
	}
	if sub.Terms.Late(0) {
		fmt.Fprintln(t.stderr, "warning: the deadline has passed already: the job is late")
	}
	return sub, nil
}

// runEmbedded runs a job on a cluster that lives as long as the job.
func (t *tool) runEmbedded(ctx context.Context, cfg client.Config, sub *wire.Submission) error {
	cluster, err := t.embedded(ctx, sub)
	if err != nil {
		return fmt.Errorf("start embedded cluster: %w", err)
	}
	cfg.Cluster, cfg.FS, cfg.Staging = cluster.Cluster, cluster.files, cluster.staging
	code := client.Run(ctx, cfg, sub)
	if err := cluster.close(); err != nil {
		return fmt.Errorf("stop embedded cluster: %w", err)
	}
	return reported(code)
}

// executable gives the absolute path of a file that may be executed as a job:
// JOB itself or, of a package directory, what it builds to. Call remove at the end.
func (t *tool) executable(ctx context.Context, job string) (exe string, remove func(), err error) {
	remove = func() {}
	if exe, err = filepath.Abs(job); err != nil {
		return "", nil, fmt.Errorf("job %s: %w", job, err)
	}
	stat, err := os.Stat(job)
	if err != nil {
		return "", nil, fmt.Errorf("job: %w", err)
	}
	if stat.IsDir() {
		dir, err := os.MkdirTemp("", "mrsubmit-")
		if err != nil {
			return "", nil, fmt.Errorf("build %s: %w", job, err)
		}
		remove = func() { os.RemoveAll(dir) }
		// The name appears in messages and in lists of processes.
		built := filepath.Join(dir, filepath.Base(exe))
		if err := jobfile.Build(ctx, job, built, t.stderr); err != nil {
			remove()
			return "", nil, err
		}
		exe = built
	}
	if _, err := jobfile.Check(exe); err != nil {
		remove()
		return "", nil, err
	}
	return exe, remove, nil
}

// userName is the name under which jobs are submitted: where there are certificates,
// the job trackers take it from there too.
func userName(who *identity.Identity, getenv func(string) string) string {
	if who != nil {
		return who.Self().Name
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return cmp.Or(getenv("USER"), "unknown")
}
