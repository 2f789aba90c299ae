package web

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/wire"
)

// TestPages: the client reads all pages of a list, also after an empty one.
func TestPages(t *testing.T) {
	t.Parallel()
	f, c := startOne(t)
	const jobs = 2*fakePage + 1
	sub := submission("k")
	sub.Plan.Jobs = make([]wire.JobPlan, jobs)
	ids, err := f.Submit(t.Context(), core.Caller{}, sub)
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.Jobs(t.Context(), core.Query{Oldest: true})
	if err != nil || len(list) != jobs || list[0].ID != ids[0].String() || list[jobs-1].ID != ids[jobs-1].String() {
		t.Errorf("jobs %+v, %v", list, err)
	}
	if explained, err := c.Explanations(t.Context()); err != nil || len(explained) != jobs {
		t.Errorf("%d explanations, %v", len(explained), err)
	}
	a, err := c.Attempts(t.Context(), ids[fakePage-1])
	if err != nil || len(a.Items) != 1 || a.Next != "" || a.Owner != "ann" {
		t.Errorf("attempts %+v, %v", a, err)
	}
	for state, want := range map[string]int{"failed": 1, "running": 0} {
		if a, err = c.Attempts(t.Context(), ids[fakePage-1], state, "killed"); err != nil || len(a.Items) != want {
			t.Errorf("attempts %s: %+v, %v", state, a, err)
		}
	}
	for _, path := range []string{"/v1/jobs?after=job_7_0099", "/v1/jobs?after=task", "/v1/explain?after=job_7_0099", "/v1/jobs/job_7_0001/attempts?after=job_7_0001"} {
		if _, err := c.send(t.Context(), request{method: "GET", path: path}, new(struct{})); !errors.Is(err, core.ErrCursor) {
			t.Errorf("%s: %v", path, err)
		}
	}
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"items": [], "next": "job_7_0001"}`)
	}))
	defer endless.Close()
	c = testClient(t, strings.TrimPrefix(endless.URL, "http://"))
	if _, err := c.Jobs(t.Context(), core.Query{}); !errors.Is(err, errForeign) {
		t.Errorf("pages without an end: %v", err)
	}
}

// TestFilters: a query of the client reaches the job tracker, and the job tracker refuses what it does not understand.
func TestFilters(t *testing.T) {
	t.Parallel()
	f, c := startOne(t)
	sub := submission("k")
	sub.Plan.Jobs = make([]wire.JobPlan, 5)
	for i, name := range []string{"daily-a", "hourly", "daily-b", "weekly", "daily-c"} {
		sub.Plan.Jobs[i].Name = name
	}
	if _, err := f.Submit(t.Context(), core.Caller{Name: "ann"}, sub); err != nil {
		t.Fatal(err)
	}
	f.log.setState(wire.JobID{Start: 7, N: 3}, wire.Failed)
	f.log.setState(wire.JobID{Start: 7, N: 4}, wire.Killed)
	for _, x := range []struct {
		q    core.Query
		want string
	}{
		{core.Query{}, "daily-c weekly daily-b hourly daily-a"},
		{core.Query{Oldest: true}, "daily-a hourly daily-b weekly daily-c"},
		{core.Query{Filter: admission.Filter{Name: "daily-*"}}, "daily-c daily-b daily-a"},
		{core.Query{Filter: admission.Filter{States: []wire.State{wire.Failed, wire.Killed}}}, "weekly daily-b"},
		{core.Query{Filter: admission.Filter{Owner: "ann", Pool: "default", Since: fakeSubmitted}, After: wire.JobID{Start: 7, N: 3}}, "hourly daily-a"},
		{core.Query{Filter: admission.Filter{Since: fakeSubmitted + 1}}, ""},
		{core.Query{Filter: admission.Filter{Flow: wire.FlowID{Start: 7, N: 1}}}, ""},
	} {
		list, err := c.Jobs(t.Context(), x.q)
		var names []string
		for i := range list {
			names = append(names, list[i].Name)
		}
		if got := strings.Join(names, " "); err != nil || got != x.want {
			t.Errorf("%+v: %s, want %s, %v", x.q, got, x.want, err)
		}
	}
	for query, want := range map[string]string{
		"state=flying":             `query parameter "state": want one of waiting, preparing, running`,
		"order=best":               `query parameter "order": want one of newest, oldest, got "best"`,
		"since=yesterday":          `query parameter "since": want a time as 2026-01-31T12:00:00Z, got "yesterday"`,
		"flow=job_7_0001":          `query parameter "flow": `,
		"owner=ann&owner=bob":      `query parameter "owner" is given 2 times`,
		"color=red":                `query parameter "color" is unknown: GET /v1/jobs takes state, owner, pool, name, since, flow, order, after`,
		"name=" + long:             "owner, pool and name have at most 1000 bytes together, got 1001",
		"name=%zz":                 "query: invalid URL escape",
		"state=running&state=dead": `got "dead"`,
		"state=running,dead":       `got "dead"`,
	} {
		_, err := c.send(t.Context(), request{method: "GET", path: "/v1/jobs?" + query}, new(struct{}))
		if e := (*Error)(nil); !errors.As(err, &e) || e.Code != codeBadRequest || !strings.Contains(e.Text, want) {
			t.Errorf("%s: %v, want %s", query, err, want)
		}
	}
	for _, path := range []string{"/v1/cluster?a=b", "/v1/histories?order=oldest", "/v1/explain?name=x", "/healthz?v=1"} {
		if _, err := c.send(t.Context(), request{method: "GET", path: path}, new(struct{})); err == nil || !strings.Contains(err.Error(), "is unknown") {
			t.Errorf("%s: %v", path, err)
		}
	}
	past, _, err := c.Histories(t.Context(), core.Query{Filter: admission.Filter{Name: "daily-*"}}, 0)
	if err != nil || len(past) != 3 || past[0].Name != "daily-c" {
		t.Errorf("histories %+v, %v", past, err)
	}
}

var long = strings.Repeat("x", maxValues+1)

// TestQueryForms: a query is the same after it was sent.
func TestQueryForms(t *testing.T) {
	q := core.Query{
		Oldest: true, After: wire.JobID{Start: 7, N: 12},
		Filter: admission.Filter{States: []wire.State{wire.Waiting, wire.Killed}, Owner: "a b", Pool: "p/q", Name: "*&=*", Since: 1234567890123, Flow: wire.FlowID{Start: 7, N: 2}},
	}
	h := new(handler)
	r := httptest.NewRequest(http.MethodGet, "/v1/jobs?"+valuesOf(&q).Encode(), nil)
	if back, err := h.jobQuery(r); err != nil || !reflect.DeepEqual(back, q) {
		t.Errorf("%+v, %v", back, err)
	}
}
