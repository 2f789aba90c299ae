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
	"github.com/quernmr/quern/cmd/internal/ui"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/jobfile"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

const runSynopsis = "[-jobtracker HOST:PORT,…] [-shared-local] [-no-wait] [-detach] [-json] [-quiet] [-ui [-no-browser]] [-D NAME=VALUE]… [-archives PATH#NAME,…] [settings] JOB [job flags]"

const runHelp = `JOB is an executable that calls mapreduce.Main or mapreduce.Drive, or the directory of its Go package,
which mrsubmit builds first. Arguments after JOB are the job's own flags: see
"mrsubmit run JOB -h". Without a job tracker the job runs embedded: on this machine,
on a cluster of its own.

Files are local, or in HDFS: hdfs://NAMENODE:PORT/…, hdfs://NAMESERVICE/… and hdfs:///….
HADOOP_CONF_DIR names the directory of HDFS's configuration, HADOOP_USER_NAME the user.`

// runFlags has the flags before JOB, JOB, and its arguments.
type runFlags struct {
	jobtrackers []string
	security    security
	identity    *identity.Identity // nil: the cluster has no TLS, or the run is embedded
	sharedLocal bool               // all machines share the local files
	noWait      bool               // fail if the cluster accepts no job for now
	scripted    scripted
	ui          bool // serve the pages of the embedded run
	noBrowser   bool
	properties  []string // NAME=VALUE, in order
	settings    *[][2]string
	began       time.Time     // deadlines count from this time
	clockAhead  time.Duration // the cluster's clock minus ours
	job         string
	args        []string

	list     *string // -jobtracker
	describe describe
	failure  func(error) int // the exit code for a job that is not submitted; nil: 1
	hadoop   *hadoopRun      // report as Hadoop does; nil: as mrsubmit
}

// describe returns the executable of a job and its submission. status is that of the cluster, nil for an embedded run.
// Call remove at the end.
type describe func(ctx context.Context, f *runFlags, status *web.Cluster) (exe string, sub *wire.Submission, remove func(), err error)

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
		fmt.Fprintf(t.stderr, "mrsubmit run: %v\n", errorText(err))
		return exitUsage
	}
	return t.endScripted("run", set, f, err)
}

func (t *tool) parseRun(set *flag.FlagSet, args []string) (*runFlags, error) {
	f := t.declareRun(set)
	set.Func("archives", "archives and directories for the working directory of each attempt: comma-separated paths, each with `PATH#NAME` for another name. The same as -D mapreduce.job.cache.archives=PATHS", func(list string) error {
		if _, err := runtime.ParseCached(list); err != nil {
			return err
		}
		f.properties = append(f.properties, runtime.CacheArchives+"="+list)
		return nil
	})
	rest, err := t.parse(set, args, 1)
	if err == nil && len(rest) == 0 {
		err = usagef("no job is named: give a job program or the directory of its Go package")
	}
	if err != nil {
		return f, err
	}
	f.job, f.args = rest[0], rest[1:]
	f.describe = t.program
	return f, f.check()
}

// declareRun declares the flags of commands that run jobs.
func (t *tool) declareRun(set *flag.FlagSet) *runFlags {
	f := &runFlags{began: time.Now()}
	f.list = set.String("jobtracker", t.getenv("QUERN_JOBTRACKER"), addressesUsage)
	t.securityFlags(set, &f.security)
	set.BoolVar(&f.sharedLocal, "shared-local", false, "all machines of the cluster share the local files")
	set.BoolVar(&f.noWait, "no-wait", false, "fail at once if the cluster has too many jobs, instead of waiting until it accepts this one")
	set.BoolVar(&f.ui, "ui", false, "serve the pages of an embedded run at a loopback address, and open a browser. They stay after the job's end, until Ctrl-C")
	set.BoolVar(&f.noBrowser, "no-browser", false, "with -ui: only print the address")
	set.Func("D", "set a job property, `NAME=VALUE`; may be repeated. In a flow, JOB:NAME=VALUE sets it for one job and wins", func(p string) error {
		if name, _, ok := strings.Cut(p, "="); !ok || name == "" {
			return errors.New("want NAME=VALUE")
		}
		f.properties = append(f.properties, p)
		return nil
	})
	f.scripted.declare(set)
	f.settings = settingFlags(set)
	return f
}

