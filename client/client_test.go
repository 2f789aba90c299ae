package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

// fakeCluster runs jobs one after the other.
type fakeCluster struct {
	jobTime     time.Duration // how long each job runs
	fail        string        // error of the first job
	noSubmit    error
	noKill      error
	watchBreaks bool // Watch ends before the jobs do
	watchEmpty  bool // Watch ends without a status
	killsHang   bool // killed jobs never end
	submitted   wire.Submission
	known       map[string][]wire.JobID // by the key of an earlier process

	mu     sync.Mutex
	killed map[wire.JobID]string
	wake   chan struct{}
}

func (c *fakeCluster) Submit(_ context.Context, sub wire.Submission) ([]wire.JobID, error) {
	if c.noSubmit != nil {
		return nil, c.noSubmit
	}
	c.submitted, c.killed, c.wake = sub, make(map[wire.JobID]string), make(chan struct{}, 10)
	var ids []wire.JobID
	for i := range sub.Plan.Jobs {
		ids = append(ids, wire.JobID{Start: 7, N: i + 1})
	}
	return ids, nil
}

func (c *fakeCluster) Find(_ context.Context, key string) ([]wire.JobID, error) {
	return c.known[key], nil
}

func (c *fakeCluster) Kill(_ context.Context, job wire.JobID, reason string) error {
	if c.noKill != nil {
		return c.noKill
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.killed[job] = reason
	c.wake <- struct{}{}
	return nil
}

func (c *fakeCluster) Watch(ctx context.Context, ids []wire.JobID) iter.Seq2[[]wire.JobStatus, error] {
	return func(yield func([]wire.JobStatus, error) bool) {
		if c.watchEmpty {
			return
		}
		jobs := make([]wire.JobStatus, len(ids))
		for i, id := range ids {
			jobs[i] = wire.JobStatus{ID: id, Name: c.submitted.Plan.Jobs[i].Name, State: wire.Waiting}
		}
		for i := range jobs {
			jobs[i].State = wire.Running
			if !yield(slices.Clone(jobs), nil) {
				return
			}
			select {
			case <-time.After(c.jobTime):
				jobs[i].State = wire.Succeeded
			case <-c.wake:
				jobs[i].State = wire.Killed
			case <-ctx.Done():
				yield(nil, ctx.Err())
				return
			}
			if c.watchBreaks {
				return
			}
			if jobs[i].State == wire.Killed && c.killsHang {
				<-ctx.Done()
				return
			}
			if i == 0 && c.fail != "" {
				jobs[i].State, jobs[i].Error = wire.Failed, c.fail
			}
			c.mu.Lock()
			if reason := c.killed[ids[i]]; jobs[i].State == wire.Killed {
				jobs[i].Error = reason
			}
			c.mu.Unlock()
			jobs[i].Elapsed = c.jobTime
			if !yield(slices.Clone(jobs), nil) {
				return
			}
		}
	}
}

// newFiles makes a file system with input files.
func newFiles(t *testing.T) dfs.FS {
	t.Helper()
	files := dfs.Mux{"mem": mem.New(64)}
	for _, dir := range []string{"mem://t/more/deep", "mem://t/in/_hidden", "mem://t/old"} {
		if err := files.MkdirAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"mem://t/in/a.txt", "mem://t/more/deep/b.log", "mem://t/in/_hidden/c.gz", "mem://t/in/[x]"} {
		if err := writeNew(files, name, []byte("text\n")); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func newSubmission(inputs ...string) *wire.Submission {
	return &wire.Submission{Plan: wire.Plan{Jobs: []wire.JobPlan{{
		Name: "wordcount", Inputs: []wire.InputPlan{{Paths: inputs}}, Output: "mem://t/out",
	}}}}
}

// run calls Run with a fake clock. Interrupts come at these times after the start.
func run(t *testing.T, cluster *fakeCluster, sub *wire.Submission, interrupts ...time.Duration) (code int, out string, files dfs.FS, took time.Duration) {
	t.Helper()
	files = newFiles(t)
	var text bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		giveUp := make(chan struct{})
		for i, after := range interrupts {
			time.AfterFunc(after, func() {
				if i > 0 {
					close(giveUp)
				}
				cancel(fmt.Errorf("%w interrupt", errSignal))
			})
		}
		start := time.Now()
		code = Run(ctx, Config{Cluster: cluster, FS: files, Staging: "mem://t/staging", Out: &text, GiveUp: giveUp}, sub)
		took = time.Since(start)
	})
	return code, text.String(), files, took
}

func stagingDirs(t *testing.T, files dfs.FS) int {
	t.Helper()
	entries, err := files.List("mem://t/staging")
	if err != nil {
		return 0
	}
	return len(entries)
}

func TestRun(t *testing.T) {
	newFlow := func() *wire.Submission {
		flow := newSubmission("mem://t/in")
		flow.Plan.Flow = "both"
		flow.Plan.Jobs = append(flow.Plan.Jobs, wire.JobPlan{Name: "sort", Inputs: []wire.InputPlan{{From: 1}}, Output: "mem://t/sorted"})
		return flow
	}
	for _, c := range []struct {
		name       string
		cluster    *fakeCluster
		sub        *wire.Submission
		interrupts []time.Duration
		code       int
		took       time.Duration
		want       []string // parts of the output
		staged     int      // staging directories at the end; a fake cluster removes none
	}{
		{"success", &fakeCluster{jobTime: 3 * time.Second}, newSubmission("mem://t/in"), nil, 0, 3 * time.Second,
			[]string{"job_7_0001 wordcount submitted\n", "wordcount succeeded after 3.0s\n", "output: mem://t/out\n"}, 1},
		{"flow", &fakeCluster{jobTime: time.Second}, newFlow(), nil, 0, 2 * time.Second,
			[]string{"job_7_0001 wordcount succeeded", "job_7_0002 sort succeeded", "output: mem://t/sorted\n"}, 1},
		{"flow that fails", &fakeCluster{jobTime: time.Second, fail: "boom"}, newFlow(), nil, 1, 2 * time.Second,
			[]string{"flow both failed: job_7_0001 wordcount failed\n"}, 1},
		{"failure", &fakeCluster{jobTime: time.Second, fail: "attempt_7_0001_m_000000_1000: boom\nlast words"}, newSubmission("mem://t/in"), nil, 1, time.Second,
			[]string{"wordcount failed after 1.0s\n    attempt_7_0001_m_000000_1000: boom\n    last words\n"}, 1},
		{"no submission", &fakeCluster{noSubmit: errors.New("no leader")}, newSubmission("mem://t/in"), nil, 1, 0,
			[]string{"error: no leader\n"}, 0},
		{"bad input", &fakeCluster{}, newSubmission("mem://t/none"), nil, 1, 0,
			[]string{"error: job wordcount: input: stat mem://t/none: file does not exist"}, 0},
		{"cluster goes silent", &fakeCluster{jobTime: time.Second, watchBreaks: true}, newSubmission("mem://t/in"), nil, 1, time.Second,
			[]string{"error: the cluster stopped reporting job_7_0001, which is running\n"}, 1},
		{"cluster reports nothing", &fakeCluster{watchEmpty: true}, newSubmission("mem://t/in"), nil, 1, 0,
			[]string{"error: the cluster reported no jobs\n"}, 1},
		{"interrupt", &fakeCluster{jobTime: time.Hour}, newSubmission("mem://t/in"), []time.Duration{time.Second}, 1, time.Second,
			[]string{"interrupted: killing", "wordcount killed after", "    reason: interrupted by its user\n"}, 1},
		{"second interrupt", &fakeCluster{jobTime: time.Hour, killsHang: true}, newSubmission("mem://t/in"), []time.Duration{time.Second, 5 * time.Second}, 1, 5 * time.Second,
			[]string{"interrupted: killing", "error: gave up waiting: job_7_0001 is running\n"}, 1},
		{"interrupt while committing", &fakeCluster{jobTime: 2 * time.Second, noKill: errors.New("job_7_0001 is committing")}, newSubmission("mem://t/in"),
			[]time.Duration{time.Second}, 0, 2 * time.Second, []string{"not killed: job_7_0001 is committing\n", "succeeded"}, 1},
		{"interrupt of the second job", &fakeCluster{jobTime: 2 * time.Second}, newFlow(), []time.Duration{3 * time.Second}, 1, 3 * time.Second,
			[]string{"job_7_0001 wordcount succeeded", "job_7_0002 sort killed"}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, out, files, took := run(t, c.cluster, c.sub, c.interrupts...)
			if code != c.code || took != c.took {
				t.Errorf("exit code %d after %v, want %d after %v", code, took, c.code, c.took)
			}
			for _, want := range c.want {
				if !strings.Contains(out, want) {
					t.Errorf("output lacks %q:\n%s", want, out)
				}
			}
			if n := stagingDirs(t, files); n != c.staged {
				t.Errorf("%d staging directories, want %d", n, c.staged)
			}
			if first := (wire.JobID{Start: 7, N: 1}); c.cluster.killed[first] != "" && strings.Contains(out, "wordcount succeeded") {
				t.Errorf("%v was killed after its end", first)
			}
		})
	}
}

