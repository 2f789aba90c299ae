package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/wire"
)

// TestOutputs: cat and ls find the outputs of jobs and paths, and leave out hidden files.
func TestOutputs(t *testing.T) {
	f := newFake(t)
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range map[string]string{"out/part-r-99999": "b\n", "out/part-r-100000": "c\n", "out/part-r-00007": "a\n", "out/_SUCCESS": "", "out/.part": "no", "out/more/part-r-00000": "d\n", "binary/part-r-00000": "x", "binary/_types": "string\tint64\n"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	flow := wire.FlowID{Start: 6, N: 40}
	for n, r := range map[int]history.Record{
		40: {Job: wire.JobStatus{State: wire.Succeeded, Flow: flow}},
		41: {Job: wire.JobStatus{State: wire.Succeeded, Flow: flow}, Plan: wire.JobPlan{Output: "file://" + dir + "/out"}},
		42: {Job: wire.JobStatus{State: wire.Failed}, Plan: wire.JobPlan{Output: "file://" + dir + "/out"}},
	} {
		r.Job.ID, r.Owner, r.Submitted, r.Ended = wire.JobID{Start: 6, N: n}, "me", 1, 60_001
		if err := history.Write(files(), history.Name(f.staging, time.UnixMilli(r.Ended), r.Job.ID), &r); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args   string
		code   int
		stdout string
		stderr string
	}{
		{"cat job_6_0041", 0, "a\nb\nc\n", ""},
		{"cat flow_6_0040", 0, "a\nb\nc\n", ""},
		{"cat job_6_0040", 1, "", "job_6_0040 has no output that is kept"},
		{"cat job_6_0042", 1, "", "job_6_0042 is failed: only a succeeded job has output"},
		{"cat job_7_0002", 1, "", "job_7_0002 is running: only a succeeded job has output"},
		{"cat -jobtracker= out/part-r-99999 DIR/out/more", 0, "b\nd\n", ""},
		{"cat -jobtracker= binary", 0, "x", "DIR/binary has binary records, not text: read them with mapreduce.Stored"},
		{"cat -jobtracker= missing", 1, "", "this machine cannot read file://DIR/missing: stat"},
		{"cat -jobtracker= job_6_0041", 2, "", "name the job trackers"},
		{"ls job_6_0042", 0, "BYTES  NAME\n-      file://DIR/out/more/\n2      file://DIR/out/part-r-00007\n2      file://DIR/out/part-r-99999\n2      file://DIR/out/part-r-100000\n", ""},
		{"ls job_7_0002", 1, "", "job_7_0002 is running: its output appears at its end"},
		{"ls -json -jobtracker= out/more", 0, "[\n  {\n    \"name\": \"file://DIR/out/more/part-r-00000\",\n    \"bytes\": 2\n  }\n]\n", ""},
		{"cat -json job_6_0041", 2, "", "cat prints files as they are"},
		{"ls", 2, "", "too few arguments: want [-json] JOB|FLOW|PATH…"},
	} {
		code, stdout, stderr := f.run(t, strings.Split(strings.ReplaceAll(c.args, "DIR", dir), " ")...)
		stdout, stderr = strings.ReplaceAll(stdout, dir, "DIR"), strings.ReplaceAll(stderr, dir, "DIR")
		if code != c.code || stdout != c.stdout || !strings.Contains(stderr, c.stderr) || c.stderr == "" && stderr != "" {
			t.Errorf("%s: exit code %d, want %d\nstdout %q\nwant   %q\nstderr %q\nwant   %q", c.args, code, c.code, stdout, c.stdout, stderr, c.stderr)
		}
	}
}

// inOrder reports whether text has the pieces of want in this order. "…" separates the pieces.
func inOrder(text, want string) bool {
	for piece := range strings.SplitSeq(want, "…") {
		_, after, ok := strings.Cut(text, piece)
		if !ok {
			return false
		}
		text = after
	}
	return true
}