// check checks the flags that are parsed.
func (f *runFlags) check() (err error) {
	f.jobtrackers, err = addresses(*f.list)
	if err == nil && f.ui && len(f.jobtrackers) > 0 {
		err = usagef("-ui shows an embedded run: mrsubmit ui shows the pages of a cluster")
	}
	return err
}

func (t *tool) runJob(ctx context.Context, f *runFlags) (err error) {
	var cluster *web.Client
	var status *web.Cluster
	if len(f.jobtrackers) > 0 { // check the cluster before the build takes its time
		if f.identity, err = t.identityOf(f.security); err != nil {
			return err
		}
		if cluster, status, err = t.openCluster(ctx, f.jobtrackers, f.identity); err != nil {
			return err
		}
		defer cluster.Close()
		if !status.Wall.IsZero() { // older job trackers do not send it
			f.clockAhead = time.Until(status.Wall)
		}
	}
	exe, sub, remove, err := f.describe(ctx, f, status)
	if err != nil {
		return err
	}
	defer remove()
	cfg := client.Config{Out: t.stderr, Width: t.width, GiveUp: t.signals.GiveUp, Failure: f.failure}
	drives := len(sub.Program.Drives) > 0
	if err := f.scripted.check(sub, cluster != nil); err != nil {
		return err
	}
	if drives && f.ui {
		return usagef("-ui: the program drives jobs: without a job tracker it runs them itself")
	}
	if cluster == nil && drives {
		return t.drive(ctx, f, nil, exe, sub)
	}
	if cluster == nil {
		return t.runEmbedded(ctx, cfg, f, sub)
	}
	if err := checkShared(sub, status, f.sharedLocal); err != nil {
		return err
	}
	t.warnIgnored(*f.settings, status.Scheduling)
	t.warnEmbedded(&sub.Plan) // a driver's plan is empty
	notes := make(chan string, 16)
	cluster.Note = noteTo(notes)
	cfg.Cluster, cfg.FS, cfg.Notes = cluster, files(), notes
	if cfg.Staging, err = ownStaging(status); err != nil {
		return err
	}
	cfg.Program, cfg.Today, cfg.HangUp = exe, status.Wall, t.signals.HangUp
	cfg.NoWait = f.noWait
	if drives {
		cfg.Brief, cfg.Quiet = true, f.scripted.quiet || f.scripted.json || sub.Program.Flags["quiet"] == "true"
		return t.drive(ctx, f, &clusterDriver{tool: t, flags: f, cfg: cfg, status: status}, exe, sub)
	}
	if f.hadoop != nil {
		cfg.Detach = f.scripted.detach
		return f.hadoop.run(ctx, cfg, sub, t.clusterFailures(cluster, f.identity))
	}
	return t.runScripted(ctx, &f.scripted, cfg, sub)
}

// program describes the job of a program, which it builds if JOB is a package.
func (t *tool) program(ctx context.Context, f *runFlags, status *web.Cluster) (string, *wire.Submission, func(), error) {
	exe, remove, err := t.executable(ctx, f.job, status != nil)
	if err != nil {
		return "", nil, nil, err
	}
	sub, err := t.plan(ctx, f, exe)
	if err != nil {
		remove()
		return "", nil, nil, err
	}
	return exe, sub, remove, nil
}

