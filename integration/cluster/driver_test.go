package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/integration/trial"
	"github.com/quernmr/quern/wire"
)

// small is a cluster of one job tracker and two task trackers.
func small(cfg *processes.Config) { cfg.JobTrackers, cfg.TaskTrackers = 1, 2 }

// TestDrivers: programs that drive jobs have the same results on a cluster as embedded.
func TestDrivers(t *testing.T) {
	c := start(t, small)
	c.checkDriver("pagerank", "a\tb c\nb\tc\nc\ta\nd\tc e\n")
	c.checkDriver("kmeans", "1 1\n9 9\n5 0\n1 2\n8 9\n6 1\n2 1\n9 8\n5 1\n")
	c.mrsubmit("run", "-detach", c.Program("driven"), "-input", c.dir).Fail(2, "-detach: the program drives jobs")
	graph := filepath.Join(c.dir, "graph")
	if err := os.WriteFile(graph, []byte("1\t2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	quiet := c.mrsubmit("run", "-quiet", c.Program("components"), "-input", graph, "-output", filepath.Join(c.dir, "quiet"))
	quiet.Succeed()
	if text := quiet.Stderr.String(); strings.Contains(text, "succeeded") || !strings.Contains(text, "round 1 changed") {
		t.Errorf("with -quiet: %s", text)
	}
	c.mrsubmit("run", c.Program("components"), "-input", graph).Fail(2, "no output directory: give -output")
	c.mrsubmit("run", c.Program("components"), "-input", graph, "-output", filepath.Join(c.dir, "quiet")).Fail(1, "output exists: file://")
	c.checkDriver("components", "1\t2\n3\t2\n7\t8\n3\t4\n9\t9\n8\t6\n")
}

// checkDriver runs an example on the cluster and embedded, and compares the numbers in the lines of -output.
func (c *cluster) checkDriver(example, input string) {
	c.t.Helper()
	in := filepath.Join(c.dir, example+"-in")
	if err := os.WriteFile(in, []byte(input), 0o600); err != nil {
		c.t.Fatal(err)
	}
	out, alone := filepath.Join(c.dir, example+"-out"), filepath.Join(c.dir, example+"-alone")
	c.mrsubmit("run", c.Program(example), "-input", in, "-output", out).Succeed()
	trial.Begin(c.t, exec.CommandContext(context.WithoutCancel(c.ctx), c.Program(example), "-input", in, "-output", alone, "-D", "quern.embedded.dir="+c.t.TempDir())).Succeed()
	got, want := c.numbers(out), c.numbers(alone)
	if len(got) == 0 || len(got) != len(want) {
		c.t.Fatalf("%s: %d lines on the cluster, %d embedded", example, len(got), len(want))
	}
	for key, numbers := range want {
		for i, number := range numbers {
			if len(got[key]) != len(numbers) || math.Abs(got[key][i]-number) > 1e-6*math.Max(1, math.Abs(number)) {
				c.t.Errorf("%s: %s has %v on the cluster, %v embedded", example, key, got[key], numbers)
			}
		}
	}
}

// numbers returns the numbers of each line of an output, by the first word.
func (c *cluster) numbers(out string) map[string][]float64 {
	c.t.Helper()
	all := make(map[string][]float64)
	for line := range strings.Lines(string(trial.JoinParts(trial.ReadParts(c.t, local.New(), "file://"+out)))) {
		words := strings.Fields(line)
		all[words[0]] = []float64{}
		for _, word := range words[1:] {
			if number, err := strconv.ParseFloat(word, 64); err == nil {
				all[words[0]] = append(all[words[0]], number)
			}
		}
	}
	return all
}

// TestDriverStops: when a driver is killed or interrupted, its running job is killed too. Started again with
// its session, it runs only the other steps. If mrsubmit dies too, the job goes on, and the next driver waits for it.
// The session is removed when the driver succeeds.
func TestDriverStops(t *testing.T) {
	c := start(t, small)
	in := filepath.Join(c.dir, "in")
	write := func(text string) {
		if err := os.WriteFile(in, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func() *trial.Run { return c.mrsubmit("run", c.Program("driven"), "-input", in, "-session", "s") }
	hangs := func(jobs int) func() bool {
		return func() bool {
			ids := c.submitted()
			return len(ids) == jobs && strings.Contains(c.mrsubmit("status", ids[jobs-1]).Succeed(), "1 running")
		}
	}
	write("a\nhang\n")
	killed := run()
	killed.Await("the third job", hangs(3))
	kill := func(pids ...int) {
		for _, pid := range pids {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		}
	}
	kill(processes.Children(killed.Pid())...)
	killed.Fail(1, "killed")
	gone := run()
	gone.Await("the third job again", hangs(4))
	gone.Signal(syscall.SIGSTOP) // or it sees the driver's end, and kills the job
	kill(append(processes.Children(gone.Pid()), gone.Pid())...)
	<-gone.Ended
	interrupted := run()
	interrupted.Await("the same job", func() bool { return strings.Contains(interrupted.Stderr.String(), c.submitted()[3]) })
	interrupted.Signal(os.Interrupt)
	interrupted.Fail(1, "got signal", "session s is kept for")
	list := c.mrsubmit("list").Succeed()
	if n := strings.Count(list, "killed"); n != 2 {
		t.Errorf("%d jobs were killed, want 2:\n%s", n, list)
	}
	write("b\n")
	printed := run().Succeed()
	if want := []string{"step 0 a", "step 1 hang", "step 2 b", "step 3 b"}; !trial.ContainsAll(printed, want) || strings.Contains(printed, "step 0 b") {
		t.Errorf("the driver printed\n%s", printed)
	}
	if n := len(c.submitted()); n != 6 {
		t.Errorf("%d jobs were submitted, want 6", n)
	}
}

// TestDriverLines: mrsubmit run -json prints a line for each change of a step's job, and a last line with the driver's exit code, on a
// cluster and embedded. The driver prints on standard error. Its error is also in the last line.
func TestDriverLines(t *testing.T) {
	c := start(t, small)
	in, temporary := c.file("in", "a\n"), t.TempDir()
	embedded := func(args ...string) *trial.Run {
		cmd := exec.CommandContext(c.ctx, filepath.Join(programs, "mrsubmit"), args...)
		cmd.Env = append(os.Environ(), "QUERN_JOBTRACKER=", "TMPDIR="+temporary)
		return trial.Begin(t, cmd)
	}
	for place, mrsubmit := range map[string]func(...string) *trial.Run{"cluster": c.mrsubmit, "embedded": embedded} {
		for input, exit := range map[string]int{in: 0, filepath.Join(c.dir, "missing"): 1} {
			run := mrsubmit("run", "-json", c.Program("driven"), "-input", input)
			if got := run.Exit(); got != exit {
				t.Errorf("%s: exit code %d, want %d\n%s", place, got, exit, run.Stderr.String())
			}
			succeeded := make(map[string]bool)
			lines := strings.Split(strings.TrimSuffix(run.Stdout.String(), "\n"), "\n")
			for i, text := range lines {
				var line struct {
					Final *bool
					Exit  *int
					Error string
					Jobs  []struct{ ID, Name, State string }
				}
				d := json.NewDecoder(strings.NewReader(text))
				if err := d.Decode(&line); err != nil || d.More() || line.Final == nil || line.Exit == nil || line.Jobs == nil {
					t.Fatalf("%s: line %q: %v", place, text, err)
				}
				last := i == len(lines)-1
				if *line.Final != last || last && *line.Exit != exit || (strings.Contains(line.Error, "missing")) != (last && exit != 0) {
					t.Errorf("%s: line %d of %d: %s", place, i, len(lines), text)
				}
				for _, job := range line.Jobs {
					if job.Name == "step" && job.State == "succeeded" {
						succeeded[job.ID] = true
					}
				}
			}
			if want := 4 * (1 - exit); len(succeeded) != want || exit == 0 && !strings.Contains(run.Stderr.String(), "step 3 a") {
				t.Errorf("%s: %d steps succeeded, want %d\n%s\n%s", place, len(succeeded), want, strings.Join(lines, "\n"), run.Stderr.String())
			}
		}
	}
	checkSweep(t, temporary, func() { embedded("run", "-json", c.Program("driven"), "-input", in).Succeed() })
}

// checkSweep checks that a driver of a client without a cluster removes an expired session.
func checkSweep(t *testing.T, temporary string, drive func()) {
	dirs, err := filepath.Glob(filepath.Join(temporary, "*", "sessions"))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("directories of sessions: %q, %v", dirs, err)
	}
	expired := filepath.Join(dirs[0], "expired")
	if err := os.MkdirAll(filepath.Join(expired, "results"), 0o700); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-wire.SessionLease - time.Hour)
	if err := os.Chtimes(expired, old, old); err != nil {
		t.Fatal(err)
	}
	drive()
	if _, err := os.Stat(expired); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the expired session is not removed: %v", err)
	}
}
