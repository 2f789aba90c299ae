package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/mapreduce/streaming"
	"github.com/quernmr/quern/wire"
)

// jobMarker marks this test binary as a job file.
const jobMarker = "quern-job-protocol:2\n"

// TestMain makes this test binary a job program, which its flags control in plan mode, and mrsubmit
// if it has this name.
func TestMain(m *testing.M) {
	completePatience = time.Minute
	if filepath.Base(os.Args[0]) == "mrsubmit" {
		main()
	}
	if os.Getenv("QUERN_MODE") == "worker" { // of a streaming job
		code, _ := streaming.Serve()
		os.Exit(code)
	}
	if os.Getenv("QUERN_MODE") == "plan" {
		os.Exit(plan(os.Args[1:]))
	}
	os.Exit(m.Run())
}

func plan(args []string) int {
	sub := &wire.Submission{Program: wire.Program{Args: args}}
	job := wire.JobPlan{Name: "job", Properties: map[string]string{"marker": jobMarker}}
	for i := 0; i+1 < len(args); i += 2 {
		switch args[i] {
		case "-input":
			job.Inputs = []wire.InputPlan{{Paths: []string{args[i+1]}}}
		case "-output":
			job.Output = args[i+1]
		case "-D":
			name, value, _ := strings.Cut(args[i+1], "=")
			job.Properties[name] = value
		case "-exit":
			fmt.Fprintln(os.Stderr, "the job says why")
			return int(args[i+1][0] - '0')
		}
	}
	if len(args)%2 == 1 {
		fmt.Fprintln(os.Stderr, "Usage of job:")
		return 0
	}
	sub.Plan.Jobs = []wire.JobPlan{job}
	frame, err := wire.Append(nil, sub)
	if err != nil {
		panic(err)
	}
	os.NewFile(3, "plan").Write(frame)
	return 0
}

// recorder is a cluster on which every job ends at once with a given state.
type recorder struct {
	state      wire.State
	submission wire.Submission
}

func (r *recorder) Submit(_ context.Context, sub wire.Submission) ([]wire.JobID, error) {
	r.submission = sub
	return []wire.JobID{{Start: 7, N: 1}}, nil
}

func (r *recorder) Find(context.Context, string) ([]wire.JobID, error) { return nil, nil }

func (r *recorder) Kill(context.Context, wire.JobID, string) error { return nil }

func (r *recorder) Watch(_ context.Context, ids []wire.JobID) iter.Seq2[[]wire.JobStatus, error] {
	return func(yield func([]wire.JobStatus, error) bool) {
		yield([]wire.JobStatus{{ID: ids[0], Name: "job", State: r.state, Error: "the cluster says why"}}, nil)
	}
}

var _ client.Cluster = (*recorder)(nil)

// invocation is one call of mrsubmit, and its results.
type invocation struct {
	code           int
	stdout, stderr string
	cluster        recorder
	started        bool
	closed         bool
}

func submit(t *testing.T, env map[string]string, state wire.State, args ...string) *invocation {
	t.Helper()
	s := &invocation{cluster: recorder{state: state}}
	staging := t.TempDir()
	var stdout, stderr bytes.Buffer
	tool := &tool{
		stdout: &stdout,
		stderr: &stderr,
		getenv: func(name string) string {
			if name == "QUERN_INSECURE" && env["HOME"] == "" {
				return "1"
			}
			return env[name]
		},
		embedded: func(context.Context, *wire.Submission, bool) (*cluster, error) {
			if state == 0 {
				return nil, errors.New("no room")
			}
			s.started = true
			return &cluster{Cluster: &s.cluster, files: dfs.Mux{"file": local.New()}, staging: "file://" + staging,
				close: func() error { s.closed = true; return nil }}, nil
		},
	}
	s.code = tool.main(t.Context(), args)
	s.stdout, s.stderr = stdout.String(), stderr.String()
	if s.started != s.closed {
		t.Errorf("%q: cluster started: %v, closed: %v", args, s.started, s.closed)
	}
	return s
}

