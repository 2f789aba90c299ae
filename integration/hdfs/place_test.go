package hdfs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	bare "github.com/colinmarc/hdfs/v2"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/hdfs"
	"github.com/quernmr/quern/integration/hdfs/minicluster"
	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/jobtracker/web"
	mrruntime "github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

// built is where the programs are, once a test has needed them.
var built string

func programs(t *testing.T) string {
	t.Helper()
	if built != "" {
		return built
	}
	dir, err := os.MkdirTemp("", "quern-hdfs-")
	if err != nil {
		t.Fatal(err)
	}
	built = dir
	if err := processes.Build(dir, "examples/wordcount", "examples/sort", "examples/grep", "integration/cluster/paced"); err != nil {
		t.Fatal(err)
	}
	return built
}

// deadline is generous: it only ends what would hang for ever.
const deadline = 3 * time.Minute

// jobUser is who runs jobs: nobody in particular.
const jobUser = "ada"

// place is where a test's jobs run: embedded or, when it has been given some, on
// daemons beside the DataNodes.
type place struct {
	t       *testing.T
	ctx     context.Context
	hdfs    *minicluster.Cluster
	fs      *hdfs.FS // of jobUser
	top     string   // URL of a directory of jobUser's
	dir     string   // of this machine
	env     []string
	daemons *processes.Cluster // nil: embedded
	client  *web.Client
	jobs    int // made so far, for their names
}

// newPlace makes a place, and when the test ends looks at what is left there.
func newPlace(t *testing.T, c *minicluster.Cluster) *place {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*deadline)
	t.Cleanup(cancel)
	super := client(t, c)
	p := &place{t: t, ctx: ctx, hdfs: c, top: root(t, c, super), dir: t.TempDir()}
	p.fs = client(t, c, asUser(jobUser))
	p.own(p.top, jobUser, 0o755)
	p.env = []string{"HADOOP_CONF_DIR=" + c.Conf(), "HADOOP_USER_NAME=" + jobUser}
	t.Cleanup(func() {
		p.clean()
		if err := super.RemoveAll(p.top); err != nil {
			t.Error(err)
		}
	})
	return p
}

func asUser(name string) func(*hdfs.Options) { return func(o *hdfs.Options) { o.User = name } }

// having sets a property of the configuration.
func having(property, value string) func(*hdfs.Options) {
	return func(o *hdfs.Options) {
		o.Conf = maps.Clone(o.Conf)
		o.Conf[property] = value
	}
}

