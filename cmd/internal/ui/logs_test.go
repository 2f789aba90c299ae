package ui

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestLogs: a log is text for the browser, whatever a job has written. The proxy asks for no other streams.
func TestLogs(t *testing.T) {
	const hostile = "<script>alert(1)</script>"
	h := newPages(Config{Log: func(_ context.Context, job, attempt, stream string) (io.ReadCloser, error) {
		if attempt == "gone" {
			return nil, errors.New("the tracker does not answer")
		}
		return io.NopCloser(strings.NewReader(job + " " + attempt + " " + stream + " " + hostile)), nil
	}})
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if got := w.Header().Get("Content-Type"); !strings.HasPrefix(got, "text/plain") || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: content type %q, %v", path, got, w.Header())
		}
		return w
	}
	w := get("/jobs/job_7_0001/attempts/attempt_1/stderr")
	if want := "job_7_0001 attempt_1 stderr " + hostile; w.Body.String() != want || w.Header().Get("Refresh") != "" {
		t.Errorf("got %q with Refresh %q, want %q", w.Body, w.Header().Get("Refresh"), want)
	}
	if !strings.HasPrefix(w.Header().Get("Content-Security-Policy"), "default-src 'none'; sandbox") {
		t.Errorf("the policy is %q", w.Header().Get("Content-Security-Policy"))
	}
	if w := get("/jobs/job_7_0001/attempts/attempt_1/stdout?follow"); w.Header().Get("Refresh") != "2" {
		t.Error("a followed log is not loaded again")
	}
	if w := get("/jobs/job_7_0001/attempts/attempt_1/secrets"); w.Code != http.StatusNotFound {
		t.Errorf("an unknown stream: status %d", w.Code)
	}
	if w := get("/jobs/job_7_0001/attempts/gone/stdout"); w.Code != http.StatusBadGateway || !strings.Contains(w.Body.String(), "does not answer") {
		t.Errorf("a silent tracker: status %d, %q", w.Code, w.Body)
	}
}