// TestKillTexts: a program that ends its context is not said to be interrupted.
func TestKillTexts(t *testing.T) {
	for _, c := range []struct {
		cause        error
		note, reason string
	}{
		{fmt.Errorf("%w terminated", errSignal), "interrupted: killing the jobs; interrupt again to stop waiting", "interrupted by its user"},
		{context.DeadlineExceeded, "killing the jobs: context deadline exceeded", "killed by its client: context deadline exceeded"},
	} {
		if note, reason := killTexts(c.cause); note != c.note || reason != c.reason {
			t.Errorf("%v: note %q, reason %q", c.cause, note, reason)
		}
	}
}

// TestFlowFailed: the output names the job that stopped its flow.
func TestFlowFailed(t *testing.T) {
	id := func(n int) wire.JobID { return wire.JobID{Start: 7, N: n} }
	flow := wire.FlowID{Start: 7, N: 1}
	jobs := []wire.JobStatus{
		{ID: id(1), Flow: flow, Name: "a", State: wire.Succeeded},
		{ID: id(2), Flow: flow, Name: "b", State: wire.Killed, StoppedBy: id(3)},
		{ID: id(4), Flow: flow, Name: "d", State: wire.Killed, StoppedBy: id(3)},
		{ID: id(3), Flow: flow, Name: "c", State: wire.Killed},
	}
	for what, c := range map[string]struct {
		name string // name of the flow; empty: another process submitted it
		jobs []wire.JobStatus
		want string
	}{
		"own":                               {"both", jobs, "flow both killed: job_7_0003 c killed\n"},
		"others'":                           {"", jobs, "flow_7_0001 killed: job_7_0003 c killed\n"},
		"others', that job is not followed": {"", jobs[1:3], "flow_7_0001 killed: with job_7_0003\n"},
	} {
		var out strings.Builder
		s := &session{Config: Config{Out: &out}, sub: &wire.Submission{Plan: wire.Plan{Flow: c.name}}, jobs: c.jobs}
		if code := s.exitCode(nil); code != 1 || out.String() != c.want {
			t.Errorf("%s: exit code %d, output %q, want %q", what, code, out.String(), c.want)
		}
	}
}

