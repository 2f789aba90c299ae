package hdfs_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	bare "github.com/colinmarc/hdfs/v2"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/hdfs"
	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/integration/hdfs/minicluster"
	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/integration/trial"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/wire"
)

// programDir is the directory of the programs, once programs has built them.
var programDir string

func programs(t *testing.T) string {
	t.Helper()
	if programDir != "" {
		return programDir
	}
	dir, err := os.MkdirTemp("", "quern-hdfs-")
	if err != nil {
		t.Fatal(err)
	}
	programDir = dir
	if err := processes.Build(dir, "examples/wordcount", "examples/sort", "examples/grep", "integration/embedded/words", "integration/trial/driven", trial.Paced); err != nil {
		t.Fatal(err)
	}
	return programDir
}

// jobUser is the user of jobs, without special rights.
const jobUser = "ada"

// platform runs the jobs of a test: embedded, or on daemons beside the DataNodes.
type platform struct {
	t        *testing.T
	ctx      context.Context
	hdfs     *minicluster.Cluster
	fs       *hdfs.FS // of jobUser
	top      string   // URL of a directory of jobUser's
	dir      string   // on this machine
	env      []string
	daemons  *processes.Cluster // nil: embedded
	client   *web.Client
	jobCount int // made so far, for their names
}

// newPlatform returns a platform. When the test ends, its cleanup checks for leftover files.
func newPlatform(t *testing.T, c *minicluster.Cluster) *platform {
	t.Helper()
	programs(t) // before the time limit starts
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*trial.Deadline)
	t.Cleanup(cancel)
	super := client(t, c)
	p := &platform{t: t, ctx: ctx, hdfs: c, top: newDir(t, c, super), dir: t.TempDir()}
	p.fs = client(t, c, asUser(jobUser))
	p.chown(p.top, jobUser, 0o755)
	p.env = []string{"HADOOP_CONF_DIR=" + c.Conf(), "HADOOP_USER_NAME=" + jobUser}
	t.Cleanup(func() {
		p.awaitClean()
		if err := super.RemoveAll(p.top); err != nil {
			t.Error(err)
		}
	})
	return p
}

// withEnv returns the same platform with additions to its environment.
func (p *platform) withEnv(env ...string) *platform {
	other := *p
	other.env = slices.Concat(p.env, env)
	return &other
}

func asUser(name string) func(*hdfs.Options) { return func(o *hdfs.Options) { o.User = name } }

// withProperty sets a property of the configuration.
func withProperty(property, value string) func(*hdfs.Options) {
	return func(o *hdfs.Options) {
		o.Conf = maps.Clone(o.Conf)
		o.Conf[property] = value
	}
}

// chown sets the owner and mode of a file or directory of HDFS.
func (p *platform) chown(name, user string, mode os.FileMode) {
	p.t.Helper()
	options := bare.ClientOptions{User: minicluster.Superuser}
	for _, d := range p.hdfs.NameNodes {
		options.Addresses = append(options.Addresses, d.Addr())
	}
	super, err := bare.NewClient(options)
	if err != nil {
		p.t.Fatal(err)
	}
	defer super.Close()
	path := strings.TrimPrefix(name, p.hdfs.URL())
	if err := errors.Join(super.Chown(path, user, user), super.Chmod(path, mode)); err != nil {
		p.t.Fatal(err)
	}
}

// put writes a file of HDFS. Its name is a URL, or is below top.
func (p *platform) put(name string, content []byte, change ...func(*hdfs.Options)) (url string) {
	p.t.Helper()
	url = name
	if !strings.Contains(name, "://") {
		url = dfs.Join(p.top, name)
	}
	f := client(p.t, p.hdfs, slices.Concat([]func(*hdfs.Options){asUser(jobUser)}, change)...)
	if err := f.MkdirAll(dfs.Dir(url)); err != nil {
		p.t.Fatal(err)
	}
	write(p.t, f, url, content)
	return url
}

// daemonShape describes the daemons of a platform.
type daemonShape struct {
	jobTrackers int
	nodes       []*minicluster.Daemon // with a task tracker beside each
	slots       int                   // map slots and reduce slots of each
	racks       bool                  // each has the flag -rack
	staging     string                // URL; empty: of this machine
	flags       []string              // of job trackers
	asOwner     bool                  // daemons have certificates and -hdfs-as-owner
	traces      bool                  // jobs write traces into a directory of this machine, so they are not isolated
	users       string                // the map of accounts with which jobs run; empty: with that of the task trackers
}

