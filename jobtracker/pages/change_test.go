package pages

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/quernmr/quern/jobtracker/web"
)

// changedAPI is a hostileAPI that takes changes of the scheduler.
type changedAPI struct {
	fakeAPI
	changes []web.Scheduling
	refuses bool
}

func (c *changedAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		c.fakeAPI.ServeHTTP(w, r)
		return
	}
	var change web.Scheduling
	switch err := json.NewDecoder(r.Body).Decode(&change); {
	case err != nil || r.URL.Path != "/v1/cluster/scheduling" || r.Header.Get("Origin") != "":
		w.WriteHeader(http.StatusTeapot)
	case c.refuses:
		w.WriteHeader(http.StatusForbidden)
		json.NewEncoder(w).Encode(&web.Error{Code: "forbidden", Text: "only administrators may"})
	default:
		c.changes = append(c.changes, change)
		io.WriteString(w, "{}")
	}
}

// TestChange: the form of the page changes the scheduler. A request of another site has another Origin, or lacks
// the token.
func TestChange(t *testing.T) {
	api := &changedAPI{fakeAPI: hostileAPI()}
	h := testHandler(api)
	page := httptest.NewRecorder()
	h.ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/scheduler", nil))
	found := regexp.MustCompile(`name="token" value="([0-9a-f]+)"`).FindStringSubmatch(page.Body.String())
	if found == nil {
		t.Fatalf("the page of an administrator has no form:\n%s", page.Body)
	}
	own := "http://example.com" // httptest's Host
	for _, c := range []struct {
		origin, kind, token string
		want                int
	}{
		{own, "application/x-www-form-urlencoded", found[1], http.StatusSeeOther},
		{"", "application/x-www-form-urlencoded", found[1], http.StatusForbidden},
		{"null", "application/x-www-form-urlencoded", found[1], http.StatusForbidden},
		{"http://evil.example", "application/x-www-form-urlencoded", found[1], http.StatusForbidden},
		{"https://example.com", "application/x-www-form-urlencoded", found[1], http.StatusForbidden},
		{own, "application/x-www-form-urlencoded", "", http.StatusForbidden},
		{own, "application/x-www-form-urlencoded", strings.Repeat("0", 64), http.StatusForbidden},
		{own, "text/plain", found[1], http.StatusForbidden}, // a form that a page can send without asking
		{own, "application/x-www-form-urlencoded", found[1] + strings.Repeat("0", maxForm), http.StatusBadRequest},
	} {
		form := url.Values{"scheduler": {"srpt"}, "token": {c.token}}
		r := httptest.NewRequest(http.MethodPost, "/scheduler", strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", c.kind)
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		w := httptest.NewRecorder()
		before := len(api.changes)
		h.ServeHTTP(w, r)
		if changed := len(api.changes) > before; w.Code != c.want || changed != (c.want == http.StatusSeeOther) {
			t.Errorf("from %q, %s, token %.70q: status %d, want %d; changed: %v", c.origin, c.kind, c.token, w.Code, c.want, changed)
		}
	}
	if len(api.changes) != 1 || api.changes[0] != (web.Scheduling{Scheduler: "srpt"}) {
		t.Errorf("the changes are %+v", api.changes)
	}
	send := func(h http.Handler) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, "/scheduler", strings.NewReader(url.Values{"scheduler": {"srpt"}, "token": {found[1]}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", own)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	if w := send(testHandler(api)); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "load the page again") {
		t.Errorf("another job tracker takes the token: status %d", w.Code)
	}
	api.refuses = true
	if w := send(h); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "only administrators may") {
		t.Errorf("the page of a refusal: status %d, %s", w.Code, w.Body)
	}
	api.fakeAPI["/v1/cluster"] = web.Cluster{Leader: "jt2", Addr: "host2:9001"}
	if w := send(h); w.Code != http.StatusTemporaryRedirect || w.Header().Get("Location") != "http://host2:9001/scheduler" {
		t.Errorf("at a follower: status %d to %q", w.Code, w.Header().Get("Location"))
	}
}

// TestNoForm: a user who may not change the cluster sees no form.
func TestNoForm(t *testing.T) {
	api := hostileAPI()
	c := api["/v1/cluster"].(web.Cluster)
	c.Admin = false
	api["/v1/cluster"] = c
	for _, path := range []string{"/scheduler", "/scheduler/whatif"} {
		if _, page := show(t, api, path); strings.Contains(page, "<form") {
			t.Errorf("%s has a form", path)
		}
	}
}