// TestStagedSubmission: the staged file has the submission.
func TestStagedSubmission(t *testing.T) {
	cluster := &fakeCluster{jobTime: time.Second}
	sub := newSubmission("mem://t/more/./deep//b.log")
	sub.Program = wire.Program{Path: "file:///job", Args: []string{"-n", "3"}, Flags: map[string]string{"n": "3"}}
	_, _, files, _ := run(t, cluster, sub)
	f, err := files.Open(dfs.Join(cluster.submitted.Staging, wire.StagedSubmission))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	staged, err := wire.ReadStaged(f, "staged", cluster.submitted.Digest)
	if err != nil || len(cluster.submitted.Digest) == 0 {
		t.Fatal(err)
	}
	staged.Digest = cluster.submitted.Digest // the file cannot have its own
	if got, want := fmt.Sprintf("%+v", *staged), fmt.Sprintf("%+v", cluster.submitted); got != want || staged.Key == "" {
		t.Errorf("staged    %s\nsubmitted %s", got, want)
	}
	if got := staged.Plan.Jobs[0].Inputs[0].Paths[0]; got != "mem://t/more/deep/b.log" {
		t.Errorf("input staged as %s", got)
	}
}

func TestStageLeavesNothing(t *testing.T) {
	files := mem.New(64)
	if err := files.SetFaults("write /staging/** error=enospc"); err != nil {
		t.Fatal(err)
	}
	if err := Stage(files, "mem://t/staging", newSubmission()); err == nil || !strings.Contains(err.Error(), wire.StagedSubmission) {
		t.Errorf("staging on a full disk: %v", err)
	}
	if n := stagingDirs(t, files); n != 0 {
		t.Errorf("%d staging directories left", n)
	}
}

