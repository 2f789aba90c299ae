package web

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/quernmr/quern/groups"
	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
)

// secretJob is a job of ann, which vera and the group staff may see by its ACL, and poul and the group
// etlops as administrators of its pool.
func secretJob() wire.JobStatus {
	return wire.JobStatus{
		ID: job1, Flow: wire.FlowID(job1), Name: "secret name", Owner: "ann", State: wire.Failed, Error: "secret", Troubles: []string{"secret"},
		Counters: wire.Counters{"g": {"secret": 7}}, WaitReason: "for secret", GivenUpTasks: "secret", GivenUp: []string{"secret"},
		Settings: wire.Settings{Pool: "etl", Batch: "secret"}, Access: wire.Access{View: "vera,victor staff", Administrators: wire.ACL{Users: []string{"poul"}, Groups: []string{"etlops"}}},
		HotKeys: []wire.HotKey{{Key: "secret"}}, SlotTime: &wire.SlotTime{Uses: []wire.SlotTook{{Use: "secret"}}},
	}
}

// groupsOf returns a Config's Groups for a file's lines.
func groupsOf(t *testing.T, text string) func() *groups.Table {
	t.Helper()
	table, err := groups.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return func() *groups.Table { return table }
}

// TestEveryRouteHasARule walks all routes. Each states its rule, and each route that shows jobs
// shows nothing secret of a job to a user who may not see it.
func TestEveryRouteHasARule(t *testing.T) {
	l := newFakeLog()
	f := &fake{log: l, id: "jt1"}
	l.setLeader(f)
	l.jobs = []wire.JobStatus{secretJob()}
	h := &handler{Config: Config{Server: f}, counters: newCounters(Limits{}), refusals: new(refusals)}
	served := New(Config{
		Server: f, Identified: true, Admins: []string{"root"}, AdminGroups: []string{"wheel"},
		Groups: groupsOf(t, "staff:::gus\netlops:::gina\nwheel:::gert\nothers:::bob\n"),
	})
	may := map[string]bool{
		"ann": true, "root": true, "vera": true, "poul": true, "bob": false,
		"gus": true, "gina": true, "gert": true, "staff": false, "etlops": false, "wheel": false,
	}
	shows := 0
	for _, x := range h.routes() {
		if x.rule == "" || x.action == "" || len(x.roles) == 0 {
			t.Errorf("%s has no rule, no action or no role", x.pattern)
		}
		method, path, _ := strings.Cut(x.pattern, " ")
		if method != http.MethodGet || x.rule == everyDaemon {
			if x.rule == everyUser || x.rule == listed || x.rule == skipped || x.rule == viewers || x.rule == watchers {
				t.Errorf("%s changes something, but has the rule %q", x.pattern, x.rule)
			}
			continue
		}
		path = strings.ReplaceAll(path, "flows/{id}", "flows/"+wire.FlowID(job1).String())
		path = strings.ReplaceAll(path, "{id}", job1.String())
		if path == eventsPath {
			path += "?job=" + job1.String()
		}
		for user, allowed := range may {
			r := httptest.NewRequest(method, path, nil)
			r.TLS = peerState(identity.Client, user)
			w := httptest.NewRecorder()
			served.ServeHTTP(w, r)
			body := w.Body.String()
			refused := w.Code == http.StatusForbidden || strings.Contains(body, `"code":"forbidden"`)
			if strings.Contains(body, "secret") && !allowed {
				t.Errorf("%s tells %s: %s", x.pattern, user, body)
			}
			switch x.rule {
			case viewers, watchers:
				if refused == allowed {
					t.Errorf("%s by %s: refused is %v: %s", x.pattern, user, refused, body)
				}
				if !allowed && !strings.Contains(body, user+" cannot see job_7_0001, which is ann's: only ann or an administrator, or a user in mapreduce.job.acl-view-job can") {
					t.Errorf("%s by %s: %s", x.pattern, user, body)
				}
				shows++
			case listed:
				if refused || !strings.Contains(body, `"owner":"ann"`) || strings.Contains(body, `"hidden":true`) == allowed || !strings.Contains(body, `"pool":"etl"`) {
					t.Errorf("%s by %s: %s", x.pattern, user, body)
				}
				shows++
			case skipped:
				if refused || strings.Contains(body, job1.String()) != allowed {
					t.Errorf("%s by %s: %s", x.pattern, user, body)
				}
				shows++
			case admins:
				if admin := user == "root" || user == "gert"; refused == admin {
					t.Errorf("%s by %s: refused is %v: %s", x.pattern, user, refused, body)
				}
			case everyUser:
				if refused || strings.Contains(body, job1.String()) {
					t.Errorf("%s by %s: %s", x.pattern, user, body)
				}
			default:
				t.Errorf("%s shows something, but has the rule %q", x.pattern, x.rule)
			}
		}
	}
	if want := 14 * len(may); shows != want {
		t.Errorf("%d answers about jobs, want %d", shows, want)
	}
}

