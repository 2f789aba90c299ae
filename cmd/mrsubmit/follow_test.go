package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/tasktracker/attemptlog"
	"github.com/quernmr/quern/wire"
)

// play is a job with attempts that write logs in steps: with each list of its attempts the next step begins.
type play struct {
	*fakeJobTracker
	mu    sync.Mutex
	steps []step
	now   step

	lists int
}

// step is the state of the job, and the logs of its attempts by "m0 stderr".
type step struct {
	attempts string // "m0=running m1=failed"
	logs     map[string]string
	ended    bool // the job has ended
	fails    bool // no leader answers
	down     bool // the task tracker does not answer
}

func (p *play) Attempts(_ context.Context, _ core.Caller, id wire.JobID, _ wire.AttemptID) (wire.JobAttempts, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.steps) > 0 {
		p.now, p.steps = p.steps[0], p.steps[1:]
	}
	p.lists++
	if p.now.fails {
		return wire.JobAttempts{}, fmt.Errorf("%w: the log is full", core.ErrUnknownTracker) // an error that is not final
	}
	all := wire.JobAttempts{Owner: "ann", Token: tokenOf(id.String())}
	for text := range strings.FieldsSeq(p.now.attempts) {
		name, state, _ := strings.Cut(text, "=")
		n, _ := strconv.Atoi(name[1:])
		a := wire.AttemptStatus{Attempt: wire.AttemptID{Task: wire.TaskID{Job: id, Kind: wire.Map, N: n}, N: 1000}, Tracker: "t1", Addr: p.addr}
		for s := wire.AttemptRunning; s <= wire.AttemptKilled; s++ {
			if s.String() == state {
				a.State = s
			}
		}
		all.Attempts = append(all.Attempts, a)
	}
	return all, nil
}

func (p *play) Changes(_ context.Context, ids []wire.JobID) iter.Seq2[[]wire.JobStatus, error] {
	p.mu.Lock()
	defer p.mu.Unlock()
	job := wire.JobStatus{ID: ids[0], Name: "words", State: wire.Running}
	if p.now.ended && p.lists > 0 || len(p.steps) == 0 {
		job.State = wire.Succeeded
	}
	err := error(nil)
	if ids[0].N != 1 {
		err = admission.ErrUnknownJob
	}
	return func(yield func([]wire.JobStatus, error) bool) { yield([]wire.JobStatus{job}, err) }
}

// serveLog serves logs as a task tracker does.
func (p *play) serveLog(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now.down {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			conn.Close()
		}
		return
	}
	parts := strings.Split(r.URL.Path, "/")
	id, _ := wire.ParseAttemptID(parts[3])
	text, ok := p.now.logs[fmt.Sprintf("m%d %s", id.Task.N, parts[4])]
	if !ok {
		http.NotFound(w, r)
		return
	}
	part, err := attemptlog.ParsePart(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set(attemptlog.EndHeader, strconv.Itoa(len(text)))
	io.WriteString(w, text[min(part.From, int64(len(text))):])
}

// follow runs mrsubmit logs -f.
func follow(t *testing.T, steps []step, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	p := &play{fakeJobTracker: newFake(t), steps: steps}
	api := web.New(web.Config{Server: p, Voters: p})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/logs/") {
			p.serveLog(w, r)
			return
		}
		api.ServeHTTP(w, r)
	}))
	defer server.Close()
	p.addr = server.Listener.Addr().String()
	var out, messages strings.Builder
	tool := &tool{stdout: &out, stderr: &messages, poll: time.Millisecond, getenv: func(name string) string {
		return map[string]string{"QUERN_JOBTRACKER": p.addr, "QUERN_INSECURE": "1"}[name]
	}}
	code = tool.main(t.Context(), append([]string{"logs", "-f"}, args...))
	return code, out.String(), strings.ReplaceAll(messages.String(), p.addr, "ADDR")
}

