package web

import (
	"bytes"
	"errors"
	"log/slog"
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

// TestOperatorsRequestsAreLogged: the log has the name of the command, not of its opposite.
func TestOperatorsRequestsAreLogged(t *testing.T) {
	t.Parallel()
	f, _ := startOne(t)
	var logged bytes.Buffer
	h := New(Config{Server: f, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	for _, c := range []struct{ path, body, want string }{
		{"exclusions", `{"tracker": "t1", "by": "ann", "reason": "noisy"}`, "msg=exclude tracker=t1 reason=noisy by=ann"},
		{"exclusions", `{"tracker": "t1", "by": "bob", "undo": true}`, "msg=readmit tracker=t1 by=bob"},
		{"drains", `{"tracker": "t1"}`, "msg=drain tracker=t1"},
		{"drains", `{"tracker": "t1", "undo": true}`, "msg=undrain tracker=t1"},
	} {
		logged.Reset()
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/v1/cluster/"+c.path, strings.NewReader(c.body)))
		if !strings.Contains(logged.String(), c.want) {
			t.Errorf("%s %s: the log lacks %q: %s", c.path, c.body, c.want, &logged)
		}
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
