package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/hdfs"
	"github.com/quernmr/quern/integration/hdfs/minicluster"
	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/tasktracker/credentials"
	"github.com/quernmr/quern/wire"
)

// failover runs a job over a secured HDFS with two NameNodes, which have principals of the form nn/_HOST. The
// first one dies while the job runs; dir is for its files. As root, jobs run with the account of their owner.
type failover struct{ dir string }

const (
	daemonUser = "quern" // of Quern's daemons; they may act as proxied
	tokenLife  = time.Minute
	jobWait    = 8 * time.Minute
	account    = 23001 // user id of the proxied user's jobs
)

func (f failover) compared(ctx context.Context) (a answers, err error) {
	host, err := os.Hostname()
	if err != nil {
		return a, err
	}
	if _, err := net.LookupHost(host); err != nil || strings.EqualFold(host, "localhost") {
		return a, fmt.Errorf("%w: two NameNodes need two names of this machine, and %q is not a second one: %v", minicluster.ErrUnavailable, host, err)
	}
	jars, err := minicluster.Fetch(ctx)
	if err != nil {
		return a, err
	}
	a.version = hadoopVersion
	dir := filepath.Join(f.dir, "failover")
	err = inKerberos(ctx, dir, []string{"nn/" + strings.ToLower(host)}, []string{daemonUser, proxied}, func(server *kdc) error {
		return f.serve(ctx, jars, server, host, dir, &a)
	})
	return a, err
}

// serve runs HDFS, Quern's daemons and the job.
func (f failover) serve(ctx context.Context, jars *minicluster.Jars, server *kdc, host, dir string, a *answers) error {
	programs := filepath.Join(dir, "programs")
	if err := os.Mkdir(programs, 0o777); err != nil {
		return err
	}
	if err := processes.Build(programs, "integration/trial/paced"); err != nil {
		return err
	}
	site := securedSite(server, "nn/_HOST")
	maps.Copy(site, protected("integrity"))
	maps.Copy(site, proxyUsers())
	maps.Copy(site, map[string]string{
		"hadoop.proxyuser." + daemonUser + ".hosts": "*", "hadoop.proxyuser." + daemonUser + ".users": proxied,
		"dfs.namenode.delegation.token.renew-interval": fmt.Sprint(tokenLife.Milliseconds()),
		"dfs.namenode.delegation.token.max-lifetime":   fmt.Sprint(tokenLife.Milliseconds()),
	})
	cluster, err := minicluster.Start(ctx, minicluster.Config{Jars: jars, Dir: filepath.Join(dir, "hdfs"), NameNodes: 2, Hosts: []string{"localhost", host},
		Racks: []string{"/a"}, Replication: 1, BlockSize: 1 << 20, Properties: site, Kerberos: server.conf()})
	if err != nil {
		return err
	}
	defer cluster.Close()
	conf, err := hdfs.ReadConf(cluster.Conf())
	if err != nil {
		return err
	}
	super := hdfs.New(hdfs.Options{Conf: conf})
	defer super.Close()
	if err := super.Share(cluster.URL()+"/", 0o777); err != nil {
		return err
	}
	gates, users := filepath.Join(dir, "gates"), filepath.Join(dir, "users")
	if err := errors.Join(os.Mkdir(gates, 0o755), os.WriteFile(users, fmt.Appendf(nil, "%s %d %d\n", proxied, account, account), 0o600)); err != nil {
		return err
	}
	isolation := []string{"-isolation", "none"}
	if asAccount() {
		isolation = []string{"-isolation", "user", "-user-map", users, "-job-paths", gates}
	}
	quern, err := processes.Start(ctx, processes.Config{
		Programs: programs, Dir: filepath.Join(dir, "quern"), JobTrackers: 1, TaskTrackers: 2, TLS: true, Staging: cluster.URL() + "/quern",
		JobTrackerFlags:  []string{"-hdfs-as-owner", "-lease", "30s"},
		TaskTrackerFlags: append(isolation, "-hdfs-as-owner"),
		Env:              []string{"HADOOP_CONF_DIR=" + cluster.Conf(), "KRB5_CLIENT_KTNAME=" + server.keytabOf(daemonUser)},
	})
	if err != nil {
		return err
	}
	r := &failoverRun{failover: f, cluster: cluster, server: server, conf: conf, super: super, quern: quern, dir: dir, a: a}
	err = r.job(ctx)
	if err != nil {
		for _, d := range quern.All() {
			err = fmt.Errorf("%w\n== %s\n%s", err, d.ID, d.LastLines())
		}
	}
	return errors.Join(err, quern.Close())
}

