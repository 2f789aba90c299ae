package web

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/jobtracker/core"
)

// TestOperatorIsCaller: the name in an operator's certificate overrides the one in the request.
func TestOperatorIsCaller(t *testing.T) {
	f, _ := startOne(t)
	h := New(Config{Server: f, Identified: true, Admins: []string{"root"}})
	r := httptest.NewRequest("POST", "/v1/cluster/exclusions", strings.NewReader(`{"tracker": "t1", "by": "ann"}`))
	r.TLS = peerState(identity.Client, "root")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusOK || len(f.log.exclusions) != 1 || f.log.exclusions[0].By != "root" {
		t.Errorf("%d %s: %+v", w.Code, w.Body, f.log.exclusions)
	}
}

// TestExclude excludes a task tracker through the client.
func TestExclude(t *testing.T) {
	t.Parallel()
	_, c := startOne(t)
	if err := c.Exclude(t.Context(), ExclusionRequest{Tracker: "t1", By: "ann"}); err != nil {
		t.Error(err)
	}
	if err := c.Exclude(t.Context(), ExclusionRequest{Tracker: "unknown"}); !errors.Is(err, core.ErrUnknownTracker) {
		t.Error(err)
	}
	about, err := c.Cluster(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	x := about.OperatorExclusion("t1")
	if x == nil || x.By != "ann" || !x.Until.IsZero() || about.OperatorExclusion("t2") != nil || about.LeaderExclusion("t1") != nil {
		t.Errorf("%+v", about.Exclusions)
	}
}