// TestFollow: logs -f prints what attempts write, each byte once.
func TestFollow(t *testing.T) {
	logs := func(texts ...string) map[string]string {
		all := make(map[string]string)
		for i := 0; i < len(texts); i += 2 {
			all[texts[i]] = texts[i+1]
		}
		return all
	}
	const head0, head1 = "==> attempt_7_0001_m_000000_1000 stderr on t1 <==\n", "==> attempt_7_0001_m_000001_1000 stderr on t1 <==\n"
	for _, c := range []struct {
		what   string
		args   string
		steps  []step
		code   int
		stdout string
		stderr string
	}{
		{"a log grows", "job_7_0001", []step{
			{attempts: "m0=running", logs: logs("m0 stderr", "a\n")},
			{attempts: "m0=running", logs: logs("m0 stderr", "a\nb\n")},
			{attempts: "m0=succeeded", logs: logs("m0 stderr", "a\nb\nc"), ended: true},
			{attempts: "m0=succeeded", logs: logs("m0 stderr", "a\nb\nc"), ended: true},
		}, 0, head0 + "a\nb\nc\n", "attempt_7_0001_m_000000_1000 stdout: tracker t1"},
		{"attempts that had ended are left out, and those that begin are not", "job_7_0001", []step{
			{attempts: "m0=failed", logs: logs("m0 stdout", "old\n")},
			{attempts: "m0=failed m1=running", logs: logs("m1 stderr", "new\n", "m1 stdout", "")},
			{attempts: "m0=failed m1=succeeded", logs: logs("m1 stderr", "new\n", "m1 stdout", ""), ended: true},
			{attempts: "m0=failed m1=succeeded", logs: logs("m1 stderr", "new\n", "m1 stdout", ""), ended: true},
		}, 0, head1 + "new\n", ""},
		{"a line that is not complete ends before the next log", "job_7_0001", []step{
			{attempts: "m0=running m1=running", logs: logs("m0 stderr", "a", "m0 stdout", "", "m1 stderr", "b\n", "m1 stdout", "")},
			{attempts: "m0=running m1=running", logs: logs("m0 stderr", "a2\n", "m0 stdout", "", "m1 stderr", "b\n", "m1 stdout", ""), ended: true},
		}, 0, head0 + "a\n" + head1 + "b\n" + head0 + "2\n", ""},
		{"one task, and its last lines", "-n 2 job_7_0001 task_7_0001_m_000000", []step{
			{attempts: "m0=failed m1=running", logs: logs("m0 stderr", "1\n2\n3\n", "m0 stdout", "", "m1 stderr", "no\n"), ended: true},
			{attempts: "m0=failed m1=running", logs: logs("m0 stderr", "1\n2\n3\n", "m0 stdout", "", "m1 stderr", "no\n"), ended: true},
		}, 0, head0 + "2\n3\n", ""},
		{"no leader, and then one", "job_7_0001", []step{
			{attempts: "m0=running", logs: logs("m0 stderr", "a\n", "m0 stdout", "")},
			{fails: true}, {fails: true},
			{attempts: "m0=running", logs: logs("m0 stderr", "a\nb\n", "m0 stdout", ""), ended: true},
		}, 0, head0 + "a\nb\n", "mrsubmit logs: unknown task tracker: the log is full; trying again\n"},
		{"the task tracker is lost", "job_7_0001", []step{
			{attempts: "m0=running", logs: logs("m0 stderr", "a\n", "m0 stdout", "")},
			{attempts: "m0=running", down: true}, {attempts: "m0=running", down: true},
			{attempts: "m0=killed m1=running", logs: logs("m1 stderr", "b\n", "m1 stdout", "")},
			{attempts: "m0=killed m1=succeeded", logs: logs("m1 stderr", "b\n", "m1 stdout", ""), ended: true},
		}, 0, head0 + "a\n" + head1 + "b\n", "mrsubmit logs: attempt_7_0001_m_000000_1000 stdout: tracker t1 at ADDR does not answer: EOF\n"},
		{"an unknown job", "job_7_0009", nil, 1, "", "mrsubmit logs: unknown job\n"},
		{"-json", "-json job_7_0001", nil, 2, "", "give -f or -json, not both"},
		{"a job that has ended", "job_7_0001", nil, 1, "", "no such attempt"},
	} {
		code, stdout, stderr := follow(t, c.steps, strings.Fields(c.args)...)
		if code != c.code || stdout != c.stdout || !strings.Contains(stderr, c.stderr) || c.stderr == "" && stderr != "" {
			t.Errorf("%s: exit code %d, want %d\nstdout %q\nwant   %q\nstderr %q\nwant   %q", c.what, code, c.code, stdout, c.stdout, stderr, c.stderr)
		}
	}
}

func TestLastLines(t *testing.T) {
	for text, want := range map[string]string{"": "", "a": "a", "a\nb\nc\n": "b\nc\n", "a\nb\nc": "b\nc", "\n\n\n": "\n\n"} {
		if got := string(lastLines(strings.NewReader(text), 2)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := string(lastLines(strings.NewReader("a\n"), 0)); got != "" {
		t.Errorf("no lines: %q", got)
	}
}