func TestCommandLine(t *testing.T) {
	t.Setenv("GORACE", "atexit_sleep_ms=0") // otherwise every process waits a second at its end
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ran := filepath.Join(dir, "ran")
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\ntouch "+ran+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	t.Chdir(dir)
	here, err := filepath.Rel(dir, exe)
	if err != nil {
		t.Fatal(err)
	}
	good := []string{"-input", script, "-output", filepath.Join(dir, "out")}
	for _, c := range []struct {
		args   []string
		state  wire.State
		code   int
		stdout string
		stderr string
	}{
		{nil, 0, 2, "", "  run           run a job and wait"},
		{[]string{"help"}, 0, 0, "  run           run a job and wait", ""},
		{[]string{"-h"}, 0, 0, "Run and change jobs:", ""},
		{[]string{"-version"}, 0, 0, "job protocol 2\n", ""},
		{[]string{"help", "help"}, 0, 0, "  run           run a job and wait", ""}, // an earlier build recursed forever
		{[]string{"-h", "-h"}, 0, 0, "  run           run a job and wait", ""},
		{[]string{"help", "run"}, 0, 0, "JOB is an executable", ""},
		{[]string{"run", "-h"}, 0, 0, "-D NAME=VALUE", ""},
		{[]string{"help", "walk"}, 0, 2, "", `unknown command "walk"`},
		{[]string{"list"}, 0, 2, "", "name the job trackers with -jobtracker or QUERN_JOBTRACKER; see mrsubmit list -h"},
		{[]string{"list", "-jobtracker", "here"}, 0, 2, "", `address "here" of a job tracker: want host:port`},
		{[]string{"list", "-jobtracker", "h:1", "more"}, 0, 2, "", `unexpected argument "more"`},
		{[]string{"status", "-jobtracker", "h:1"}, 0, 2, "", "too few arguments"},
		{[]string{"status", "-jobtracker", "h:1", "nonsense"}, 0, 2, "", `"nonsense" is not the id of a job or flow: mrsubmit list shows them`},
		{[]string{"kill", "-reasons", "x"}, 0, 2, "", "unknown flag -reasons (did you mean -reason?)"},
		{[]string{"logs", "-jobtracker", "h:1", "job_7_0001", "x"}, 0, 2, "", `"x" is not the id of a task or attempt`},
		{[]string{"logs", "-jobtracker", "h:1", "job_7_0001", "task_7_0002_m_000000"}, 0, 2, "", "task_7_0002_m_000000 does not belong to job_7_0001"},
		{[]string{"help", "logs"}, 0, 0, "-tail bytes", ""},
		{[]string{"help", "cluster"}, 0, 0, "mrsubmit cluster remove [-json] ID", ""},
		{[]string{"cluster", "drain", "-h"}, 0, 0, "usage: mrsubmit cluster drain [-wait] [-json] TRACKER\n\nTake a task tracker out of service without loss.\n\nThe task tracker", ""},
		{[]string{"fs", "-fs", "hdfs://n/dir", "-ls"}, 0, 2, "", `mrsubmit fs: -fs: file system "hdfs://n/dir": invalid argument: want a URL without a path`},
		{[]string{"fs", "-fs", "/", "-ls"}, 0, 2, "", "want a URL without a path"},
		{[]string{"fs", "-D", "a=b", "-ls"}, 0, 2, "", "mrsubmit fs: option -D of hadoop fs is not supported"},
		{[]string{"fs", "-Da=b", "-ls"}, 0, 2, "", "mrsubmit fs: option -Da=b of hadoop fs is not supported"},
		{[]string{"fs", "-fs=file:///", "-ls", "-d", "/"}, 0, 0, "drwx", ""},
		{[]string{"run"}, 0, 2, "", "no job is named"},
		{[]string{"run", "-pace", "x"}, 0, 2, "", "unknown flag -pace; see mrsubmit run -h"},
		{[]string{"run", "-Dmapred.reduce.tasks=2", "x"}, 0, 2, "", "unknown flag -Dmapred.reduce.tasks: write -D mapred.reduce.tasks=VALUE, with a blank"},
		{[]string{"run", "-D", "x", exe}, 0, 2, "", "want NAME=VALUE"},
		{[]string{"run", "-D", "=x", exe}, 0, 2, "", "want NAME=VALUE"},
		{[]string{"run", "-jobtracker", "h", exe}, 0, 2, "", `address "h" of a job tracker`},
		{[]string{"run", filepath.Join(dir, "none")}, 0, 1, "", "none: no such file"},
		{[]string{"run", script}, 0, 1, "", script + " is not executable: it is a script"},
		{[]string{"run", dir}, 0, 1, "", dir + " holds no Go main package"},
		{[]string{"run", exe, "-exit", "2"}, 0, 2, "", "the job says why\nmrsubmit run: " + exe + " refused its flags"},
		{[]string{"run", exe, "-exit", "3"}, 0, 1, "", "exit status 3"},
		{[]string{"run", exe, "-exit", "0"}, 0, 1, "", "never called mapreduce.Main"},
		{[]string{"run", exe, "-h"}, 0, 0, "", "Usage of job:"},
		{append([]string{"run", exe}, good...), 0, 1, "", "start embedded cluster: no room"},
		{append([]string{"run", exe}, good...), wire.Succeeded, 0, "", "job_7_0001 job succeeded"},
		{append([]string{"run", here}, good...), wire.Succeeded, 0, "", "job_7_0001 job succeeded"},
		{append([]string{"run", exe}, good...), wire.Failed, 1, "", "the cluster says why"},
		{[]string{"run", exe, "-input", dir + "/none", "-output", dir + "/out"}, wire.Succeeded, 1, "", "input: stat " + dir + "/none: no such file or directory"},
		{[]string{"run", exe, "-input", script, "-output", dir}, wire.Succeeded, 1, "", "output exists: file://" + dir},
		{[]string{"run", exe, "-input", "s3://x", "-output", dir}, wire.Succeeded, 1, "", `unknown file system "s3://"`},
	} {
		s := submit(t, nil, c.state, c.args...)
		if s.code != c.code || !strings.Contains(s.stdout, c.stdout) || !strings.Contains(s.stderr, c.stderr) {
			t.Errorf("%q: exit code %d, want %d\nstdout %q, want %q\nstderr %q, want %q", c.args, s.code, c.code, s.stdout, c.stdout, s.stderr, c.stderr)
		}
		if c.stdout == "" && s.stdout != "" {
			t.Errorf("%q wrote to standard output, which is the program's: %q", c.args, s.stdout)
		}
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a refused file was executed")
	}
	if leftover, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(leftover) > 0 {
		t.Errorf("left behind: %v, %v", leftover, err)
	}
}

