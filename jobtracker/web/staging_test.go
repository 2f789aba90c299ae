package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/quernmr/quern/identity"
)

// TestUsersStage: each user is told where to stage; daemons are not.
func TestUsersStage(t *testing.T) {
	l := newFakeLog()
	f := &fake{log: l, id: "jt1"}
	l.setLeader(f)
	for _, usersStage := range []bool{true, false} {
		served := New(Config{Server: f, Identified: true, UsersStage: usersStage})
		for _, c := range []struct {
			role identity.Role
			want string
		}{{identity.Client, `"ownStaging":"mem://s/users/ann"`}, {identity.JobTracker, ""}} {
			r := httptest.NewRequest(http.MethodGet, "/v1/cluster", nil)
			r.TLS = peerState(c.role, "ann")
			w := httptest.NewRecorder()
			served.ServeHTTP(w, r)
			body := w.Body.String()
			if want := usersStage && c.want != ""; w.Code != http.StatusOK || strings.Contains(body, "ownStaging") != want || !strings.Contains(body, c.want) && want {
				t.Errorf("users stage: %t, %s: %d, %s", usersStage, c.role, w.Code, body)
			}
		}
	}
}