// start starts daemons, which the test's cleanup stops.
func (p *platform) start(q daemonShape) {
	p.t.Helper()
	cfg := processes.Config{Programs: programs(p.t), Dir: filepath.Join(p.dir, "quern"), JobTrackers: q.jobTrackers, MapSlots: q.slots,
		ReduceSlots: q.slots, Env: p.env, Staging: q.staging,
		JobTrackerFlags: append([]string{"-lease", "30s"}, q.flags...)} // a busy machine loses no tracker
	if q.asOwner {
		cfg.TLS, cfg.JobTrackerFlags = true, append(cfg.JobTrackerFlags, "-hdfs-as-owner")
	}
	var err error
	if p.daemons, err = processes.Start(p.ctx, cfg); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(p.stop)
	p.client = web.NewClient(strings.Split(p.daemons.Addrs(), ","))
	p.client.Secure(p.daemons.Dialer(identity.JobTracker))
	for _, node := range q.nodes {
		var flags []string
		if q.racks {
			flags = []string{"-rack", node.Rack}
		}
		if q.asOwner {
			flags = append(flags, "-hdfs-as-owner")
		}
		if q.traces {
			flags = append(flags, "-isolation", "none")
		}
		if q.users != "" {
			flags = append(flags, "-isolation", "user", "-user-map", q.users)
		}
		p.startTracker(node, flags...)
	}
	p.awaitTrackers(len(q.nodes))
}

// startTracker starts a task tracker on a DataNode's machine.
func (p *platform) startTracker(node *minicluster.Daemon, flags ...string) *processes.Daemon {
	p.t.Helper()
	conf, err := p.hdfs.ConfBeside(node)
	if err != nil {
		p.t.Fatal(err)
	}
	d, err := p.daemons.AddTaskTracker("tt-"+node.ID, append(flags, "-host", node.ID)...)
	if err != nil {
		p.t.Fatal(err)
	}
	d.Env = p.withEnv("HADOOP_CONF_DIR=" + conf).env
	if err := d.Start(); err != nil {
		p.t.Fatal(err)
	}
	return d
}

// awaitTrackers waits until n task trackers are ready for work.
func (p *platform) awaitTrackers(n int) {
	p.t.Helper()
	trial.Await(p.t, "task trackers", func() bool { return processes.Connected(p.ctx, p.client) >= n })
}

// stop stops the daemons, which need HDFS until they end.
func (p *platform) stop() {
	if p.t.Failed() {
		for _, d := range p.daemons.All() {
			p.t.Logf("== %s\n%s", d.ID, d.LastLines())
		}
	} else {
		p.awaitClean()
	}
	if err := p.daemons.Close(); err != nil {
		p.t.Error(err)
	}
	if left := p.workers(); len(left) > 0 {
		p.t.Errorf("processes %v are left", left)
	}
}

// workers lists the processes with programs in the platform's directory: jobs' programs.
func (p *platform) workers() (pids []string) { return trial.Processes(p.dir) }

// awaitClean waits until HDFS has no leftover files of jobs.
func (p *platform) awaitClean() {
	p.t.Helper()
	var left []string
	defer func() {
		if p.t.Failed() {
			p.t.Logf("left in HDFS: %q", left)
		}
	}()
	trial.Await(p.t, "removal of leftover files in "+p.top, func() bool {
		left = p.leftovers(p.top)
		return len(left) == 0
	})
}

func (p *platform) leftovers(dir string) (list []string) {
	p.t.Helper()
	infos, err := p.fs.List(dir)
	if errors.Is(err, fs.ErrNotExist) { // removed since its parent was listed: awaitClean lists again
		return []string{dir}
	}
	if err != nil {
		p.t.Fatal(err)
	}
	for _, info := range infos {
		switch name := dfs.Base(info.Name); {
		case name == "_temporary", strings.HasPrefix(name, "."):
			list = append(list, info.Name)
		case dfs.Base(dir) == "staging" && !slices.Contains([]string{wire.StagingClusters, wire.StagingPrograms, wire.StagingHistory, wire.StagingSessions, wire.StagingUsers}, name),
			dfs.Base(dfs.Dir(dir)) == wire.StagingUsers && name != wire.StagingPrograms && name != wire.StagingSessions,
			dfs.Base(dir) == wire.StagingSessions:
			list = append(list, info.Name)
		case info.Dir && name != wire.StagingHistory:
			list = append(list, p.leftovers(info.Name)...)
		}
	}
	return list
}
