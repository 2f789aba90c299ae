package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/wire"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the files in testdata")

// TestTrace: testdata/trace.json has the trace of a running flow. Attempts that overlap are in different
// rows of their task tracker, running ones end at the present, and ones that have not begun are left out.
func TestTrace(t *testing.T) {
	start := time.Date(2026, 11, 24, 1, 2, 3, 0, time.UTC)
	at := func(id, tracker, state string, began, took int64) web.Attempt {
		return web.Attempt{ID: id, Tracker: tracker, State: state, Began: start.Add(time.Duration(began) * time.Millisecond), TookMillis: took, Bytes: web.Bytes{Done: 100}}
	}
	lost := at("attempt_7_0001_m_000001_1000", "t2", "killed", 1100, 900)
	lost.Error, lost.Level = "lost with its tracker", "node-local"
	second := at("attempt_7_0001_m_000000_1001", "t2", "running", 2500, 0)
	second.Speculative = true
	jobs := []tracedJob{
		{wire.JobID{Start: 7, N: 1}, "one \"quoted\"", []web.Attempt{
			at("attempt_7_0001_s_000000_1000", "t1", "succeeded", 0, 1000),
			at("attempt_7_0001_m_000000_1000", "t1", "running", 1000, 0),
			second, lost,
			at("attempt_7_0001_m_000001_1001", "t1", "succeeded", 2000, 500),
			at("attempt_7_0001_m_000002_1000", "t1", "succeeded", 2500, 400),
			at("attempt_7_0001_r_000000_1000", "t1", "ready", 2600, 0),
		}},
		{wire.JobID{Start: 7, N: 2}, "two", []web.Attempt{
			at("attempt_7_0002_s_000000_1000", "t1", "failed", 500, 0), {ID: "attempt_7_0002_s_000000_1001", Tracker: "t1", State: "running"},
		}},
	}
	events, err := traceOf(jobs, start.Add(3*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	q := &query{tool: &tool{stdout: &out}}
	if err := q.writeTrace(events); err != nil {
		t.Fatal(err)
	}
	if !json.Valid(out.Bytes()) {
		t.Error("the trace is not JSON")
	}
	const file = "testdata/trace.json"
	if *rewrite {
		if err := os.MkdirAll("testdata", 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, out.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || string(want) != out.String() {
		t.Errorf("%s differs (%v): go test ./cmd/mrsubmit -run TestTrace -rewrite, and read the difference\n%s", file, err, &out)
	}
	jobs[0].attempts[0].ID = "no id"
	if _, err := traceOf(jobs, start); err == nil {
		t.Error("an attempt without an id is accepted")
	}
}