// own gives a file or directory of HDFS to somebody.
func (p *place) own(name, user string, mode os.FileMode) {
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

// put writes a file of HDFS, of this name below top or with this URL.
func (p *place) put(name string, content []byte, change ...func(*hdfs.Options)) (url string) {
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

// quern is what daemons there are.
type quern struct {
	jobTrackers int
	nodes       []*minicluster.Daemon // with a task tracker beside each
	slots       int                   // of each, for maps and for reduces
	racks       bool                  // each is told its rack
	staging     string                // URL; empty: of this machine
	flags       []string              // of job trackers
}

// start starts daemons, which end with the test.
func (p *place) start(q quern) {
	p.t.Helper()
	cfg := processes.Config{Programs: programs(p.t), Dir: filepath.Join(p.dir, "quern"), JobTrackers: q.jobTrackers, MapSlots: q.slots,
		ReduceSlots: q.slots, Env: p.env, Staging: q.staging, JobTrackerFlags: q.flags}
	var err error
	if p.daemons, err = processes.Start(p.ctx, cfg); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(p.stop)
	p.client = web.NewClient(strings.Split(p.daemons.Addrs(), ","))
	for _, node := range q.nodes {
		var flags []string
		if q.racks {
			flags = []string{"-rack", node.Rack}
		}
		p.beside(node, flags...)
	}
	p.connected(len(q.nodes))
}

// beside starts a task tracker beside a DataNode.
func (p *place) beside(node *minicluster.Daemon, flags ...string) *processes.Daemon {
	p.t.Helper()
	conf, err := p.hdfs.ConfBeside(node)
	if err != nil {
		p.t.Fatal(err)
	}
	d, err := p.daemons.AddTaskTracker("tt-"+node.ID, append(flags, "-host", node.ID)...)
	if err != nil {
		p.t.Fatal(err)
	}
	d.Env = append(slices.Clone(p.env), "HADOOP_CONF_DIR="+conf)
	if err := d.Start(); err != nil {
		p.t.Fatal(err)
	}
	return d
}

// connected waits until so many task trackers can be given work.
func (p *place) connected(n int) {
	p.t.Helper()
	waitFor(p.t, "task trackers are connected", func() bool {
		status, err := p.client.Cluster(p.ctx)
		if err != nil {
			return false
		}
		ready := 0
		for _, one := range status.Trackers {
			if one.Connected {
				ready++
			}
		}
		return ready >= n
	})
}

// stop ends the daemons: every test leaves HDFS as they can use it.
func (p *place) stop() {
	if p.t.Failed() {
		for _, d := range p.daemons.All() {
			p.t.Logf("== %s\n%s", d.ID, d.LastLines())
		}
	} else {
		p.clean()
	}
	if err := p.daemons.Close(); err != nil {
		p.t.Error(err)
	}
	if left := p.workers(); len(left) > 0 {
		p.t.Errorf("processes %v are left", left)
	}
}

// workers lists the processes whose executable lies in the place's directory.
func (p *place) workers() (pids []string) {
	exes, _ := filepath.Glob("/proc/[0-9]*/exe") // the pattern is well-formed
	for _, exe := range exes {
		if to, err := os.Readlink(exe); err == nil && strings.HasPrefix(to, p.dir) {
			pids = append(pids, strings.Split(exe, "/")[2])
		}
	}
	return pids
}

// clean waits until HDFS holds nothing of jobs but their output and what is kept
// of them on purpose.
func (p *place) clean() {
	p.t.Helper()
	var left []string
	defer func() {
		if p.t.Failed() {
			p.t.Logf("left in HDFS: %q", left)
		}
	}()
	waitFor(p.t, "nothing is left of jobs in "+p.top, func() bool {
		left = p.leavings(p.top)
		return len(left) == 0
	})
}

func (p *place) leavings(dir string) (list []string) {
	p.t.Helper()
	infos, err := p.fs.List(dir)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, info := range infos {
		switch name := dfs.Base(info.Name); {
		case name == "_temporary", strings.HasPrefix(name, "."):
			list = append(list, info.Name)
		case dfs.Base(dir) == "staging" && name != wire.StagingClusters && name != wire.StagingPrograms && name != wire.StagingHistory:
			list = append(list, info.Name)
		case info.Dir && name != wire.StagingHistory:
			list = append(list, p.leavings(info.Name)...)
		}
	}
	return list
}

// run is a command that runs.
type run struct {
	t     *testing.T
	cmd   *exec.Cmd
	said  said
	ended chan struct{}
}

// said collects what a program says.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// submit runs a job: the program itself or, where there are daemons, with mrsubmit.
func (p *place) submit(program string, args ...string) *run {
	p.t.Helper()
	if p.daemons == nil {
		return p.command(program, args...)
	}
	return p.command("mrsubmit", append([]string{"run", p.daemons.Program(program)}, args...)...)
}

func (p *place) command(program string, args ...string) *run {
	p.t.Helper()
	cmd := exec.CommandContext(p.ctx, filepath.Join(programs(p.t), program), args...)
	cmd.Env = append(append(os.Environ(), p.env...), "TMPDIR="+p.dir)
	if p.daemons != nil {
		cmd.Env = append(cmd.Env, "QUERN_JOBTRACKER="+p.daemons.Addrs())
	}
	r := &run{t: p.t, cmd: cmd, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &r.said, &r.said
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	go func() {
		defer close(r.ended)
		cmd.Wait()
	}()
	return r
}

// succeed waits for the command, which must exit 0.
func (r *run) succeed() {
	r.t.Helper()
	<-r.ended
	if code := r.cmd.ProcessState.ExitCode(); code != 0 {
		r.t.Fatalf("%s: exit %d\n%s", strings.Join(r.cmd.Args, " "), code, r.said.String())
	}
}

// fail waits for the command, which must exit so and say all that.
func (r *run) fail(code int, wants ...string) {
	r.t.Helper()
	<-r.ended
	text := r.said.String()
	lacks := slices.ContainsFunc(wants, func(want string) bool { return !strings.Contains(text, want) })
	if got := r.cmd.ProcessState.ExitCode(); got != code || lacks {
		r.t.Errorf("%s: exit %d, want %d and %q:\n%s", strings.Join(r.cmd.Args, " "), got, code, wants, text)
	}
}

// job is a run of the program paced.
type job struct {
	*run
	out   string // URL
	trace string
	gate  string
}

// paced runs a job that leaves traces. With -gate in flags its maps wait until
// open is called.
func (p *place) paced(in string, flags ...string) *job {
	p.t.Helper()
	p.jobs++
	dir := filepath.Join(p.dir, fmt.Sprint("job", p.jobs))
	j := &job{out: fmt.Sprintf("%s/out%d", p.top, p.jobs), trace: dir + "/trace", gate: dir + "/gate"}
	if err := os.MkdirAll(j.trace, 0o777); err != nil {
		p.t.Fatal(err)
	}
	args := []string{"-input", in, "-output", j.out, "-trace", j.trace}
	for _, flag := range flags {
		if args = append(args, flag); flag == "-gate" {
			args = append(args, j.gate)
		}
	}
	j.run = p.submit("paced", args...)
	return j
}

// open lets the maps of a job with a gate go on.
func (j *job) open() {
	j.t.Helper()
	if err := os.WriteFile(j.gate, nil, 0o666); err != nil {
		j.t.Fatal(err)
	}
}

// traces lists the attempts of a kind of task that have begun or ended.
func (j *job) traces(kind, what string) []string {
	files, _ := filepath.Glob(filepath.Join(j.trace, "*_"+kind+"_*."+what)) // the pattern is well-formed
	return files
}

// reached waits until so many attempts of a kind have begun or ended.
func (j *job) reached(kind, what string, n int) {
	j.t.Helper()
	j.waits(fmt.Sprintf("%d attempts of kind %s have %s", n, kind, what), func() bool { return len(j.traces(kind, what)) >= n })
}

// waits waits until something is so, while the job runs.
func (j *job) waits(what string, so func() bool) {
	j.t.Helper()
	over := false
	happened := within(deadline, func() bool {
		select {
		case <-j.ended:
			over = true
		default:
		}
		return over || so()
	})
	if over && so() {
		return
	}
	if over || !happened {
		j.t.Fatalf("waited in vain until %s (job ended: %v):\n%s", what, over, j.said.String())
	}
}

// lastID is that of the job that was submitted to the daemons last.
func (p *place) lastID() wire.JobID {
	p.t.Helper()
	jobs, err := p.client.Jobs(p.ctx)
	if err != nil || len(jobs) == 0 {
		p.t.Fatalf("%d jobs, %v", len(jobs), err)
	}
	id, err := wire.ParseJobID(jobs[len(jobs)-1].ID)
	if err != nil {
		p.t.Fatal(err)
	}
	return id
}

// last is that job, with its counters.
func (p *place) last() *web.Job {
	p.t.Helper()
	job, err := p.client.Job(p.ctx, p.lastID())
	if err != nil {
		p.t.Fatal(err)
	}
	return job
}

func jobCounter(j *web.Job, name string) int64  { return j.Counters[mrruntime.JobCounters][name] }
func readCounter(j *web.Job, name string) int64 { return j.Counters[mrruntime.ReadCounters][name] }

// parts reads the part files of an output directory, in the order of their names.
func parts(t *testing.T, f dfs.FS, out string) (names []string, contents [][]byte) {
	t.Helper()
	infos, err := f.List(out)
	if err != nil {
		t.Fatal(err)
	}
	success := false
	for _, info := range infos {
		switch name := dfs.Base(info.Name); {
		case name == "_SUCCESS":
			success = true
		case strings.HasPrefix(name, "part-"):
			names = append(names, name)
			contents = append(contents, read(t, f, info.Name))
		default:
			t.Errorf("%s holds %s", out, name)
		}
	}
	if !success {
		t.Errorf("%s lacks _SUCCESS", out)
	}
	return names, contents
}

// same compares an output, the part files one after the other, with what is right.
func (p *place) same(out string, want []byte) {
	p.t.Helper()
	_, contents := parts(p.t, p.fs, out)
	compare(p.t, out, bytes.Join(contents, nil), want)
}

func compare(t *testing.T, what string, got, want []byte) {
	t.Helper()
	if bytes.Equal(got, want) {
		return
	}
	at := 0
	for at < len(got) && at < len(want) && got[at] == want[at] {
		at++
	}
	t.Errorf("%s: %d bytes, want %d; from byte %d on they differ: %q, want %q", what, len(got), len(want), at, piece(got, at), piece(want, at))
}

func piece(b []byte, at int) []byte { return b[max(0, at-50):min(len(b), at+50)] }

// text makes about so many bytes of lines of words, some words often and most
// seldom, the same from run to run.
func text(size int) []byte {
	r := rand.New(rand.NewPCG(5, uint64(size)))
	vocabulary := make([]string, 1<<14)
	for i := range vocabulary {
		vocabulary[i] = fmt.Sprintf("%x-%s", i, "abcdefghijklmnop"[:r.IntN(16)])
	}
	b := make([]byte, 0, size+200)
	for len(b) < size {
		for range 4 + r.IntN(12) {
			b = append(append(b, vocabulary[r.IntN(len(vocabulary))&r.IntN(len(vocabulary))]...), ' ')
		}
		b[len(b)-1] = '\n'
	}
	return b
}

// wide makes so many bytes of lines of lineSize, few of them for their size.
func wide(size int) []byte {
	b := bytes.Repeat([]byte{'.'}, size)
	for at := 0; at < size; at += lineSize {
		copy(b[at:], fmt.Sprintf("%09d", at))
		b[min(at+lineSize, size)-1] = '\n'
	}
	return b
}

const lineSize = 1 << 10

// counted is the oracle of word counts: what a single process would count.
func counted(text []byte) []byte {
	counts := make(map[string]*int)
	for w := range bytes.FieldsSeq(text) {
		n := counts[string(w)]
		if n == nil {
			n = new(int)
			counts[string(w)] = n
		}
		*n++
	}
	var b []byte
	for _, w := range slices.Sorted(maps.Keys(counts)) {
		b = fmt.Appendf(b, "%s\t%d\n", w, *counts[w])
	}
	return b
}

// sortedLines puts lines in order.
func sortedLines(text []byte) []byte {
	lines := bytes.SplitAfter(text, []byte("\n"))
	slices.SortFunc(lines, bytes.Compare)
	return bytes.Join(lines, nil)
}
