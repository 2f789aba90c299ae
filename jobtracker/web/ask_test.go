package web

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"testing"
	"time"

	"github.com/quernmr/quern/wire"
)

// TestAsk: a value that comes without its encoding is the one that a client would read.
func TestAsk(t *testing.T) {
	l := newFakeLog()
	f := &fake{log: l, id: "jt1"}
	l.leader = f
	l.jobs = []wire.JobStatus{{ID: wire.JobID{Start: 7, N: 1}, Name: "one", Owner: "ann", State: wire.Running, Elapsed: time.Second}}
	now := time.Now()
	h := New(Config{ID: "jt1", Server: f, now: func() time.Time { return now }})
	for path, into := range map[string]func() any{
		"/v1/cluster":  func() any { return new(Cluster) },
		"/v1/jobs":     func() any { return new(Page[Job]) },
		"/v1/explain":  func() any { return new(Page[Explanation]) },
		"/v1/attempts": func() any { return new(Recent) },
		"/v1/plans":    func() any { return new(Plans) },
	} {
		direct, decoded := into(), into()
		r := httptest.NewRequest(http.MethodGet, path, nil)
		if status, err := Ask(h, r, path, url.Values{}, direct); status != http.StatusOK || err != nil {
			t.Errorf("%s: %d, %v", path, status, err)
			continue
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if err := readJSON(w.Body, decoded); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if a, b := jsonText(direct), jsonText(decoded); a != b || reflect.ValueOf(direct).Elem().IsZero() {
			t.Errorf("%s: got\n%s\nwant\n%s", path, a, b)
		}
	}
	part := new(struct {
		Items []struct{ ID string }
	})
	if _, err := Ask(h, httptest.NewRequest(http.MethodGet, "/", nil), "/v1/jobs", nil, part); err != nil || len(part.Items) != 1 || part.Items[0].ID != "job_7_0001" {
		t.Errorf("of a list with members of another type, Ask reads %+v, %v", part, err)
	}
}