// failoverRun is the run of the job.
type failoverRun struct {
	failover
	cluster *minicluster.Cluster
	server  *kdc
	conf    hdfs.Conf
	super   *hdfs.FS
	quern   *processes.Cluster
	dir     string
	a       *answers
}

func (r *failoverRun) check(what string, err error) {
	r.a.lines++
	fmt.Fprintf(os.Stderr, "  failover, %s: %v\n", what, err)
	if err != nil {
		r.a.differences = append(r.a.differences, fmt.Sprintf("failover, %s: %v", what, err))
	}
}

// job runs a job of the proxied user. It waits until the first token's maximal life has ended, lets the
// first NameNode die, and lets the job go on.
func (r *failoverRun) job(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, jobWait)
	defer cancel()
	traces, gate := filepath.Join(r.dir, "traces"), filepath.Join(r.dir, "gates", "gate")
	if asAccount() {
		traces = "/tmp" // a private directory of each worker
	}
	home := r.cluster.URL() + "/home"
	alice := r.super.ActAs(proxied)
	words := bytes.Repeat([]byte("one two three two\n"), 150_000)
	if err := errors.Join(os.MkdirAll(traces, 0o777), alice.(dfs.Users).MakeOwn(home), put(dfs.Private(alice), home+"/in", words)); err != nil {
		return err
	}
	cmd := r.quern.Command(ctx, "mrsubmit", "run", r.quern.Program("paced"), "-input", home+"/in", "-output", home+"/out",
		"-trace", traces, "-gate", gate, "-pause-early", "-D", "mapreduce.map.speculative=false")
	cmd.Env = append(cmd.Env, "KRB5_CLIENT_KTNAME="+r.server.keytabOf(proxied))
	var printed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &printed, &printed
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	await := func(what string, done func() bool) error { return poll(ctx, ended, what, done) }
	began := func() bool { return len(r.traces(traces)) >= 2 }
	var seen []string                                                       // contents of token files
	renewed := func() bool { seen = r.tokens(seen); return len(seen) >= 6 } // of two task trackers
	err := errors.Join(await("two maps", began), await("new tokens", renewed))
	if err == nil && asAccount() {
		r.check("the account of the job's processes", r.accounted(traces))
	}
	if err == nil {
		file := filepath.Join(r.dir, "of-a-job")
		if err = os.WriteFile(file, []byte(seen[len(seen)-1]), 0o600); err == nil {
			err = r.failOver(ctx, file, home)
		}
	}
	if err == nil {
		err = os.WriteFile(gate, nil, 0o666)
	}
	var result error
	if err == nil {
		err = poll(ctx, nil, "the end of the job", func() bool {
			seen = r.tokens(seen)
			select {
			case result = <-ended:
				return true
			default:
				return false
			}
		})
	}
	if err = errors.Join(err, result); err != nil {
		_ = cmd.Process.Kill() // it may have ended
		return fmt.Errorf("mrsubmit: %w\n%s", err, printed.Bytes())
	}
	r.check("the job's output", r.counted(alice, home+"/out"))
	r.check("the job's files", r.owned(home+"/out"))
	r.check("no staged files are left", r.swept(ctx, alice))
	r.check("the last token is cancelled", r.cancelled(ctx, seen[len(seen)-1]))
	return nil
}

// asAccount reports whether jobs run with the account of their owner.
func asAccount() bool { return os.Geteuid() == 0 }

// traces lists the files of maps that have begun.
func (r *failoverRun) traces(dir string) (files []string) {
	const began = "*_m_*.began"
	if !asAccount() {
		files, _ = filepath.Glob(filepath.Join(dir, began)) // the patterns are well-formed
		return files
	}
	for _, t := range r.quern.TaskTrackers {
		more, _ := filepath.Glob(filepath.Join(t.Data(), "run", "*", "tmp", began))
		files = append(files, more...)
	}
	return files
}

// accounted checks that maps have run with the account of the job's owner.
func (r *failoverRun) accounted(dir string) error {
	for _, name := range r.traces(dir) {
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Uid != account {
			return fmt.Errorf("%s belongs to another user than %d", name, account)
		}
	}
	return nil
}

