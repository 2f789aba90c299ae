package web

import (
	"errors"
	"testing"

	"github.com/quernmr/quern/jobtracker/core"
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
	list, err := c.Jobs(t.Context())
	if err != nil || len(list) != jobs || list[0].ID != ids[0].String() || list[jobs-1].ID != ids[jobs-1].String() {
		t.Errorf("jobs %+v, %v", list, err)
	}
	if explained, err := c.Explanations(t.Context()); err != nil || len(explained) != jobs {
		t.Errorf("%d explanations, %v", len(explained), err)
	}
	a, err := c.Attempts(t.Context(), ids[fakePage-1])
	if err != nil || len(a.Attempts) != 1 || a.Next != "" || a.Owner != "ann" {
		t.Errorf("attempts %+v, %v", a, err)
	}
	for _, path := range []string{"/v1/jobs?after=job_7_0099", "/v1/jobs?after=task", "/v1/explain?after=job_7_0099", "/v1/jobs/job_7_0001/attempts?after=job_7_0001"} {
		if _, err := c.send(t.Context(), request{method: "GET", path: path}, new(struct{})); !errors.Is(err, core.ErrCursor) {
			t.Errorf("%s: %v", path, err)
		}
	}
	_, err = allPages(func(string) ([]Job, string, error) { return nil, "job_7_0001", nil })
	if !errors.Is(err, errForeign) {
		t.Errorf("pages without an end: %v", err)
	}
}