// TestListedJob: without certificates, all users see all jobs. A daemon sees no details.
func TestListedJob(t *testing.T) {
	s := secretJob()
	if j := listedJob(core.Caller{}, &s); j.Hidden || j.Name != s.Name {
		t.Errorf("without certificates: %+v", j)
	}
	j := listedJob(core.Caller{Name: "daemon jobtracker jt1"}, &s)
	if !j.Hidden || j.Name != "" {
		t.Errorf("a daemon sees %+v", j)
	}
	if back, err := j.Status(); err != nil || back.Owner != "ann" || back.State != wire.Failed {
		t.Errorf("a hidden job is read as %+v, %v", back, err)
	}
}

// TestTokenOfUser: each user gets another token for logs, and none gets the job's token.
func TestTokenOfUser(t *testing.T) {
	l := newFakeLog()
	f := &fake{log: l, id: "jt1"}
	l.setLeader(f)
	l.jobs = []wire.JobStatus{secretJob()}
	h := New(Config{Server: f, Identified: true})
	for _, user := range []string{"ann", "vera"} {
		r := httptest.NewRequest(http.MethodGet, "/v1/jobs/job_7_0001/attempts", nil)
		r.TLS = peerState(identity.Client, user)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if !strings.Contains(w.Body.String(), `"token":"`+wire.LogToken("secret", user)+`"`) {
			t.Errorf("%s gets %s", user, w.Body)
		}
	}
}

// TestGroupLeft: a user who leaves a group sees no more of a job, also in a watch that has begun.
func TestGroupLeft(t *testing.T) {
	l := newFakeLog()
	f := &fake{log: l, id: "jt1"}
	l.setLeader(f)
	job := secretJob()
	job.State = wire.Running
	l.jobs = []wire.JobStatus{job}
	in, out := groupsOf(t, "staff:::gus")(), groupsOf(t, "staff:::")()
	var now atomic.Pointer[groups.Table]
	now.Store(in)
	h := New(Config{Server: f, Identified: true, Admins: []string{"root"}, AdminGroups: []string{"wheel"}, Groups: now.Load})
	near, far := io.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		r := httptest.NewRequest(http.MethodGet, "/v1/events?job=job_7_0001", nil)
		r.TLS = peerState(identity.Client, "gus")
		h.ServeHTTP(&pipeWriter{far, make(http.Header)}, r)
		far.Close()
	}()
	lines := bufio.NewScanner(near)
	until := func(text string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), text) {
				return
			}
		}
		t.Errorf("the watch ended without %s", text)
	}
	until(`"name":"secret name"`)
	now.Store(out)
	l.change(func() { l.jobs[0].Name = "more secret" })
	for lines.Scan() {
		if strings.Contains(lines.Text(), "more secret") {
			t.Errorf("gus still sees %s", lines.Text())
		}
		if strings.Contains(lines.Text(), "gus cannot see job_7_0001") {
			break
		}
	}
	near.Close()
	<-served
	r := httptest.NewRequest(http.MethodPost, "/v1/cluster/drains", strings.NewReader(`{"tracker": "t1"}`))
	r.TLS = peerState(identity.Client, "gus")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "only administrators (root, group wheel) may") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// pipeWriter is a ResponseWriter. A test reads the lines while they are written.
type pipeWriter struct {
	*io.PipeWriter
	header http.Header
}

func (w *pipeWriter) Header() http.Header { return w.header }
func (w *pipeWriter) WriteHeader(int)     {}
func (w *pipeWriter) Flush()              {}
