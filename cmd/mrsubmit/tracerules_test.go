package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/wire"
)

// TestTraceRules: every trace keeps the rules of Chrome's Trace Event Format that Perfetto's importer of JSON
// checks: it drops events that break them. Slices of a thread do not overlap, except by the microsecond that
// an instant lasts; names come as metadata; counters have numbers.
func TestTraceRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := time.UnixMilli(1_000_000)
		job := tracedJob{id: wire.JobID{Start: 7, N: 1}, name: rapid.String().Draw(t, "name")}
		for i := range rapid.IntRange(1, 30).Draw(t, "attempts") {
			id := wire.AttemptID{Task: wire.TaskID{Job: job.id, Kind: rapid.SampledFrom([]wire.Kind{wire.Map, wire.Reduce, wire.Setup}).Draw(t, "kind"), N: i}, N: 1000}
			job.attempts = append(job.attempts, web.Attempt{
				ID: id.String(), Tracker: fmt.Sprintf("t%d", rapid.IntRange(1, 2).Draw(t, "tracker")), State: rapid.SampledFrom([]string{"running", "succeeded", "failed"}).Draw(t, "state"),
				Began: start.Add(time.Duration(rapid.IntRange(0, 50).Draw(t, "began")) * time.Millisecond), TookMillis: rapid.Int64Range(0, 20).Draw(t, "took"), Error: rapid.String().Draw(t, "error"),
			})
		}
		events, err := traceOf([]tracedJob{job}, start.Add(60*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(events)
		if err != nil {
			t.Fatal(err)
		}
		checkTrace(t, text)
	})
}

func checkTrace(t *rapid.T, text []byte) {
	var events []struct {
		Name     *string         `json:"name"`
		Type     string          `json:"ph"`
		Process  *int            `json:"pid"`
		Thread   *int            `json:"tid"`
		Time     *int64          `json:"ts"`
		Duration *int64          `json:"dur"`
		Args     json.RawMessage `json:"args"`
	}
	if err := json.Unmarshal(text, &events); err != nil {
		t.Fatal(err)
	}
	type thread struct{ process, thread int }
	slicesOf, named := make(map[thread][][2]int64), make(map[thread]bool)
	for _, e := range events {
		if e.Name == nil || *e.Name == "" || e.Process == nil || e.Thread == nil || e.Time == nil || *e.Time < 0 {
			t.Fatalf("an event lacks a name, a process, a thread or a time: %s", text)
		}
		at := thread{*e.Process, *e.Thread}
		switch e.Type {
		case "X":
			if e.Duration == nil || *e.Duration < 1 {
				t.Fatalf("a slice lacks its duration: %s", text)
			}
			slicesOf[at] = append(slicesOf[at], [2]int64{*e.Time, *e.Time + *e.Duration})
		case "M":
			var args struct{ Name string }
			if err := json.Unmarshal(e.Args, &args); err != nil || *e.Name != "process_name" && *e.Name != "thread_name" {
				t.Fatalf("metadata %q has no name: %v: %s", *e.Name, err, e.Args)
			}
			named[at] = true
		case "C":
			var numbers map[string]int64
			if err := json.Unmarshal(e.Args, &numbers); err != nil || len(numbers) == 0 {
				t.Fatalf("a counter has no numbers: %v: %s", err, e.Args)
			}
		default:
			t.Fatalf("an event has the type %q", e.Type)
		}
	}
	for at, all := range slicesOf {
		if !named[at] {
			t.Fatalf("%v has slices and no name", at)
		}
		slices.SortFunc(all, func(a, b [2]int64) int { return int(a[0] - b[0]) })
		for i := 1; i < len(all); i++ {
			if all[i][0] < all[i-1][1]-1 {
				t.Fatalf("slices of %v overlap: %v", at, all)
			}
		}
	}
}
