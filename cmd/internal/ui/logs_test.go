package ui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/quernmr/quern/listen"
	"github.com/quernmr/quern/wire"
)

// textLog has the text that an attempt has written.
type textLog string

func (l textLog) open(_ context.Context, attempt wire.AttemptID, stream string, part Part) (*Log, error) {
	if attempt.N == 13 {
		return nil, errors.New("the tracker does not answer")
	}
	text := string(l)
	from := part.From
	if part.Tail > 0 {
		from = max(0, int64(len(text))-part.Tail)
	}
	return &Log{io.NopCloser(strings.NewReader(text[from:])), int64(len(text)), stream == "stdout"}, nil
}

// TestLogs: a log is text for the browser, whatever a job has written. The proxy asks for no other streams.
func TestLogs(t *testing.T) {
	const hostile = "<script>alert(1)</script>"
	h := withLogs(Config{Pages: http.NotFoundHandler(), Log: textLog(hostile).open})
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/jobs/job_7_0001/attempts/attempt_7_0001_m_000003_"+path, nil))
		if got := w.Header(); !strings.HasPrefix(got.Get("Content-Type"), "text/plain") && (w.Code == http.StatusOK || got.Get("Content-Type") != listen.ProblemType) || got.Get("X-Content-Type-Options") != "nosniff" || got.Get("Content-Security-Policy") != "default-src 'none'; sandbox" {
			t.Errorf("%s: %v", path, got)
		}
		return w
	}
	for path, want := range map[string]struct {
		status                        int
		body, refresh, ended, written string
	}{
		"1000/stderr/text":         {200, hostile, "", "false", "25"},
		"1000/stderr/text?follow":  {200, hostile, "2", "false", "25"},
		"1000/stdout/text?follow":  {200, hostile, "", "true", "25"},
		"1000/stderr/text?tail=9":  {200, "</script>", "", "false", "25"},
		"1000/stderr/text?from=8":  {200, hostile[8:], "", "false", "25"},
		"1000/stderr/text?from=25": {200, "", "", "false", "25"},
		"1000/stderr/text?from=-1": {400, `{"title":"Bad Request","status":400,"detail":"from must be a number of bytes, got \"-1\""}` + "\n", "", "", ""},
		"1000/secrets/text":        {404, `{"title":"Not Found","status":404,"detail":"an attempt has the logs stdout and stderr, not \"secrets\""}` + "\n", "", "", ""},
		"x/stderr/text":            {404, `{"title":"Not Found","status":404,"detail":"job_7_0001 has no attempt_7_0001_m_000003_x"}` + "\n", "", "", ""},
		"13/stderr/text":           {502, `{"title":"Bad Gateway","status":502,"detail":"mrsubmit: the tracker does not answer"}` + "\n", "", "", ""},
	} {
		w := get(path)
		got := w.Header()
		if w.Code != want.status || w.Body.String() != want.body || got.Get("Refresh") != want.refresh || got.Get("Log-Ended") != want.ended || got.Get("Log-End") != want.written {
			t.Errorf("%s: %d %q, %v", path, w.Code, w.Body, got)
		}
	}
}

// TestLongLog: a browser that is far behind gets the end of a log.
func TestLongLog(t *testing.T) {
	long := textLog(strings.Repeat("x", 3*logBytes) + "end")
	for _, query := range []string{"", "?from=0", "?from=5", fmt.Sprintf("?from=%d", 2*logBytes)} {
		w := httptest.NewRecorder()
		withLogs(Config{Pages: http.NotFoundHandler(), Log: long.open}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/jobs/job_7_0001/attempts/attempt_7_0001_m_000003_1000/stderr/text"+query, nil))
		if n := w.Body.Len(); n > logBytes+3 || n < logBytes || !strings.HasSuffix(w.Body.String(), "end") {
			t.Errorf("%q: %d bytes", query, n)
		}
	}
}
