package browser

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/integration/trial"
)

// directory has the files of all tests; programs has the programs below it.
var directory, programs string

// screenshots is the directory for a screenshot of each page; empty: none is kept.
var screenshots = flag.String("screenshots", "", "`directory` for a screenshot of each page, light, dark and narrow")

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	var err error
	if directory, err = os.MkdirTemp("", "quern-browser-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(directory)
	defer func() {
		closeBrowser()
		if shared.Cluster != nil {
			shared.open()
			shared.end()
			if err := shared.Close(); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
	}()
	return m.Run()
}

// build builds the programs once. The packages are those of the module around this one.
var build = sync.OnceValue(func() error {
	programs = filepath.Join(directory, "programs")
	if err := os.Mkdir(programs, 0o777); err != nil {
		return err
	}
	all := []string{"cmd/jobtracker", "cmd/tasktracker", "cmd/mrsubmit", trial.Stages}
	if len(processes.LinkBuilt(programs, all)) == 0 {
		return nil
	}
	return processes.BuildFrom(filepath.Join("..", ".."), programs, trial.Stages)
})

// world is a cluster of processes with jobs.
type world struct {
	*processes.Cluster
	dir  string
	gate string // file for which gated jobs wait
	runs []*trial.Run
}

// begin starts a cluster with this many daemons.
func begin(dir string, jobTrackers, taskTrackers int, flags ...string) (*world, error) {
	if err := build(); err != nil {
		return nil, err
	}
	w := &world{dir: dir, gate: filepath.Join(dir, "gate")}
	var err error
	w.Cluster, err = processes.Start(context.Background(), processes.Config{
		Programs: programs, Dir: dir, JobTrackers: jobTrackers, TaskTrackers: taskTrackers, MapSlots: 3, ReduceSlots: 2, JobTrackerFlags: flags,
	})
	return w, err
}

// start starts a cluster for one test.
func start(t *testing.T, jobTrackers, taskTrackers int) *world {
	t.Helper()
	if _, err := chromium(); errors.Is(err, errNoBrowser) {
		t.Skip(err)
	}
	w, err := begin(t.TempDir(), jobTrackers, taskTrackers)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.open()
		w.end()
		if t.Failed() {
			for _, d := range w.All() {
				t.Logf("== %s\n%s", d.ID, d.LastLines())
			}
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// open opens the gate of gated jobs.
func (w *world) open() { os.WriteFile(w.gate, nil, 0o666) } // an error means that the directory has gone

// tab starts mrsubmit ui, and opens its pages in a tab of their own.
func (w *world) tab(t *testing.T) *tab {
	t.Helper()
	return newTab(t, w.ui(t))
}

// ui starts mrsubmit ui for the test, and returns the address that it prints.
func (w *world) ui(t testing.TB) string {
	t.Helper()
	run := trial.Begin(t, w.Command(context.Background(), "mrsubmit", "ui", "-no-browser"))
	t.Cleanup(func() {
		run.TrySignal(syscall.SIGTERM)
		<-run.Ended
	})
	run.Await("the address of the pages", func() bool { return strings.Contains(run.Stdout.String(), "\n") })
	return strings.TrimSpace(run.Stdout.String())
}

// input writes files of lines, and returns their directory. Each file is the input of one map.
func (w *world) input(t testing.TB, name string, files ...int) string {
	t.Helper()
	dir := filepath.Join(w.dir, name)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for i, lines := range files {
		var text strings.Builder
		for line := range lines {
			fmt.Fprintf(&text, "line%d of %d the hot word the\n", line%7, i)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("part-%02d", i)), []byte(text.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

var outputs = make(chan int, 1) // has the number of the next output directory

func init() { outputs <- 1 }

// submit runs stages with a name. The run ends with the job.
func (w *world) submit(t testing.TB, name, input string, flags ...string) *trial.Run {
	t.Helper()
	n := <-outputs
	outputs <- n + 1
	var settings []string
	for len(flags) > 0 && flags[0] != "--" {
		settings, flags = append(settings, flags[0]), flags[1:]
	}
	if len(flags) > 0 {
		flags = flags[1:]
	}
	args := append([]string{"run", "-shared-local"}, settings...)
	args = append(args, w.Program("stages"), "-input", input, "-output", filepath.Join(w.dir, fmt.Sprint("out-", n)))
	run := trial.Begin(t, w.Command(context.Background(), "mrsubmit", append(args, append([]string{"-name", name}, flags...)...)...))
	w.runs = append(w.runs, run)
	return run
}

// end ends the clients that still run, and waits for them.
func (w *world) end() {
	for _, run := range w.runs {
		run.TrySignal(syscall.SIGKILL)
		<-run.Ended
	}
}

// listed is a job of mrsubmit list -json.
type listed struct{ ID, Name, State, Flow string }

func (w *world) list(t testing.TB) (jobs []listed) {
	t.Helper()
	out, err := w.Command(context.Background(), "mrsubmit", "list", "-json").Output()
	if err == nil {
		err = json.Unmarshal(out, &jobs)
	}
	if err != nil {
		t.Fatalf("mrsubmit list: %v\n%s", err, out)
	}
	return jobs
}

// awaitJob waits until a job of a run has a name and state, and returns its id.
func (w *world) awaitJob(t testing.TB, run *trial.Run, name, state string) (id string) {
	t.Helper()
	run.Await(name+" "+state, func() bool {
		for _, j := range w.list(t) {
			if j.Name == name && j.State == state {
				id = j.ID
				return true
			}
		}
		return false
	})
	return id
}

// hostile is the text of a job that attacks the pages; attack may be a job's name, which is a directory's too.
const (
	attack  = `<img src=x onerror="document.title='attacked'">`
	hostile = attack + `<script>document.title='attacked'</script>`
)

// jobs are the ids of the jobs of the shared world.
type jobs struct{ running, hostile, failed, done, other, flow string }

// shared is the world of the tests that change nothing, see cluster.
var shared struct {
	world
	jobs
	once sync.Once
	err  error
}

// theShared returns a cluster with jobs in all states: three ended runs of one name, a failed job, a running
// job with hostile texts, and a running flow.
func theShared(t *testing.T) (*world, *jobs) {
	t.Helper()
	if _, err := chromium(); errors.Is(err, errNoBrowser) {
		t.Skip(err)
	}
	shared.once.Do(func() {
		w, err := begin(filepath.Join(directory, "shared"), 1, 2)
		if shared.err = err; err != nil {
			return
		}
		shared.world = *w
		w = &shared.world
		small := w.input(t, "small", 3, 4, 2, 5)
		for range 3 {
			w.submit(t, "nightly", small, "--", "-shape", "nightly", "-D", "mapreduce.input.fileinputformat.split.maxsize=60", "-D", "mapreduce.job.reduces=3").Succeed()
		}
		prices := w.submit(t, "prices", small, "--", "-shape", "prices", "-fails", "prices", "-say", hostile)
		attacker := w.submit(t, attack, small, "-deadline", "5s", "--", "-shape", attack, "-say", hostile, "-gate", w.gate)
		flow := w.submit(t, "shop", small, "--", "-shape", "clicks; orders; joined from clicks,orders; report from joined; totals from joined", "-gate", w.gate)
		shared.running = w.awaitJob(t, flow, "clicks", "running")
		shared.hostile = w.awaitJob(t, attacker, attack, "running")
		shared.failed = w.awaitJob(t, prices, "prices", "failed")
		for _, j := range w.list(t) {
			switch {
			case j.Name == "nightly" && shared.done == "":
				shared.done = j.ID
			case j.Name == "nightly":
				shared.other = j.ID
			case j.Name == "clicks":
				shared.flow = j.Flow
			}
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return &shared.world, &shared.jobs
}
