// Package cluster_test runs jobs on clusters of real processes and takes those
// apart while they run: daemons are killed, stopped, cut off and restarted. The
// output must be that of a dumb word count, and nothing may be left behind.
package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/wire"
)

// programs are built once, by TestMain.
var programs string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "quern-cluster-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	programs = dir
	if err := processes.Build(dir, "examples/wordcount", "examples/sort", "examples/grep",
		"integration/cluster/paced", "integration/embedded/faulty"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// deadline is generous: it only ends what would hang for ever.
const deadline = 3 * time.Minute

// cluster is a running cluster and the test it runs for.
type cluster struct {
	*processes.Cluster
	t      *testing.T
	ctx    context.Context
	dir    string
	client *web.Client
}

// start starts three job trackers and three task trackers, or as configured. When
// the test ends it ends them, and fails the test if anything is left.
func start(t *testing.T, configure ...func(*processes.Config)) *cluster {
	t.Helper()
	return startFor(t, 2*deadline, configure...)
}

// startFor starts a cluster whose commands end by then at the latest.
func startFor(t *testing.T, limit time.Duration, configure ...func(*processes.Config)) *cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	cfg := processes.Config{Programs: programs, Dir: t.TempDir(), JobTrackers: 3, TaskTrackers: 3}
	for _, f := range configure {
		f(&cfg)
	}
	c := &cluster{t: t, ctx: ctx, dir: cfg.Dir}
	var err error
	c.Cluster, err = processes.Start(ctx, cfg)
	t.Cleanup(cancel)
	if err != nil {
		t.Fatal(err)
	}
	c.client = web.NewClient(strings.Split(c.Addrs(), ","))
	c.client.Secure(c.Dialer(identity.JobTracker))
	t.Cleanup(c.end)
	c.connected(cfg.TaskTrackers)
	return c
}

// connected waits until so many task trackers can be given work.
func (c *cluster) connected(n int) {
	c.t.Helper()
	c.await("task trackers", func() bool {
		status, err := c.client.Cluster(c.ctx)
		if err != nil {
			return false
		}
		ready := 0
		for _, t := range status.Trackers {
			if t.Connected {
				ready++
			}
		}
		return ready >= n
	})
}

// end closes the cluster and looks at what it leaves.
func (c *cluster) end() {
	if c.t.Failed() {
		for _, d := range c.All() {
			c.t.Logf("== %s\n%s", d.ID, d.LastLines())
		}
	} else {
		c.clean()
	}
	if err := c.Close(); err != nil {
		c.t.Error(err)
	}
	for _, p := range c.workers() {
		c.t.Errorf("process %s is left", p)
	}
}

// clean waits until nothing is left of the jobs that have ended.
func (c *cluster) clean() {
	c.t.Helper()
	var left []string
	if !within(30*time.Second, func() bool {
		left = append(c.workers(), c.leavings()...)
		return len(left) == 0
	}) {
		c.t.Errorf("left behind:\n%s", strings.Join(left, "\n"))
	}
}

// workers lists the processes whose executable lies in the cluster's directory.
func (c *cluster) workers() []string {
	var list []string
	exes, _ := filepath.Glob("/proc/[0-9]*/exe") // the pattern is well-formed
	for _, exe := range exes {
		if to, err := os.Readlink(exe); err == nil && strings.HasPrefix(to, c.dir) {
			list = append(list, exe+" -> "+to)
		}
	}
	return list
}

// leavings lists files and directories of jobs: in the staging directory, but for what is kept on
// purpose, and in the data directories of trackers that run.
func (c *cluster) leavings() []string {
	var list []string
	entries, _ := os.ReadDir(filepath.Join(c.dir, "staging"))
	for _, e := range entries {
		if name := e.Name(); name != wire.StagingClusters && name != wire.StagingPrograms && name != wire.StagingHistory {
			list = append(list, "staging/"+name)
		}
	}
	for _, d := range c.TaskTrackers {
		if !d.Running() {
			continue
		}
		for _, sub := range []string{"jobs", "run", "programs"} {
			root := filepath.Join(d.Data(), sub)
			filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
				if err == nil && path != root {
					list = append(list, path)
				}
				return nil
			})
		}
	}
	return list
}

