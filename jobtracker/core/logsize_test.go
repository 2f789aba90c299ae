package core

import (
	"fmt"
	"testing"
	"time"

	"github.com/quernmr/quern/wire"
)

// TestLogSize tests that a task adds two small log entries, and a heartbeat none.
func TestLogSize(t *testing.T) {
	const tasks, trackers = 10_000, 20
	c := New(Config{ID: "jt", Staging: "mem://s", History: true})
	var now time.Duration
	var index uint64
	bytes, entries := 0, 0
	var inbox []FromTracker
	var feed func(Event)
	feed = func(ev Event) {
		for _, cmd := range c.Step(now, ev) {
			switch cmd := cmd.(type) {
			case Propose:
				index++
				entries++
				bytes += len(cmd.Data)
				feed(Entry{Index: index, Term: 1, Data: cmd.Data})
			case LoadSplits:
				feed(SplitsLoaded{Epoch: 1, Job: cmd.Job, Splits: make([]Split, cmd.Maps)})
			case WriteHistory:
				if n := len(cmd.Record().Attempts); n != tasks+2 {
					t.Errorf("the history has %d attempts", n)
				}
				feed(HistoryWritten{Epoch: 1, Job: cmd.Job})
			case Send:
				inbox = append(inbox, runAtOnce(cmd, tasks)...)
			}
		}
	}
	feed(Elected{Term: 1, Wall: scenarioStart})
	for i := range trackers {
		s := Stream(i + 1)
		feed(FromTracker{Stream: s, Message: &wire.Hello{Version: wire.Version, Tracker: fmt.Sprint(i), Process: 1, MapSlots: 8}})
		feed(FromTracker{Stream: s, Message: &wire.Inventory{}})
	}
	before := bytes
	feed(Submit{Wall: scenarioStart, Submission: &wire.Submission{Key: "k", Staging: "mem://s/k", Plan: wire.Plan{Jobs: []wire.JobPlan{{}}}}})
	if s, _, _ := c.Statuses(now+time.Hour, Query{}); len(s) != 1 || s[0].Elapsed != time.Hour {
		t.Errorf("after an hour without events the status is %+v", s)
	}
	for len(inbox) > 0 {
		now += time.Millisecond
		m := inbox[0]
		inbox = inbox[1:]
		for i := range trackers {
			if now%time.Second == 0 {
				before := bytes
				feed(FromTracker{Stream: Stream(i + 1), Message: &wire.Heartbeat{}})
				if bytes != before {
					t.Fatal("a heartbeat added a log entry")
				}
			}
		}
		feed(m)
	}
	if s, _, _ := c.Statuses(0, Query{}); len(s) != 1 || s[0].State != wire.Succeeded {
		t.Fatalf("the job ended as %+v", s)
	}
	perTask := float64(bytes-before) / tasks
	t.Logf("%d entries, %.1f bytes a task", entries, perTask)
	if perTask > 60 { // the log adds headers
		t.Errorf("%.1f bytes of entries a task, want at most 60", perTask)
	}
}

// runAtOnce returns the reports of a tracker where every attempt ends at once.
func runAtOnce(cmd Send, tasks int) []FromTracker {
	report := func(id wire.AttemptID, state wire.AttemptState) []FromTracker {
		r := &wire.Report{Attempt: id, State: state}
		if state.Final() {
			r.Result = &wire.Result{Splits: &wire.SplitsDone{Maps: tasks}}
		}
		return []FromTracker{{Stream: cmd.Stream, Message: r}}
	}
	switch m := cmd.Message.(type) {
	case *wire.Launch:
		if m.Attempt.Task.Kind == wire.Map {
			return report(m.Attempt, wire.AttemptReady)
		}
		return report(m.Attempt, wire.AttemptSucceeded)
	case *wire.Grant:
		return report(m.Attempt, wire.AttemptSucceeded)
	}
	return nil
}
