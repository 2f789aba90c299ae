package web

import (
	"bytes"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestForbiddenIsSparse: a peer whose requests are refused does not fill the log.
func TestForbiddenIsSparse(t *testing.T) {
	f, _ := startOne(t)
	var logged bytes.Buffer
	h := New(Config{Server: f, Identified: true, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	const requests = 200
	for range requests {
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/v1/jobs", nil)); w.Code != 403 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	if n := strings.Count(logged.String(), "a request is refused"); n == 0 || n > requests/2 {
		t.Errorf("%d of %d refusals are logged", n, requests)
	}
}
