package listen

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestFail: an error is a problem, and text for browsers. Failure reads both.
func TestFail(t *testing.T) {
	const page = "text/html,application/xhtml+xml,*/*;q=0.8"
	for accept, want := range map[string][2]string{
		"":                 {ProblemType, `{"title":"Not Found","status":404,"detail":"no \"log\" here"}` + "\n"},
		"*/*":              {ProblemType, `{"title":"Not Found","status":404,"detail":"no \"log\" here"}` + "\n"},
		"application/json": {ProblemType, `{"title":"Not Found","status":404,"detail":"no \"log\" here"}` + "\n"},
		page:               {"text/plain; charset=utf-8", `no "log" here` + "\n"},
	} {
		r, w := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
		if accept != "" {
			r.Header.Set("Accept", accept)
		}
		Fail(w, r, `no "log" here`, http.StatusNotFound)
		if got := [2]string{w.Header().Get("Content-Type"), w.Body.String()}; got != want || w.Code != http.StatusNotFound {
			t.Errorf("%q: %d %q, want %q", accept, w.Code, got, want)
		}
		if text := Failure(w.Result()); text != `no "log" here` {
			t.Errorf("%q is read as %q", accept, text)
		}
	}
}
