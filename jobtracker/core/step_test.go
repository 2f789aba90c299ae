package core

import (
	"fmt"
	"testing"
	"time"

	"github.com/quernmr/quern/wire"
)

// checkWake fails if a core asks to be woken at a time that has come: its owner would pass it
// Ticks without end, and time would not pass. A core with works left asks for a Tick at once.
func checkWake(c *Core, now time.Duration, fail func(string, ...any)) {
	if at, ok := c.Wake(); ok && at <= now && c.starting == nil && len(c.early) == 0 && !c.leader.hasWork() {
		fail("the core asks to be woken at %v, which is not after %v", at, now)
	}
}

// collectLaunches returns a function for feeder that appends the launches to a list.
func collectLaunches(to *[]Send) func(Command) {
	return func(cmd Command) {
		if send, ok := cmd.(Send); ok {
			if _, ok := send.Message.(*wire.Launch); ok {
				*to = append(*to, send)
			}
		}
	}
}

// feeder returns a function that feeds events to a core. The log commits and splits are read at
// once. All other commands go to then.
func feeder(c *Core, now *time.Duration, then func(Command)) func(Event) {
	index := uint64(0)
	var feed func(Event)
	feed = func(ev Event) {
		for _, cmd := range c.Step(*now, ev) {
			switch cmd := cmd.(type) {
			case Propose:
				index++
				feed(Entry{Index: index, Term: 1, Data: cmd.Data})
			case LoadSplits:
				feed(SplitsLoaded{Epoch: cmd.Epoch, Job: cmd.Job, Splits: make([]Split, cmd.Maps)})
			default:
				then(cmd)
			}
		}
	}
	return feed
}

// waitingJobs returns a leader with one map slot and many jobs, and the attempt of the first job
// in the slot.
func waitingJobs(tb testing.TB, jobs, maps int) (*Core, wire.AttemptID) {
	c := New(Config{ID: "jt"})
	var running wire.AttemptID
	var step func(Event)
	step = feeder(c, new(time.Duration), func(cmd Command) {
		switch cmd := cmd.(type) {
		case Send:
			if m, ok := cmd.Message.(*wire.Launch); ok && m.Attempt.Task.Kind == wire.Setup {
				step(FromTracker{Stream: 1, Message: &wire.Report{
					Attempt: m.Attempt, State: wire.AttemptSucceeded,
					Result: &wire.Result{Splits: &wire.SplitsDone{Maps: maps}},
				}})
			} else if ok {
				running = m.Attempt
			}
		case Halt:
			tb.Fatal(cmd.Err)
		}
	})
	step(Elected{Term: 1, Wall: 1})
	step(FromTracker{Stream: 1, Message: &wire.Hello{Version: wire.Version, Tracker: "t", Process: 1, MapSlots: 1}})
	step(FromTracker{Stream: 1, Message: &wire.Inventory{}})
	for i := range jobs {
		step(Submit{Submission: &wire.Submission{
			Key: fmt.Sprint(i), Staging: "mem://s", Plan: wire.Plan{Jobs: []wire.JobPlan{{Reduces: 1}}},
		}})
	}
	if running.IsZero() {
		tb.Fatal("no map runs")
	}
	return c, running
}

// BenchmarkStep shows that the cost of a Step does not depend on the number of waiting tasks.
func BenchmarkStep(b *testing.B) {
	const maps = 1000
	for _, jobs := range []int{1, 1000} {
		b.Run(fmt.Sprintf("heartbeat/jobs=%d", jobs), func(b *testing.B) {
			c, running := waitingJobs(b, jobs, maps)
			heartbeat := FromTracker{Stream: 1, Message: &wire.Heartbeat{
				Attempts: []wire.Report{{Attempt: running, State: wire.AttemptRunning}},
			}}
			for b.Loop() {
				c.Step(0, heartbeat)
			}
		})
		b.Run(fmt.Sprintf("map/jobs=%d", jobs), func(b *testing.B) {
			c, running := waitingJobs(b, jobs, maps)
			for b.Loop() {
				done := FromTracker{Stream: 1, Message: &wire.Report{
					Attempt: running, State: wire.AttemptSucceeded,
					Result: &wire.Result{Output: &wire.MapOutput{Digest: 1}},
				}}
				before := running
				for _, cmd := range c.Step(0, done) {
					if send, ok := cmd.(Send); ok {
						running = send.Message.(*wire.Launch).Attempt
					}
				}
				if running == before || running.Task.Job != before.Task.Job { // the first job has ended
					b.StopTimer()
					c, running = waitingJobs(b, jobs, maps)
					b.StartTimer()
				}
			}
		})
	}
}
