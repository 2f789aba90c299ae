package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/wire"
)

// roundTrip implements http.RoundTripper.
type roundTrip func(r *http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestLogsOfSilentTracker: if a tracker does not answer, mrsubmit sends it only one request. Each error
// names its own attempt and tracker.
func TestLogsOfSilentTracker(t *testing.T) {
	var out, messages bytes.Buffer
	requests := make(map[string]int)
	r := &logReader{
		query:       &query{lines: -1, tool: &tool{stdout: &out, stderr: &messages}},
		unreachable: make(map[string]error),
		http: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			requests[r.URL.Host]++
			if r.URL.Host == "gone:1" {
				return nil, errors.New("no route")
			}
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("text\n"))}, nil
		})},
	}
	want := ""
	for i, tracker := range []string{"t1@gone:1", "t2@here:1", "t3@gone:1"} { // t3 has taken the address of t1
		name, addr, _ := strings.Cut(tracker, "@")
		id := wire.AttemptID{Task: wire.TaskID{Job: wire.JobID{Start: 7, N: 1}, Kind: wire.Map, N: i}, N: 1000}
		if err := r.printLogs(t.Context(), &web.Attempt{ID: id.String(), Tracker: name, Addr: addr}); err != nil {
			t.Fatal(err)
		}
		for _, stream := range []string{"stdout", "stderr"} {
			if addr == "gone:1" {
				want += fmt.Sprintf("mrsubmit logs: %v %s: tracker %s at gone:1 does not answer: no route\n", id, stream, name)
			}
		}
	}
	if requests["gone:1"] != 1 || requests["here:1"] != 2 || r.read != 2 || r.failed != 4 {
		t.Errorf("requests %v; %d logs were read, %d were not", requests, r.read, r.failed)
	}
	if messages.String() != want {
		t.Errorf("it printed\n%snot\n%s", &messages, want)
	}
}