// within polls until something holds; false: it did not in that time.
func within(limit time.Duration, holds func() bool) bool {
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-timeout.C:
			return holds()
		}
	}
	return true
}

// await waits until something holds, which it must.
func (c *cluster) await(what string, holds func() bool) {
	c.t.Helper()
	if !within(deadline, holds) {
		c.t.Fatalf("no %s after %v", what, deadline)
	}
}

// leader is the job tracker that leads.
func (c *cluster) leader() *processes.Daemon {
	c.t.Helper()
	var leader *processes.Daemon
	c.await("leader", func() bool {
		leader = c.leaderAmong(nil)
		return leader != nil
	})
	return leader
}

// output collects what a program says.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// run is a command that runs.
type run struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout output
	stderr output
	ended  chan struct{}
}

// mrsubmit starts a command of mrsubmit.
func (c *cluster) mrsubmit(args ...string) *run {
	c.t.Helper()
	return c.command("mrsubmit", args...)
}

func (c *cluster) command(program string, args ...string) *run {
	c.t.Helper()
	return c.begin(c.Command(c.ctx, program, args...))
}

func (c *cluster) begin(cmd *exec.Cmd) *run {
	c.t.Helper()
	r := &run{t: c.t, cmd: cmd, ended: make(chan struct{})}
	r.cmd.Stdout, r.cmd.Stderr = &r.stdout, &r.stderr
	if err := r.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	go func() {
		defer close(r.ended)
		r.cmd.Wait()
	}()
	return r
}

// exit waits for the command's end and gives its exit code.
func (r *run) exit() int {
	<-r.ended
	return r.cmd.ProcessState.ExitCode()
}

// succeed waits for the command, which must exit 0, and gives its standard output.
func (r *run) succeed() string {
	r.t.Helper()
	if code := r.exit(); code != 0 {
		r.t.Fatalf("%s: exit %d\n%s%s", strings.Join(r.cmd.Args, " "), code, r.stdout.String(), r.stderr.String())
	}
	return r.stdout.String()
}

// fail waits for the command, which must exit so and say all that.
func (r *run) fail(code int, wants ...string) {
	r.t.Helper()
	got := r.exit()
	if said := r.stderr.String(); got != code || !containsAll(said, wants) {
		r.t.Errorf("%s: exit %d, want %d and %q:\n%s", strings.Join(r.cmd.Args, " "), got, code, wants, said)
	}
}

func containsAll(s string, wants []string) bool {
	return !slices.ContainsFunc(wants, func(want string) bool { return !strings.Contains(s, want) })
}

// job is a run of the program paced.
type job struct {
	*run
	c     *cluster
	text  string // of the input
	out   string // the output directory
	trace string
	gate  string
}

var jobs = 0 // made so far, for their names

// paced submits a word count over so many splits. With -gate=… in flags its maps
// wait until open is called.
func (c *cluster) paced(splits int, flags ...string) *job {
	c.t.Helper()
	jobs++
	dir := filepath.Join(c.dir, fmt.Sprintf("job%d", jobs))
	j := &job{c: c, text: text(splits), out: dir + "/out", trace: dir + "/trace", gate: dir + "/gate"}
	if err := errors.Join(os.MkdirAll(j.trace, 0o777), os.WriteFile(dir+"/in", []byte(j.text), 0o666)); err != nil {
		c.t.Fatal(err)
	}
	args := []string{"run", "-D", fmt.Sprintf("mapreduce.input.fileinputformat.split.maxsize=%d", splitBytes), c.Program("paced"),
		"-input", dir + "/in", "-output", j.out, "-trace", j.trace}
	if i := slices.Index(flags, "-gate"); i >= 0 {
		flags = slices.Replace(slices.Clone(flags), i, i+1, "-gate", j.gate)
	}
	j.run = c.mrsubmit(append(args, flags...)...)
	return j
}

