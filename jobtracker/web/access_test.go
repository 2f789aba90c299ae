package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
)

// secretJob is a job of ann, which vera may see by its ACL and poul as administrator of its pool.
func secretJob() wire.JobStatus {
	return wire.JobStatus{
		ID: job1, Name: "secret name", Owner: "ann", State: wire.Failed, Error: "secret", Troubles: []string{"secret"},
		Counters: wire.Counters{"g": {"secret": 7}}, WaitReason: "for secret", GivenUpTasks: "secret", GivenUp: []string{"secret"},
		Settings: wire.Settings{Pool: "etl", Batch: "secret"}, Access: wire.Access{View: "vera,victor", Administrators: []string{"poul"}},
	}
}

// TestEveryRouteHasARule walks all routes. Each states its rule, and each route that shows jobs
// shows nothing secret of a job to a user who may not see it.
func TestEveryRouteHasARule(t *testing.T) {
	l := newFakeLog()
	f := &fake{log: l, id: "jt1"}
	l.setLeader(f)
	l.jobs = []wire.JobStatus{secretJob()}
	h := &handler{Config: Config{Server: f}, counters: newCounters(Limits{}), refusals: new(refusals)}
	served := New(Config{Server: f, Identified: true, Admins: []string{"root"}})
	may := map[string]bool{"ann": true, "root": true, "vera": true, "poul": true, "bob": false}
	shows := 0
	for _, x := range h.routes() {
		if x.rule == "" || x.action == "" || len(x.roles) == 0 {
			t.Errorf("%s has no rule, no action or no role", x.pattern)
		}
		method, path, _ := strings.Cut(x.pattern, " ")
		if method != http.MethodGet || x.rule == everyDaemon {
			if x.rule == everyUser || x.rule == listed || x.rule == skipped || x.rule == viewers {
				t.Errorf("%s changes something, but has the rule %q", x.pattern, x.rule)
			}
			continue
		}
		path = strings.ReplaceAll(path, "{id}", job1.String())
		if strings.HasSuffix(path, "/watch") {
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
			case viewers:
				if refused == allowed {
					t.Errorf("%s by %s: refused is %v: %s", x.pattern, user, refused, body)
				}
				if !allowed && !strings.Contains(body, "bob cannot see job_7_0001, which is ann's: only ann or an administrator, or a user in mapreduce.job.acl-view-job can") {
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
			case everyUser:
				if refused || strings.Contains(body, job1.String()) {
					t.Errorf("%s by %s: %s", x.pattern, user, body)
				}
			default:
				t.Errorf("%s shows something, but has the rule %q", x.pattern, x.rule)
			}
		}
	}
	if want := 6 * len(may); shows != want {
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