// failOver lets Hadoop read with a job's token, and replaces the active NameNode.
func (r *failoverRun) failOver(ctx context.Context, file, home string) error {
	err := r.server.withTokens(file, func() error {
		_, err := r.cluster.Shell(ctx, "-stat", "%u", home+"/in")
		return err
	})
	r.check("Hadoop uses a job's token", err)
	if err := r.cluster.NameNodes[0].Kill(); err != nil {
		return err
	}
	return r.cluster.Activate(ctx, r.cluster.NameNodes[1])
}

// swept waits until only the program is staged.
func (r *failoverRun) swept(ctx context.Context, alice dfs.FS) error {
	own := wire.UserStaging(r.quern.Staging(), proxied)
	var left []dfs.Info
	err := poll(ctx, nil, "the removal of staged files", func() bool {
		var err error
		left, err = alice.List(own)
		return err == nil && len(left) == 1 && dfs.Base(left[0].Name) == wire.StagingPrograms
	})
	if err != nil {
		err = fmt.Errorf("%w: %v", err, left)
	}
	return err
}

// cancelled waits until the NameNode does not know a token any more.
func (r *failoverRun) cancelled(ctx context.Context, token string) error {
	file := filepath.Join(r.dir, "last")
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		return err
	}
	return r.server.withTokens(file, func() (err error) {
		refusedNow := func() bool {
			// A NameNode looks at a token only when a connection begins.
			holder := hdfs.New(hdfs.Options{Conf: r.conf, RetryFor: time.Millisecond, FirstRetryFor: time.Millisecond})
			defer holder.Close()
			_, err = holder.Stat(r.cluster.URL() + "/home/in")
			return err != nil && strings.Contains(err.Error(), "can't be found in cache")
		}
		if e := poll(ctx, nil, "the token's cancellation", refusedNow); e != nil {
			return fmt.Errorf("%w, last answer: %v", e, err)
		}
		return nil
	})
}

// tokens appends the contents of token files that are not in seen.
func (r *failoverRun) tokens(seen []string) []string {
	for i := range r.quern.TaskTrackers {
		_ = filepath.WalkDir(r.quern.TaskTrackers[i].Data(), func(name string, e fs.DirEntry, err error) error {
			if err == nil && e.Name() == credentials.File {
				if text, err := os.ReadFile(name); err == nil && !slices.Contains(seen, string(text)) {
					seen = append(seen, string(text))
				}
			}
			return nil
		})
	}
	return seen
}

// counted compares the words in an output.
func (r *failoverRun) counted(f dfs.FS, out string) error {
	var got []string
	infos, err := f.List(out)
	for _, info := range infos {
		if err == nil && strings.HasPrefix(dfs.Base(info.Name), "part-") {
			var text []byte
			text, err = get(f, info.Name)
			got = append(got, strings.Fields(string(text))...)
		}
	}
	slices.Sort(got)
	if want := []string{"150000", "150000", "300000", "one", "three", "two"}; err == nil && !slices.Equal(got, want) {
		err = fmt.Errorf("it has %v, want %v", got, want)
	}
	return err
}

// owned checks that output and staging directory belong to the job's owner.
func (r *failoverRun) owned(names ...string) error {
	for _, name := range append(names, wire.UserStaging(r.quern.Staging(), proxied)) {
		if owner, err := r.super.Owner(name); err != nil || owner != proxied {
			return fmt.Errorf("%s belongs to %q: %w", name, owner, err)
		}
	}
	return nil
}

// poll waits until done, or fails if a process has ended.
func poll(ctx context.Context, ended chan error, what string, done func() bool) error {
	ticks := time.NewTicker(200 * time.Millisecond)
	defer ticks.Stop()
	for !done() {
		select {
		case err := <-ended:
			ended <- err
			return fmt.Errorf("the job has ended before: %s: %v", what, err)
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, ctx.Err())
		case <-ticks.C:
		}
	}
	return nil
}

func put(f dfs.FS, name string, content []byte) error {
	w, err := f.Create(name)
	if err != nil {
		return err
	}
	if _, err := w.Write(content); err != nil {
		return errors.Join(err, w.Abort())
	}
	return w.Close()
}

func get(f dfs.FS, name string) ([]byte, error) {
	r, err := f.Open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}
