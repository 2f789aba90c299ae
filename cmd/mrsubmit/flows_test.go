package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/wire"
)

// TestFlows: with the id of a flow, commands that print show all its jobs. Commands that change
// send one request, for a job that can still be changed.
func TestFlows(t *testing.T) {
	f := newFake(t)
	flow := wire.FlowID{Start: 7, N: 5}
	for i, j := range []wire.JobStatus{
		{Name: "orders", State: wire.Succeeded},
		{Name: "sold", State: wire.Committing, Owner: "ann"},
		{Name: "answer", State: wire.Waiting, WaitReason: "for job_7_0006"},
	} {
		j.ID, j.Flow = wire.JobID{Start: 7, N: 5 + i}, flow
		f.jobs = append(f.jobs, j)
	}
	f.jobs[len(f.jobs)-3].Counters = wire.Counters{"G": {"RECORDS": 5}}
	// Flow 6_0010 lacks the history of its second job. Flow 6_0020 has a damaged history. In flow
	// 7_0005, which the cluster knows, the first job has a history already.
	for _, j := range []wire.JobStatus{
		{ID: wire.JobID{Start: 6, N: 10}, Name: "old a", State: wire.Succeeded, Flow: wire.FlowID{Start: 6, N: 10}},
		{ID: wire.JobID{Start: 6, N: 12}, Name: "old c", State: wire.Failed, Flow: wire.FlowID{Start: 6, N: 10}},
		{ID: wire.JobID{Start: 6, N: 20}, Name: "torn a", State: wire.Succeeded, Flow: wire.FlowID{Start: 6, N: 20}},
		{ID: wire.JobID{Start: 6, N: 22}, Name: "torn c", State: wire.Succeeded, Flow: wire.FlowID{Start: 6, N: 20}},
		{ID: wire.JobID{Start: 6, N: 23}, Name: "other", State: wire.Succeeded},
		{ID: wire.JobID{Start: 6, N: 30}, Name: "far a", State: wire.Succeeded, Flow: wire.FlowID{Start: 6, N: 30}},
		{ID: wire.JobID{Start: 7, N: 5}, Name: "orders", State: wire.Succeeded, Flow: flow},
	} {
		past := &history.Record{Job: j, Owner: "me", Token: tokenOf(j.ID.String()), Submitted: 1, Ended: 60_001}
		if err := history.Write(files(), history.Name(f.staging, time.UnixMilli(past.Ended), j.ID), past); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []wire.JobID{{Start: 6, N: 21}, {Start: 6, N: 24}} { // job 6_0024 belongs to no flow of this test
		damaged := strings.TrimPrefix(history.Name(f.staging, time.UnixMilli(60_001), id), "file://")
		if err := os.WriteFile(damaged, []byte("torn"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// The second history of flow 6_0030 cannot be opened.
	unreadable := strings.TrimPrefix(history.Name(f.staging, time.UnixMilli(60_001), wire.JobID{Start: 6, N: 31}), "file://")
	if err := os.Symlink(unreadable, unreadable); err != nil {
		t.Fatal(err)
	}
	const symlinkError = "read history: open …/job_6_0031: too many levels of symbolic links\n"
	const damagedError = "job_6_0021, which may belong to flow_6_0020: read history …/job_6_0021: not a job's history"
	for _, c := range []struct {
		args   string
		code   int
		stdout string // pieces in this order, separated by "…"
		stderr string
	}{
		{"list", 0, "OWNER  FLOW…NAME\nflow_7_0005  running…0/0…-…(flow, 1 of 3 jobs have ended)\njob_7_0007…-…flow_7_0005  answer\n…job_7_0006…ann…flow_7_0005  sold\n…job_7_0001…ann…-…words\n", ""},
		{"list -flow flow_7_0005 -state waiting,committing", 0, "NAME\nflow_7_0005  running…0 of 2…\njob_7_0007…\njob_7_0006…sold\n", ""},
		{"list -flow flow_7", 2, "", "-flow: not an id of a flow: \"flow_7\""},
		{"list -json", 0, `"id": "job_7_0005"…"flow": "flow_7_0005"`, ""},
		{"status flow_7_0005", 0, "job_7_0005 orders  succeeded…of flow_7_0005\njob_7_0006 sold  committing its output…of flow_7_0005\nowner ann\njob_7_0007 answer  waiting for job_7_0006…of flow_7_0005\n", ""},
		{"status job_7_0007", 0, "job_7_0007 answer…of flow_7_0005\n", ""},
		{"status -json flow_7_0005", 0, `[…"id": "job_7_0005"…"id": "job_7_0006"…"id": "job_7_0007"…"flow": "flow_7_0005"…]`, ""},
		{"status flow_7_0001", 1, "", "mrsubmit status: flow_7_0001: unknown job: no job of this flow is known\n"},
		{"status flow_7_5", 2, "", `"flow_7_5" is not the id of a job or flow`},
		{"wait flow_7_0005 job_7_0005", 0, "", "job_7_0005 orders succeeded\n…job_7_0006 sold succeeded…job_7_0007 answer succeeded"},
		{"kill -reason why flow_7_0005", 0, "", ""},
		{"suspend flow_7_0005", 0, "", ""},
		{"resume -json flow_7_0005", 0, "{…\"resumed\": [\n    \"job_7_0007\"\n  ]", ""},
		{"set flow_7_0005 weight=2", 0, "job_7_0007 ", ""},
		{"history flow_7_0005", 1, "job_7_0005 orders  succeeded…owner me", "mrsubmit history: job_7_0006 has no history…mrsubmit history: job_7_0007 has no history"},
		{"history flow_6_0010", 0, "job_6_0010 old a  succeeded…owner me…job_6_0012 old c  failed…owner me", ""},
		{"history -json flow_6_0010", 0, `[…"id": "job_6_0010"…"id": "job_6_0012"…]`, ""},
		{"history -jobtracker  -staging STAGING flow_6_0010", 0, "job_6_0010 old a…job_6_0012 old c", ""},
		{"history flow_6_0020", 1, "job_6_0020 torn a…job_6_0022 torn c", "mrsubmit history: " + damagedError},
		{"history -json flow_6_0020", 1, `[…"id": "job_6_0020"…"id": "job_6_0022"…]`, damagedError},
		{"history flow_6_0011", 1, "", "flow_6_0011: unknown job: no job of this flow is known"},
		{"kill flow_6_0010", 1, "", "job_6_0012: the job has ended"},
		{"counters flow_7_0005", 0, "job_7_0005 orders\nGROUP…RECORDS  5\njob_7_0006 sold\nGROUP…job_7_0007 answer\n", ""},
		{"counters -json flow_7_0005", 0, `"job_7_0005": {…"RECORDS": 5…"job_7_0006": {}`, ""},
		{"counters flow_6_0010", 0, "job_6_0010 old a\nGROUP…job_6_0012 old c\n", ""},
		{"counters flow_6_0020", 1, "job_6_0020 torn a\nGROUP…job_6_0022 torn c\nGROUP", "mrsubmit counters: " + damagedError},
		{"counters -json flow_6_0020", 1, `"job_6_0020": {…"job_6_0022": {`, damagedError},
		{"status flow_6_0020", 1, "job_6_0020 torn a…job_6_0022 torn c", "mrsubmit status: " + damagedError},
		{"kill flow_6_0020", 1, "", damagedError + "…job_6_0022: the job has ended"},
		{"history flow_6_0021", 1, "", "mrsubmit history: job_6_0021, which may belong to flow_6_0021…flow_6_0021: unknown job"},
		{"history flow_6_0030", 1, "", "mrsubmit history: list histories: " + symlinkError},
		{"history -json flow_6_0030", 1, "", "mrsubmit history: list histories: " + symlinkError},
		{"counters flow_6_0030", 1, "", "mrsubmit counters: list histories: " + symlinkError},
		{"status flow_6_0030", 1, "", "mrsubmit status: list histories: " + symlinkError},
		{"kill flow_6_0030", 1, "", "mrsubmit kill: list histories: " + symlinkError},
		{"history job_6_0031", 1, "", "mrsubmit history: history of job_6_0031: " + symlinkError},
		{"status job_6_0031", 1, "", "mrsubmit status: job_6_0031: unknown job; " + symlinkError},
		{"status job_6_0021", 1, "", "mrsubmit status: job_6_0021: unknown job; read history …/job_6_0021: not a job's history"},
		{"history -jobtracker= -staging STAGING/nowhere flow_6_0010", 1, "", "mrsubmit history: this machine cannot read staging directory STAGING/nowhere: stat "},
		{"history -jobtracker= -staging STAGING/nowhere job_6_0010", 1, "", "mrsubmit history: this machine cannot read staging directory STAGING/nowhere: stat "},
		{"history", 0, "job_6_0030…far a…job_6_0023…other…job_6_0022…torn c", "mrsubmit history: " + symlinkError + "…mrsubmit history: read history …/job_6_0024: not a job's history…/job_6_0021"},
		{"explain flow_7_0005", 0, "job_7_0005 orders: succeeded…job_7_0006 sold: committing…job_7_0007 answer: waiting", ""},
		{"explain -json flow_7_0005", 0, `[…"job": "job_7_0005"…"job": "job_7_0007"…]`, ""},
		{"logs flow_7_0005", 0, "==> attempt_7_0005_…==> attempt_7_0006_…==> attempt_7_0007_", ""},
		{"logs flow_7_0005 task_7_0006_m_000000", 0, "==> attempt_7_0006_m_000000", "no such log"},
		{"logs flow_7_0005 task_7_0002_m_000000", 2, "", "task_7_0002_m_000000 does not belong to flow_7_0005"},
		{"logs -json flow_7_0005", 0, `"id": "attempt_7_0005_…"id": "attempt_7_0006_…"id": "attempt_7_0007_`, ""},
	} {
		args := strings.Split(strings.ReplaceAll(c.args, "STAGING", f.staging), " ")
		code, stdout, stderr := f.run(t, args...)
		if code != c.code || !inOrder(stdout, c.stdout) || !inOrder(strings.ReplaceAll(stderr, f.staging, "STAGING"), c.stderr) || c.stderr == "" && stderr != "" {
			t.Errorf("%s: exit code %d, want %d\nstdout %s\nwant   %s\nstderr %s\nwant   %s", c.args, code, c.code, stdout, c.stdout, stderr, c.stderr)
		}
	}
	if want := []string{"job_7_0007 why"}; !slices.Equal(f.killed, want) {
		t.Errorf("killed %q, want %q", f.killed, want)
	}
	if want := []string{`job_7_0007 {"suspended":true}`, `job_7_0007 {"suspended":false}`, `job_7_0007 {"weight":2}`}; !slices.Equal(f.changed, want) {
		t.Errorf("changed %q, want %q", f.changed, want)
	}
}

// TestClosedOutput: if the reader of its output is closed, a command ends without a message.
func TestClosedOutput(t *testing.T) {
	f := newFake(t)
	f.jobs[0].Flow = wire.FlowID{Start: 7, N: 1}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r.Close()
	for args, want := range map[string]int{
		"wait -json job_7_0003": exitFailed, "kill -json job_7_0002 job_7_0001": exitFailed, "set -json job_7_0002 weight=2": exitBrokenPipe,
	} {
		if code, _ := f.runClosed(t, args, w); code != want {
			t.Errorf("%s: exit code %d, want %d: the result of the jobs counts", args, code, want)
		}
	}
	for _, args := range []string{
		"list", "list -json", "status job_7_0001", "counters job_7_0001", "counters flow_7_0001", "explain job_7_0002", "explain", "logs job_7_0002",
		"logs -json job_7_0002", "history", "history job_6_0009", "cluster", "cluster -json", "wait -json job_7_0001", "kill -json job_7_0002",
	} {
		if code, stderr := f.runClosed(t, args, w); code != exitBrokenPipe || strings.Contains(stderr, "mrsubmit") {
			t.Errorf("%s: exit code %d, want %d; stderr %q", args, code, exitBrokenPipe, stderr)
		}
	}
}

// runClosed runs a command with a closed pipe as its standard output.
func (f *fakeJobTracker) runClosed(t *testing.T, args string, to *os.File) (code int, stderr string) {
	var messages bytes.Buffer
	tool := &tool{stdout: resultWriter{to}, stderr: &messages, getenv: func(name string) string {
		return map[string]string{"QUERN_JOBTRACKER": f.addr, "QUERN_INSECURE": "1"}[name]
	}}
	code = tool.main(t.Context(), strings.Fields(args))
	return code, messages.String()
}

// TestChangeLastJob: a change of a flow is sent for its last job, since earlier jobs may end before
// the request arrives.
func TestChangeLastJob(t *testing.T) {
	f := newFake(t)
	flow := wire.FlowID{Start: 7, N: 5}
	for i, state := range []wire.State{wire.Succeeded, wire.Running, wire.Waiting, wire.Waiting} {
		f.jobs = append(f.jobs, wire.JobStatus{ID: wire.JobID{Start: 7, N: 5 + i}, Flow: flow, Name: "j", State: state})
	}
	for _, args := range []string{"kill -reason why flow_7_0005", "suspend flow_7_0005", "set flow_7_0005 weight=2"} {
		if code, _, stderr := f.run(t, strings.Fields(args)...); code != 0 {
			t.Errorf("%s: exit code %d\n%s", args, code, stderr)
		}
	}
	if want := []string{"job_7_0008 why"}; !slices.Equal(f.killed, want) {
		t.Errorf("killed %q, want %q", f.killed, want)
	}
	if want := []string{`job_7_0008 {"suspended":true}`, `job_7_0008 {"weight":2}`}; !slices.Equal(f.changed, want) {
		t.Errorf("changed %q, want %q", f.changed, want)
	}
}
