package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
)

// forgetful is a fake that has forgotten the first job, and the order of the others if all have ended. Its histories
// have both.
type forgetful struct{ *fake }

func (f forgetful) Jobs(ctx context.Context, q core.Query) (page []wire.JobStatus, next wire.JobID, err error) {
	page, next, err = f.fake.Jobs(ctx, q)
	for len(page) > 0 && page[0].ID.N == 1 {
		page = page[1:]
	}
	for i := range page {
		page[i].After = nil
	}
	return page, next, err
}

func (f forgetful) Histories(ctx context.Context, q core.Query) (*history.Page, error) {
	return f.fake.Histories(ctx, core.Query{Filter: q.Filter})
}

// TestFlow: a flow has the prediction of its last job. Once all jobs have ended, forgotten ones and the order come
// from the histories.
func TestFlow(t *testing.T) {
	l := newFakeLog()
	f := &fake{log: l, id: "jt1"}
	l.setLeader(f)
	id := func(n int) wire.JobID { return wire.JobID{Start: 7, N: n} }
	flow := wire.FlowID(id(1))
	s := time.Second
	l.jobs = []wire.JobStatus{
		{ID: id(1), Name: "one", Flow: flow, Owner: "ann", State: wire.Succeeded, Elapsed: 5 * s},
		{ID: id(2), Name: "two", Flow: flow, Owner: "ann", State: wire.Running, Elapsed: 9 * s, After: []wire.JobID{id(1)}, Prediction: wire.Prediction{Earliest: 11 * s, Likely: 12 * s, Latest: 20 * s}},
		{ID: id(3), Name: "three", Flow: flow, Owner: "ann", State: wire.Waiting, Elapsed: 9 * s, After: []wire.JobID{id(1), id(2)}, Prediction: wire.Prediction{Earliest: 10 * s, Likely: 15 * s, Latest: 16 * s}},
		{ID: id(4), Name: "other", Owner: "bob", State: wire.Running},
	}
	get := func(server JobTracker) *Flow {
		t.Helper()
		got := new(Flow)
		h := New(Config{Server: server})
		if status, err := Ask(h, httptest.NewRequest(http.MethodGet, "/", nil), "/v1/flows/"+flow.String(), nil, got); err != nil {
			t.Fatal(status, err)
		}
		return got
	}
	got := get(f)
	if len(got.Items) != 3 || got.State != "running" || got.Owner != "ann" || got.Name != "all" || got.ElapsedMillis != 9000 {
		t.Errorf("%+v", got)
	}
	if p := got.Prediction; p == nil || p.EarliestMillis != 11_000 || p.LikelyMillis != 15_000 || p.LatestMillis != 20_000 {
		t.Errorf("the flow's prediction is %+v", p)
	}
	if after := got.Items[2].After; len(after) != 2 || after[1] != "job_7_0002" {
		t.Errorf("the last job reads %v", after)
	}
	l.jobs[2].Prediction = wire.Prediction{Unknown: "no task has run yet"}
	if p := get(f).Prediction; p == nil || p.Unknown != "no task has run yet" || p.LikelyMillis != 0 {
		t.Errorf("without a prediction of a job: %+v", p)
	}
	l.jobs[1].State, l.jobs[2].State = wire.Failed, wire.Killed
	l.jobs[2].State = wire.Failed
	got = get(forgetful{f})
	if len(got.Items) != 3 || got.State != "failed" || got.Prediction != nil || len(got.Items[2].After) != 2 || got.Items[0].Name != "one" {
		t.Errorf("once it has ended: %+v", got)
	}
}
