package driver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/wire"
)

const sessions = "mem://t/sessions"

// fakeCluster runs each step at once: its result has _SUCCESS, and its counter is the number of runs.
type fakeCluster struct {
	fs       dfs.FS
	sessions string // empty: the constant
	mu       sync.Mutex
	runs     []string // definitions and parameters
	fail     error
	dies     bool                       // the driver dies before it gets the result of a step
	jobs     map[string][]wire.EndedJob // of all submissions, by key
}

func (c *fakeCluster) Sessions(*wire.Submission) (string, error) {
	return cmp.Or(c.sessions, sessions+"/"), nil
}

func (c *fakeCluster) Run(_ context.Context, sub *wire.Submission) ([]wire.EndedJob, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	step := sub.Program.Step
	c.runs = append(c.runs, step.Definition+string(step.Params))
	job := wire.EndedJob{ID: wire.JobID{Start: 1, N: len(c.runs)}, State: wire.Succeeded}
	if c.fail != nil {
		job.State, job.Error = wire.Failed, c.fail.Error()
		return c.ended(sub.Key, job)
	}
	job.Counters = wire.Counters{"g": {"runs": int64(len(c.runs))}}
	if err := c.fs.MkdirAll(step.Result); err != nil {
		return nil, err
	}
	if err := writeFile(c.fs, dfs.Join(step.Result, successName), nil); err != nil {
		return nil, err
	}
	return c.ended(sub.Key, job)
}

func (c *fakeCluster) ended(key string, job wire.EndedJob) ([]wire.EndedJob, error) {
	if c.jobs == nil {
		c.jobs = make(map[string][]wire.EndedJob)
	}
	c.jobs[key] = []wire.EndedJob{job}
	if c.dies {
		return nil, errors.New("the driver died")
	}
	return c.jobs[key], nil
}

func (c *fakeCluster) Find(_ context.Context, sub *wire.Submission) ([]wire.EndedJob, error) {
	return c.jobs[sub.Key], nil
}

// ran returns what has run since the last call.
func (c *fakeCluster) ran() string {
	runs := strings.Join(c.runs, " ")
	c.runs = nil
	return runs
}

func (c *fakeCluster) driver(session, program string) *Driver {
	return New(Config{
		Cluster: c, FS: c.fs, Session: session, Note: func(string) {},
		Program: func() (string, error) { return program, nil },
		Submission: func(step *wire.Step) (*wire.Submission, error) {
			copied := *step
			plan := wire.Plan{Jobs: []wire.JobPlan{{Name: step.Definition, Output: step.Result, Format: "binary"}}}
			return &wire.Submission{Plan: plan, Program: wire.Program{Step: &copied}}, nil
		},
	})
}

func (c *fakeCluster) left(t *testing.T) (names []string) {
	infos, err := c.fs.List(sessions)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range infos {
		names = append(names, dfs.Base(info.Name))
	}
	return names
}