// TestSubmission: the submission has the arguments, the program and clean paths.
func TestSubmission(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := submit(t, nil, wire.Succeeded, "run", "-D", "a=1", "-D", "b=x=y", exe, "-input", exe, "-output", dir+"/out", "-D", "a=2")
	if s.code != 0 {
		t.Fatalf("exit code %d: %s", s.code, s.stderr)
	}
	got := s.cluster.submission
	if want := "[-D a=1 -D b=x=y -input " + exe + " -output " + dir + "/out -D a=2]"; fmt.Sprint(got.Program.Args) != want {
		t.Errorf("arguments %v\nwant %s", got.Program.Args, want)
	}
	if got.Program.Path != "file://"+exe || got.Owner == "" || !strings.HasSuffix(got.Staging, got.Key) || got.Plan.Jobs[0].Output != "file://"+dir+"/out" {
		t.Errorf("submitted %+v", got)
	}
}

// TestIgnored: settings that a scheduler ignores are listed.
func TestIgnored(t *testing.T) {
	all := [][2]string{{"priority", "HIGH"}, {"weight", "2"}, {"deadline", "1h"}, {"sla", "1m=1"}, {"pool", "a"}}
	for _, c := range []struct{ scheduler, metric, want string }{
		{"flex", "sum-response", "priority weight deadline sla"},
		{"flex", "sum-tardiness-weighted", "sla"},
		{"flowflex", "sum-sla", "priority weight deadline"},
		{"fifo", "sum-response", "weight deadline sla"},
		{"fair", "sum-sla", "deadline sla"},
		{"srpt", "sum-response-weighted", "priority weight deadline sla"},
		{"of another version", "sum-response", ""},
		{"flex", "of another version", ""},
	} {
		got := strings.Join(ignored(all, web.Scheduling{Scheduler: c.scheduler, Metric: c.metric}), " ")
		if got != c.want {
			t.Errorf("%s, %s: %q, want %q", c.scheduler, c.metric, got, c.want)
		}
	}
	if got := ignored([][2]string{{"deadline", "none"}}, web.Scheduling{Scheduler: "fifo", Metric: "sum-response"}); got != nil {
		t.Errorf("deadline=none: %v", got)
	}
}