// plan runs the job in plan mode, and completes the submission.
func (t *tool) plan(ctx context.Context, f *runFlags, exe string) (*wire.Submission, error) {
	var args []string
	for _, p := range f.properties {
		args = append(args, "-D", p)
	}
	sub, err := client.Plan(ctx, exe, append(args, f.args...), t.stderr)
	if err != nil || len(sub.Program.Drives) > 0 {
		return sub, err
	}
	if sub.Program.Path, err = dfs.Clean(exe); err != nil {
		return nil, err
	}
	return sub, t.settle(f, sub)
}

// settle sets the owner and the settings of a submission.
func (t *tool) settle(f *runFlags, sub *wire.Submission) (err error) {
	sub.Owner = userName(f.identity, t.getenv)
	began := f.began.Add(f.clockAhead)
	if sub.Settings, err = submitSettings(sub.Plan.Jobs[0].Properties, *f.settings, began); err != nil {
		return usagef("%v", err)
	}
	if d := sub.Settings.Deadline; d != 0 { // an absolute time, which building and uploading do not postpone
		sub.DeadlineAt = began.Add(d).UnixMilli()
	}
	if sub.Settings.Late(0) {
		fmt.Fprintln(t.stderr, "warning: the deadline has passed: the job is late")
	}
	return nil
}

// runEmbedded runs a job on an embedded cluster, and ends the cluster after it.
func (t *tool) runEmbedded(ctx context.Context, cfg client.Config, f *runFlags, sub *wire.Submission) error {
	cluster, err := t.embedded(ctx, sub, f.ui || f.hadoop != nil)
	if err != nil {
		return fmt.Errorf("start embedded cluster: %w", err)
	}
	wait := func() error { return nil }
	if f.ui {
		if wait, err = t.showRun(ctx, f, cluster); err != nil {
			return errors.Join(err, cluster.close())
		}
	}
	cfg.Cluster, cfg.FS, cfg.Staging = cluster.Cluster, cluster.files, cluster.staging
	if cluster.prints {
		cfg.Width = nil
	}
	var ran error
	if f.hadoop != nil {
		ran = f.hadoop.run(ctx, cfg, sub, cluster.failures)
	} else {
		ran = t.runScripted(ctx, &f.scripted, cfg, sub)
	}
	err = wait()
	if closed := cluster.close(); closed != nil {
		return fmt.Errorf("stop embedded cluster: %w", closed)
	}
	return cmp.Or(err, ran)
}

// showRun serves the pages of an embedded cluster. wait serves them after the end of the job until an interrupt.
func (t *tool) showRun(ctx context.Context, f *runFlags, cluster *cluster) (wait func() error, err error) {
	p, err := ui.Listen(0, ui.Config{Pages: cluster.pages, Log: cluster.log})
	if err != nil {
		return nil, err
	}
	served := make(chan error, 1)
	go func() { served <- p.Serve() }()
	fmt.Fprintln(t.stderr, "pages:", p.URL())
	remove := t.openBrowser("run", p.URL(), f.noBrowser)
	return func() error {
		defer remove()
		defer p.Close()
		if ctx.Err() == nil {
			fmt.Fprintln(t.stderr, "the pages stay until Ctrl-C")
		}
		select {
		case <-ctx.Done():
		case <-t.signals.HangUp:
		case err := <-served:
			return err
		}
		return nil
	}, nil
}

// executable returns the absolute path of the job's program. If JOB is a package directory, it
// builds the program. Call remove at the end.
func (t *tool) executable(ctx context.Context, job string, cluster bool) (exe string, remove func(), err error) {
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
		target := jobfile.Here
		if cluster {
			target = jobfile.Anywhere
		}
		if err := jobfile.Build(ctx, job, built, target, t.stderr); err != nil {
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

// userName returns the owner of submitted jobs: the name in the certificate, which job trackers
// use, or else the user of this process.
func userName(self *identity.Identity, getenv func(string) string) string {
	if self != nil {
		return self.Peer().Name
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return cmp.Or(getenv("USER"), "unknown")
}