// loop runs 2·n steps. Four of them have the same parameters.
func loop(t *testing.T, d *Driver, n int) (all []*Result) {
	t.Helper()
	for i := range 2 * n {
		r, err := d.Step(t.Context(), "step", fmt.Append(nil, i/4))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// TestStepsHaveOutput: each step has the program's output, so that task trackers can refuse it before the first job.
func TestStepsHaveOutput(t *testing.T) {
	c := &fakeCluster{fs: mem.New(1 << 20)}
	d := c.driver("", "p")
	d.Output = "mem://t/out"
	var outputs []string
	build := d.Submission
	d.Submission = func(step *wire.Step) (*wire.Submission, error) {
		outputs = append(outputs, step.Output)
		return build(step)
	}
	loop(t, d, 1)
	if len(outputs) < 2 || slices.ContainsFunc(outputs, func(o string) bool { return o != d.Output }) {
		t.Errorf("steps have the outputs %q", outputs)
	}
}

// TestResume: a driver that failed and starts again with its session runs only the steps that had not
// ended. Equal parameters are told apart by their number.
func TestResume(t *testing.T) {
	c := &fakeCluster{fs: mem.New(1 << 20)}
	first := c.driver("s", "p")
	before := loop(t, first, 2)
	if err := first.Drop(before[0]); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(true); err != nil {
		t.Fatal(err)
	}
	if got := c.ran(); got != "step0 step0 step0 step0" {
		t.Fatalf("ran %s", got)
	}
	second := c.driver("s", "p")
	after := loop(t, second, 3)
	if got := c.ran(); got != "step1 step1" {
		t.Errorf("started again, it ran %s", got)
	}
	for i := range before {
		if before[i].Dir != after[i].Dir || after[i].Counters.Get("g", "runs") != int64(i+1) {
			t.Errorf("step %d: %+v, before %+v", i, after[i], before[i])
		}
	}
	if err := second.Close(false); err != nil {
		t.Fatal(err)
	}
	if left := c.left(t); len(left) > 0 {
		t.Errorf("left after success: %q", left)
	}
}

// TestJobsGoOn: a driver dies while the cluster runs a step. Started again, it takes the step's result if the jobs
// succeed. If they fail, or the cluster does not know them any more, it runs the step again.
func TestJobsGoOn(t *testing.T) {
	for name, c := range map[string]struct {
		then func(*fakeCluster)
		ran  string
	}{
		"succeeds": {func(*fakeCluster) {}, "step0"},
		"fails": {func(c *fakeCluster) {
			for _, jobs := range c.jobs {
				jobs[0].State = wire.Failed
			}
		}, "step0 step0"},
		"unknown": {func(c *fakeCluster) { clear(c.jobs) }, "step0 step0"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &fakeCluster{fs: mem.New(1 << 20), dies: true}
			first := cluster.driver("s", "p")
			if _, err := first.Step(t.Context(), "step", []byte("0")); err == nil {
				t.Fatal("the first driver did not fail")
			}
			if err := first.Close(true); err != nil {
				t.Fatal(err)
			}
			c.then(cluster)
			cluster.dies = false
			for range 2 { // the second time, the step has a record
				d := cluster.driver("s", "p")
				r, err := d.Step(t.Context(), "step", []byte("0"))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := cluster.fs.Stat(dfs.Join(r.Dir, successName)); err != nil || r.Counters.Get("g", "runs") == 0 {
					t.Errorf("%+v, %v", r, err)
				}
				if err := d.Close(true); err != nil {
					t.Fatal(err)
				}
			}
			if got := cluster.ran(); got != c.ran {
				t.Errorf("ran %q, want %q", got, c.ran)
			}
		})
	}
}

// TestResultLost: a step runs again if others have removed its result.
func TestResultLost(t *testing.T) {
	c := &fakeCluster{fs: mem.New(1 << 20)}
	first := c.driver("s", "p")
	results := loop(t, first, 1)
	if err := errors.Join(first.Close(true), c.fs.RemoveAll(results[1].Dir)); err != nil {
		t.Fatal(err)
	}
	c.ran()
	again := loop(t, c.driver("s", "p"), 1)
	if got := c.ran(); got != "step0" || again[1].Dir == results[1].Dir {
		t.Errorf("ran %q, into %s", got, again[1].Dir)
	}
}

// TestOtherProgram: another build does not use a session.
func TestOtherProgram(t *testing.T) {
	c := &fakeCluster{fs: mem.New(1 << 20)}
	d := c.driver("s", "p")
	loop(t, d, 1)
	if err := d.Close(true); err != nil {
		t.Fatal(err)
	}
	_, err := c.driver("s", "q").Step(t.Context(), "step", []byte("0"))
	if err == nil || !strings.Contains(err.Error(), "session s was made by another build") {
		t.Errorf("%v", err)
	}
	loop(t, c.driver("s", "p"), 1) // the refused one has left it
}

// TestTemporary: a session without a name does not outlive its driver, and drivers do not share it.
func TestTemporary(t *testing.T) {
	c := &fakeCluster{fs: mem.New(1 << 20)}
	for _, failed := range []bool{false, true} {
		d := c.driver("", "p")
		loop(t, d, 1)
		if got := c.ran(); got != "step0 step0" {
			t.Errorf("ran %s", got)
		}
		if err := d.Close(failed); err != nil {
			t.Fatal(err)
		}
		if left := c.left(t); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
	}
}

// TestFailure: the error of a failed job names the definition and the job, and the step has no record.
func TestFailure(t *testing.T) {
	c := &fakeCluster{fs: mem.New(1 << 20), fail: errors.New("bad record")}
	d := c.driver("s", "p")
	_, err := d.Step(t.Context(), "step", []byte("0"))
	if err == nil || err.Error() != "run step: job_1_0001 failed: bad record" {
		t.Errorf("%v", err)
	}
	c.fail = nil
	if err := d.Close(true); err != nil {
		t.Fatal(err)
	}
	c.ran()
	if loop(t, c.driver("s", "p"), 1); c.ran() != "step0 step0" {
		t.Error("the failed step did not run again")
	}
}

// TestSticky: after a failed read of a result no step runs.
func TestSticky(t *testing.T) {
	c := &fakeCluster{fs: mem.New(1 << 20)}
	d := c.driver("", "p")
	failed := errors.New("read")
	d.Fail(failed)
	d.Fail(errors.New("later"))
	if _, err := d.Step(t.Context(), "step", []byte("0")); err != failed || d.Err() != failed || c.ran() != "" {
		t.Errorf("%v", err)
	}
}

// TestPlantedLinks: jobs of another user write in the results of a session. A link that they put there leads the driver
// to no other directory when it reads or drops a result and removes the session.
func TestPlantedLinks(t *testing.T) {
	top := t.TempDir()
	c := &fakeCluster{fs: local.New(), sessions: "file://" + top + "/sessions/ann~"}
	d := c.driver("s", "p")
	results := loop(t, d, 1)
	at, outside := top+"/sessions/ann~s/results", top+"/outside"
	err := os.Mkdir(outside, 0o700)
	for _, name := range []string{results[0].Dir, results[1].Dir} {
		path := strings.TrimPrefix(name, "file://")
		if filepath.Dir(path) != at {
			t.Fatalf("a result is in %s", path)
		}
		err = errors.Join(err, os.RemoveAll(path), os.Symlink(outside, path))
	}
	if err := errors.Join(err, os.WriteFile(outside+"/file", nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "/..", "/.", "/" + filepath.Base(results[0].Dir) + "/file", "/x/../../results", "-other/x"} {
		if err := d.Drop(&Result{Dir: "file://" + at + name}); err == nil || !strings.Contains(err.Error(), "does not belong to the session") {
			t.Errorf("drop results%s: %v", name, err)
		}
	}
	if f, err := d.Files(results[0].Dir).Open(results[0].Dir + "/file"); err == nil {
		t.Errorf("the driver has read %s", f.Info().Name)
	}
	if err := errors.Join(d.Drop(results[0]), d.Close(false)); err != nil {
		t.Error(err)
	}
	_, errSession := os.Stat(top + "/sessions/ann~s")
	if _, err := os.Stat(outside + "/file"); err != nil || !errors.Is(errSession, fs.ErrNotExist) {
		t.Errorf("outside of the session: %v; the session: %v", err, errSession)
	}
}