// TestTooLarge: a submission that clusters refuse is not staged.
func TestTooLarge(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*wire.Submission)
		want   string
	}{
		"jobs":  {func(s *wire.Submission) { s.Plan.Jobs = make([]wire.JobPlan, 1001) }, "error: submission too large: 1001 jobs, at most 1000"},
		"bytes": {func(s *wire.Submission) { s.Program.Args = []string{strings.Repeat("x", wire.MaxFrame)} }, "error: stage: submission too large: "},
	} {
		files, sub, text := newFiles(t), newSubmission("mem://t/in"), new(bytes.Buffer)
		c.change(sub)
		cluster := &fakeCluster{}
		if code := Run(t.Context(), Config{Cluster: cluster, FS: files, Staging: "mem://t/staging", Out: text}, sub); code != 1 || !strings.HasPrefix(text.String(), c.want) {
			t.Errorf("%s: exit code %d, %s", name, code, text)
		}
		if n := stagingDirs(t, files); n != 0 {
			t.Errorf("%s: %d staging directories", name, n)
		}
	}
}

func TestPrepare(t *testing.T) {
	for _, c := range []struct {
		input, output, file string
		faults              string
		want                error // nil with text: any error
		text                string
	}{
		{input: "mem://t/in/a.txt"},
		{input: "mem://t/in"},
		{input: "mem://t/in/*.txt"},
		{input: "mem://t/*/deep/?.log"},
		{input: "mem://t/i{n,m}/*"},
		{input: "mem://t/more", want: runtime.ErrInput, text: "mem://t/more/deep is a directory"},
		{input: "mem://t/in/[x]"},
		{input: "mem://t/in/_h*/c.gz"},
		{input: "mem://t/none", want: fs.ErrNotExist, text: "mem://t/none"},
		{input: "mem://t/in/*.csv", want: runtime.ErrInput, text: "no file matches mem://t/in/*.csv"},
		{input: "mem://t/none/*/x", want: runtime.ErrInput, text: "no file matches"},
		{input: "mem://t/*/c.gz", want: runtime.ErrInput, text: "no file matches"},
		{input: "mem://t*/x", text: "mem://t*/x"},
		{input: "mem://t/in/[a", text: "[ without ]"},
		{input: "gopher://t/in", want: dfs.ErrUnknownScheme, text: "gopher://"},
		{input: "mem://t/in", output: "gopher://t/out", want: dfs.ErrUnknownScheme, text: "gopher://"},
		{input: "", text: "empty path"},
		{input: "mem://t/in", output: "mem://t/old", want: runtime.ErrOutputExists, text: "mem://t/old"},
		{input: "mem://t/in", output: "mem://t/in/a.txt", want: runtime.ErrOutputExists, text: "mem://t/in/a.txt"},
		{input: "mem://t/in", file: "mem://t/none", text: `side file "stop": `},
		{input: "mem://t/in", file: "mem://t/in/a.txt"},
		{input: "mem://t/in/a.txt", faults: "open /in/** error=eacces", text: "a.txt"},
		{input: "mem://t/in", faults: "list /in error=eacces", text: "mem://t/in"},
		{input: "mem://t/in", faults: "stat /out error=timeout", text: "output: "},
	} {
		mux := newFiles(t).(dfs.Mux)
		memory := mux["mem"].(*mem.FS)
		if err := memory.SetFaults(c.faults); err != nil {
			t.Fatal(err)
		}
		sub := newSubmission(c.input)
		if c.output != "" {
			sub.Plan.Jobs[0].Output = c.output
		}
		if c.file != "" {
			sub.Plan.Jobs[0].Files = map[string]string{"stop": c.file}
		}
		err := Prepare(t.Context(), mux, &sub.Plan)
		switch {
		case c.text == "" && err != nil:
			t.Errorf("%+v: %v", c, err)
		case c.text != "" && (err == nil || !strings.Contains(err.Error(), c.text) || c.want != nil && !errors.Is(err, c.want)):
			t.Errorf("%+v: error %v, want %v naming %q", c, err, c.want, c.text)
		}
	}
	archive := newSubmission("mem://t/in")
	archive.Plan.Jobs[0].Files = map[string]string{"dict/": "mem://t/none"}
	if err := Prepare(t.Context(), newFiles(t), &archive.Plan); err == nil || !strings.Contains(err.Error(), `archive "dict": `) {
		t.Errorf("a missing archive: %v", err)
	}
	twice := newSubmission("mem://t/in")
	twice.Plan.Jobs = append(twice.Plan.Jobs, wire.JobPlan{Name: "other", Output: "mem://t/./out/"})
	if err := Prepare(t.Context(), newFiles(t), &twice.Plan); err == nil || !strings.Contains(err.Error(), "wordcount and other") {
		t.Errorf("two jobs with one output: %v", err)
	}
	if err := Prepare(t.Context(), newFiles(t), &wire.Plan{}); err == nil {
		t.Error("a plan without jobs was accepted")
	}
}
