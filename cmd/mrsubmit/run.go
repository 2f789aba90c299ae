package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/jobfile"
)

const runSynopsis = "[-jobtracker HOST:PORT,…] [-D NAME=VALUE]… JOB [job flags]"

const runHelp = `JOB is an executable that calls mapreduce.Main, or the directory of its Go
package, which is built first. What follows JOB is the job's own: see them with
"mrsubmit run JOB -h". Without a job tracker the job runs embedded: on this
machine, with a cluster that lives as long as the job. For example:

  mrsubmit run ./examples/wordcount -input README.md -output /tmp/wc

`

// runFlags are what stands before JOB, and JOB with what follows it.
type runFlags struct {
	jobtracker string
	properties []string // NAME=VALUE, in order
	job        string
	args       []string
}

func (t *tool) run(ctx context.Context, args []string) int {
	f, err := t.parseRun(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitDone
	case err != nil:
		fmt.Fprintf(t.stderr, "mrsubmit run: %v; see mrsubmit help run\n", err)
		return exitUsage
	}
	if err := t.runJob(ctx, f); err != nil {
		return t.runFailed(err)
	}
	return exitDone
}

func (t *tool) parseRun(args []string) (*runFlags, error) {
	f := &runFlags{}
	set := flag.NewFlagSet("run", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&f.jobtracker, "jobtracker", t.getenv("QUERN_JOBTRACKER"), "`addresses` of the job trackers, host:port and commas between (default $QUERN_JOBTRACKER)")
	set.Func("D", "set a job property, `NAME=VALUE`; may be repeated", func(p string) error {
		if name, _, ok := strings.Cut(p, "="); !ok || name == "" {
			return errors.New("want NAME=VALUE")
		}
		f.properties = append(f.properties, p)
		return nil
	})
	switch err := set.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(t.stdout, "usage: mrsubmit run %s\n\n%s", runSynopsis, runHelp)
		set.SetOutput(t.stdout)
		set.PrintDefaults()
		return nil, err
	case err != nil:
		return nil, err
	case set.NArg() == 0:
		return nil, errors.New("no job is named")
	}
	f.job, f.args = set.Arg(0), set.Args()[1:]
	return f, nil
}

// errReported is a failure that has been printed.
var errReported = errors.New("reported")

// runFailed prints why a job did not run, or not well.
func (t *tool) runFailed(err error) int {
	switch {
	case errors.Is(err, errReported):
		return exitFailed
	case errors.Is(err, client.ErrHelp):
		return exitDone
	}
	fmt.Fprintf(t.stderr, "mrsubmit run: %v\n", err)
	if errors.Is(err, client.ErrUsage) {
		return exitUsage
	}
	return exitFailed
}

func (t *tool) runJob(ctx context.Context, f *runFlags) (err error) {
	if f.jobtracker != "" {
		return fmt.Errorf("job tracker %s: clusters cannot be reached from this version; without -jobtracker and QUERN_JOBTRACKER the job runs embedded", f.jobtracker)
	}
	exe, remove, err := t.executable(ctx, f.job)
	if err != nil {
		return err
	}
	defer remove()
	var args []string
	for _, p := range f.properties {
		args = append(args, "-D", p)
	}
	sub, err := client.Plan(ctx, exe, append(args, f.args...), t.stderr)
	if err != nil {
		return err
	}
	if sub.Program.Path, err = dfs.Clean(exe); err != nil {
		return err
	}
	sub.Owner = owner(t.getenv)
	cluster, err := t.embedded(ctx, sub)
	if err != nil {
		return fmt.Errorf("start embedded cluster: %w", err)
	}
	code := client.Run(ctx, client.Config{
		Cluster: cluster.Cluster,
		FS:      cluster.files,
		Staging: cluster.staging,
		Out:     t.stderr,
		Width:   t.width,
		GiveUp:  t.giveUp,
	}, sub)
	if err := cluster.close(); err != nil {
		return fmt.Errorf("stop embedded cluster: %w", err)
	}
	if code != 0 {
		return errReported
	}
	return nil
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

// owner is the name under which jobs are submitted.
func owner(getenv func(string) string) string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return cmp.Or(getenv("USER"), "unknown")
}
