package web

import (
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/wire"
)

// TestHistories: the client reads the history of a job, of a flow, and pages of a list until it has enough.
func TestHistories(t *testing.T) {
	f, c := startOne(t)
	sub := submission("k")
	sub.Plan.Jobs = make([]wire.JobPlan, 3)
	ids, err := f.Submit(t.Context(), core.Caller{Name: "ann"}, sub)
	if err != nil {
		t.Fatal(err)
	}
	flow := wire.FlowID{Start: 7, N: 1}
	f.log.change(func() { f.log.jobs[0].Flow, f.log.jobs[2].Flow = flow, flow })
	h, err := c.History(t.Context(), ids[1])
	if err != nil || h.ID != "job_7_0002" || h.Owner != "ann" || len(h.Attempts) != 1 || h.Token != wire.LogToken("secret", "") || h.Submitted.UnixMilli() != 1000 || h.Ended.UnixMilli() != 2000 {
		t.Errorf("%+v, %v", h, err)
	}
	if s, err := h.Status(); err != nil || s.ID != ids[1] || s.Owner != "ann" {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := c.History(t.Context(), wire.JobID{Start: 7, N: 9}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no history: %v", err)
	}
	for n, want := range map[int]string{0: "job_7_0003 job_7_0002 job_7_0001", 2: "job_7_0003", 3: "job_7_0003 job_7_0002 job_7_0001"} {
		list, skipped, err := c.Histories(t.Context(), core.Query{}, n)
		if err != nil || names(list) != want || skipped[0] != "damaged" { // each page has a damaged one, which counts
			t.Errorf("the last %d: %s, %q, %v", n, names(list), skipped, err)
		}
	}
	list, _, err := c.Histories(t.Context(), core.Query{Filter: admission.Filter{Flow: flow}}, 0)
	if err != nil || names(list) != "job_7_0003 job_7_0001" {
		t.Errorf("the flow has %s, %v", names(list), err)
	}
	for _, path := range []string{"/v1/histories?flow=x", "/v1/histories?after=x", "/v1/histories?flow=flow_7_0001&after=job_7_0001", "/v1/jobs/x/history"} {
		w := httptest.NewRecorder()
		New(Config{Server: f}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

func names(list []History) string {
	var all []string
	for _, h := range list {
		all = append(all, h.ID)
	}
	return strings.Join(all, " ")
}

// TestFlowHistoriesAreHidden: the list of a flow obeys the same rule as the whole list.
func TestFlowHistoriesAreHidden(t *testing.T) {
	l := newFakeLog()
	f := &fake{log: l, id: "jt1"}
	l.setLeader(f)
	job := secretJob()
	job.Flow = wire.FlowID{Start: 7, N: 1}
	l.jobs = []wire.JobStatus{job}
	h := New(Config{Server: f, Identified: true})
	for user, sees := range map[string]bool{"ann": true, "vera": true, "bob": false} {
		r := httptest.NewRequest(http.MethodGet, "/v1/histories?flow=flow_7_0001", nil)
		r.TLS = peerState(identity.Client, user)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if strings.Contains(w.Body.String(), "secret") != sees || !strings.Contains(w.Body.String(), `"owner":"ann"`) || strings.Contains(w.Body.String(), `"token"`) {
			t.Errorf("%s gets %s", user, w.Body)
		}
	}
}
