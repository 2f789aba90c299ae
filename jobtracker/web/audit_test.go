package web

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/quernmr/quern/audit"
	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/wire"
)

// TestAudit: changes and refusals are recorded with who, what and outcome. Reads are not, and neither
// are requests that the leader will get.
func TestAudit(t *testing.T) {
	l := newFakeLog()
	f := &fake{log: l, id: "jt1"}
	l.setLeader(f)
	l.jobs = []wire.JobStatus{secretJob()}
	var events []audit.Event
	h := New(Config{Server: f, Voters: f, Identified: true, Admins: []string{"root"}, Audit: func(e audit.Event) { events = append(events, e) }})
	for _, c := range []struct {
		user, method, path, body string
		want                     audit.Event // From and Reason are checked below
	}{
		{"ann", "GET", "/v1/jobs/job_7_0001", "", audit.Event{}},
		{"bob", "GET", "/v1/jobs/job_7_0001", "", audit.Event{Who: "client bob", Action: "status", On: "job_7_0001", Outcome: audit.Refused}},
		{"bob", "GET", "/v1/jobs/job_7_0001/attempts", "", audit.Event{Who: "client bob", Action: "list attempts", On: "job_7_0001", Outcome: audit.Refused}},
		{"bob", "GET", "/v1/events?job=job_7_0001", "", audit.Event{Who: "client bob", Action: "watch", On: "job_7_0001", Outcome: audit.Refused}},
		{"bob", "GET", "/v1/jobs", "", audit.Event{}},
		{"bob", "GET", "/v1/jobs/job_7_0001?job=job_7_0002", "", audit.Event{}}, // it has no such parameter
		{"root", "POST", "/v1/jobs/job_7_0009/kill?job=job_7_0002", `{"reason": "late"}`, audit.Event{Who: "client root", Action: "kill", On: "job_7_0009", Outcome: audit.Failed}},
		{"root", "POST", "/v1/jobs/job_7_0009/kill", `{"reason": "late"}`, audit.Event{Who: "client root", Action: "kill", On: "job_7_0009", Detail: "late", Outcome: audit.Failed}},
		{"bob", "POST", "/v1/jobs/job_7_0001/attempts/attempt_7_0001_m_000000_1000/fail", `{"reason": "stuck"}`, audit.Event{Who: "client bob", Action: "fail attempt", On: "attempt_7_0001_m_000000_1000", Detail: "stuck", Outcome: audit.Done}},
		{"bob", "POST", "/v1/cluster/drains", `{"tracker": "t1"}`, audit.Event{Who: "client bob", Action: "drain", On: "t1", Detail: `{"tracker":"t1"}`, Outcome: audit.Refused}},
		{"root", "POST", "/v1/cluster/drains", `{"tracker": "t1"}`, audit.Event{Who: "client root", Action: "drain", On: "t1", Detail: `{"tracker":"t1"}`, Outcome: audit.Done}},
		{"root", "POST", "/v1/jobs/job_7_0009/kill", `{"reason": "late"}`, audit.Event{Who: "client root", Action: "kill", On: "job_7_0009", Detail: "late", Outcome: audit.Failed}},
		{"root", "POST", "/v1/cluster/scheduling", `{"scheduler": "fifo"}`, audit.Event{Who: "client root", Action: "change scheduling", Detail: `{"scheduler":"fifo"}`, Outcome: audit.Done}},
	} {
		events = nil
		r := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
		r.TLS = peerState(identity.Client, c.user)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if c.want == (audit.Event{}) {
			if len(events) > 0 {
				t.Errorf("%s %s by %s is recorded: %+v", c.method, c.path, c.user, events)
			}
			continue
		}
		if len(events) != 1 || events[0].From != r.RemoteAddr || (events[0].Reason == "") != (c.want.Outcome == audit.Done) {
			t.Errorf("%s %s by %s: %d %s, recorded %+v", c.method, c.path, c.user, w.Code, w.Body, events)
			continue
		}
		events[0].From, events[0].Reason = "", ""
		if events[0] != c.want {
			t.Errorf("%s %s by %s: recorded %+v, want %+v", c.method, c.path, c.user, events[0], c.want)
		}
	}
	events = nil
	l.setLeader(nil)
	r := httptest.NewRequest("POST", "/v1/jobs/job_7_0001/kill", strings.NewReader(`{}`))
	r.TLS = peerState(identity.Client, "root")
	h.ServeHTTP(httptest.NewRecorder(), r)
	if len(events) != 0 {
		t.Errorf("a follower has recorded %+v", events)
	}
}

// TestRefuse: a change that a page refuses, since another site wants it, is recorded, and does not happen.
func TestRefuse(t *testing.T) {
	l := newFakeLog()
	f := &fake{log: l, id: "jt1"}
	l.setLeader(f)
	var events []audit.Event
	h := New(Config{Server: f, Voters: f, Identified: true, Admins: []string{"root"}, Audit: func(e audit.Event) { events = append(events, e) }})
	r := httptest.NewRequest("POST", "/scheduler", strings.NewReader("scheduler=fifo"))
	r.TLS = peerState(identity.Client, "root")
	Refuse(h, r, "/v1/cluster/scheduling", errors.New("from another site"))
	if len(events) != 1 || events[0].Outcome != audit.Refused || events[0].Action != "change scheduling" || !strings.Contains(events[0].Reason, "another site") {
		t.Errorf("recorded %+v", events)
	}
}

// TestLongNames: a long name does not push the program's hash out of the audit log.
func TestLongNames(t *testing.T) {
	sub := submission("k1")
	sub.Plan.Flow, sub.Program.Hash = strings.Repeat("x", 5000), strings.Repeat("ab", 32)
	if text := wire.Truncate(describe(&sub), 1000); !strings.Contains(text, sub.Program.Hash) {
		t.Errorf("the log has %q", text)
	}
}