// open lets the maps of a job with a gate go on.
func (j *job) open() {
	j.t.Helper()
	if err := os.WriteFile(j.gate, nil, 0o666); err != nil {
		j.t.Fatal(err)
	}
}

// traces lists the attempts of a kind of task that have begun or ended, as
// "<task>.<try>.<pid>".
func (j *job) traces(kind, what string) []string {
	files, _ := filepath.Glob(filepath.Join(j.trace, "*_"+kind+"_*."+what)) // the pattern is well-formed
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), "."+what)
	}
	return files
}

// began waits until so many attempts of a kind have begun.
func (j *job) began(kind string, n int) {
	j.t.Helper()
	j.waits(kind, "began", n)
}

func (j *job) waits(kind, what string, n int) {
	j.t.Helper()
	within(deadline, func() bool {
		select {
		case <-j.ended:
			return true
		default:
			return len(j.traces(kind, what)) >= n
		}
	})
	if got := len(j.traces(kind, what)); got < n {
		j.t.Fatalf("%d attempts of kind %s have %s, want %d\n%s", got, kind, what, n, j.stderr.String())
	}
}

// correct waits for the job's success and compares its output.
func (j *job) correct() {
	j.t.Helper()
	j.succeed()
	if got, want := parts(j.t, j.out), countWords(j.text); got != want {
		j.t.Errorf("%s: output differs: got %s, want %s", j.out, brief(got), brief(want))
	}
}

// once checks that no task was tried twice and that every attempt came to its end.
func (j *job) once(kind string) {
	j.t.Helper()
	began, ended := j.traces(kind, "began"), j.traces(kind, "ended")
	if !slices.Equal(began, ended) {
		j.t.Errorf("attempts did not all run to their end:\nbegan %v\nended %v", began, ended)
	}
	tasks := make(map[string]bool)
	for _, a := range began {
		task, _, _ := strings.Cut(a, ".")
		if tasks[task] {
			j.t.Errorf("%s ran twice: %v", task, began)
		}
		tasks[task] = true
	}
}

// splitBytes is the length of a split, one line of text.
const splitBytes = 128

// text makes so many lines of splitBytes each.
func text(lines int) string {
	r := rand.New(rand.NewPCG(7, uint64(lines)))
	var b strings.Builder
	for range lines {
		line := ""
		for len(line) < splitBytes-6 {
			line += fmt.Sprintf("w%d ", r.IntN(300))
		}
		fmt.Fprintf(&b, "%-*s\n", splitBytes-1, line)
	}
	return b.String()
}

// parts joins the part files of an output directory, in order of the words.
func parts(t *testing.T, output string) string {
	t.Helper()
	entries, err := os.ReadDir(output)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	success := false
	for _, e := range entries {
		switch {
		case e.Name() == "_SUCCESS":
			success = true
		case strings.HasPrefix(e.Name(), "part-"):
			content, err := os.ReadFile(filepath.Join(output, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, strings.SplitAfter(string(content), "\n")...)
		default:
			t.Errorf("%s holds %s", output, e.Name())
		}
	}
	if !success {
		t.Errorf("%s lacks _SUCCESS", output)
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// countWords is the oracle: what a single process would count.
func countWords(text string) string {
	counts := make(map[string]int)
	for w := range strings.FieldsSeq(text) {
		counts[w]++
	}
	var lines []string
	for _, w := range slices.Sorted(maps.Keys(counts)) {
		lines = append(lines, fmt.Sprintf("%s\t%d\n", w, counts[w]))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func brief(s string) string {
	if len(s) > 300 {
		return fmt.Sprintf("%q… (%d bytes)", s[:300], len(s))
	}
	return fmt.Sprintf("%q", s)
}

// interrupt sends a signal to a command.
func (r *run) interrupt(s syscall.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		r.t.Fatal(err)
	}
}