// TestSettings: flags override a job's properties. A deadline counts from the start of mrsubmit:
// building and uploading do not postpone it.
func TestSettings(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		flags, stderr string
		want          wire.Settings
	}{
		{"", "", wire.Settings{}},
		{"-D mapreduce.job.priority=very_high -D mapreduce.job.queuename=root.etl", "", wire.Settings{Priority: wire.VeryHigh, Pool: "etl"}},
		{"-D mapreduce.job.priority=2 -D mapreduce.job.queuename=default", "", wire.Settings{Priority: wire.Low}},
		{"-D mapreduce.job.priority=DEFAULT", "", wire.Settings{}},
		{"-D mapreduce.job.priority=HIGH -D mapreduce.job.queuename=a -priority low -pool b", "", wire.Settings{Priority: wire.Low, Pool: "b"}},
		{"-deadline 5m -weight 2.5 -sla 5m=1,10m=5 -batch nightly", "", wire.Settings{
			Deadline: 5 * time.Minute, Weight: 2.5, Batch: "nightly", SLA: []wire.SLAStep{{After: 5 * time.Minute, Cost: 1}, {After: 10 * time.Minute, Cost: 5}},
		}},
		{"-deadline -1s", "warning: the deadline has passed: the job is late", wire.Settings{Deadline: -time.Second}},
		{"-deadline 2001-01-01T00:00:00Z", "the job is late", wire.Settings{Deadline: -1}},
	} {
		args := append([]string{"run"}, strings.Fields(c.flags)...)
		before := time.Now()
		s := submit(t, nil, wire.Succeeded, append(args, exe, "-input", exe, "-output", t.TempDir()+"/out")...)
		got := s.cluster.submission.Settings
		earliest, latest := before.Add(c.want.Deadline).UnixMilli(), time.Now().Add(c.want.Deadline).UnixMilli()
		switch deadline := s.cluster.submission.DeadlineAt; {
		case c.want.Deadline == 0 && deadline != 0, c.want.Deadline == -1 && deadline != time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli():
			t.Errorf("%s: due at %d", c.flags, deadline)
		case c.want.Deadline != 0 && c.want.Deadline != -1 && (deadline < earliest || deadline > latest):
			t.Errorf("%s: due at %d, want %d to %d", c.flags, deadline, earliest, latest)
		}
		if c.want.Deadline == -1 && got.Deadline < -time.Hour {
			got.Deadline = -1
		}
		if s.code != 0 || !reflect.DeepEqual(got, c.want) || !strings.Contains(s.stderr, c.stderr) {
			t.Errorf("%s: exit code %d, settings %+v, want %+v: %s", c.flags, s.code, got, c.want, s.stderr)
		}
	}
	for flags, want := range map[string]string{
		"-priority URGENT":                   `invalid value "URGENT" for flag -priority: priority "URGENT": want one of VERY_LOW,`,
		"-deadline tomorrow":                 `deadline "tomorrow": want a duration`,
		"-weight -1":                         `weight "-1": want a number above 0`,
		"-weight NaN":                        `weight "NaN": want a number above 0`,
		"-sla 5m":                            `sla "5m": want TIME=COST`,
		"-D mapreduce.job.priority=WHENEVER": `property mapreduce.job.priority: priority "WHENEVER": want one of`,
	} {
		args := append([]string{"run"}, strings.Fields(flags)...)
		if s := submit(t, nil, wire.Succeeded, append(args, exe, "-input", exe, "-output", t.TempDir()+"/out")...); s.code != 2 || !strings.Contains(s.stderr, want) {
			t.Errorf("%s: exit code %d: %s\nwant %s", flags, s.code, s.stderr, want)
		}
	}
}

// TestPackageDirectory: run builds a package directory, and refuses programs that are not jobs,
// such as mrsubmit itself.
func TestPackageDirectory(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("GOWORK", "off")
	dir := t.TempDir()
	ran := filepath.Join(dir, "ran")
	for _, p := range []struct{ name, source string }{
		{"other", fmt.Sprintf("package main\n\nimport \"os\"\n\nfunc main() { os.WriteFile(%q, nil, 0o644) }\n", ran)},
		{"marked", fmt.Sprintf("package main\n\nimport \"os\"\n\nfunc main() { os.Stderr.WriteString(%q); os.Exit(4) }\n", jobMarker)},
		{"wrong", "package main\n\nfunc main() { missing() }\n"},
	} {
		sub := filepath.Join(dir, p.name)
		if err := os.Mkdir(sub, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"go.mod": "module example.com/" + p.name + "\n\ngo 1.26.0\n", "main.go": p.source} {
			if err := os.WriteFile(filepath.Join(sub, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	self, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, c := range []struct{ job, stderr string }{
		{"./other", "calls neither mapreduce.Main nor mapreduce.Drive"},
		{"marked", "ended without a plan: exit status 4"},
		{"./wrong", "undefined: missing"},
		{self, "this program is not a job"},
	} {
		s := submit(t, nil, wire.Succeeded, "run", c.job)
		if s.code != 1 || !strings.Contains(s.stderr, c.stderr) {
			t.Errorf("%s: exit code %d: %s\nwant %q", c.job, s.code, s.stderr, c.stderr)
		}
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a program that is no job was executed")
	}
	if leftover, err := filepath.Glob(os.Getenv("TMPDIR") + "/mrsubmit-*"); err != nil || len(leftover) > 0 {
		t.Errorf("left behind: %v, %v", leftover, err)
	}
}

func TestBuildInterrupted(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip(err)
	}
	self, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("got signal interrupt"))
	tool := &tool{stdout: io.Discard, stderr: new(bytes.Buffer), getenv: func(string) string { return "" }}
	if code := tool.main(ctx, []string{"run", self}); code != exitFailed || !strings.Contains(fmt.Sprint(tool.stderr), "got signal interrupt") {
		t.Errorf("exit code %d: %v", code, tool.stderr)
	}
}
