package core

import (
	"testing"
	"time"

	"github.com/quernmr/quern/wire"
)

// TestLaunchHasLimits tests that a launch has the limits of its job, and the cores that it requests.
func TestLaunchHasLimits(t *testing.T) {
	c := New(Config{ID: "jt"})
	var launch *wire.Launch
	var feed func(Event)
	feed = feeder(c, new(time.Duration), func(cmd Command) {
		send, _ := cmd.(Send)
		m, ok := send.Message.(*wire.Launch)
		if !ok {
			return
		}
		launch = m
		if m.Attempt.Task.Kind == wire.Setup {
			feed(FromTracker{Stream: send.Stream, Message: &wire.Report{
				Attempt: m.Attempt, State: wire.AttemptSucceeded, Result: &wire.Result{Splits: &wire.SplitsDone{Maps: 1}},
			}})
		}
	})
	feed(Elected{Term: 1, Wall: 1})
	feed(FromTracker{Stream: 1, Message: &wire.Hello{Version: wire.Version, Tracker: "t", Process: 1, MapSlots: 1}})
	feed(FromTracker{Stream: 1, Message: &wire.Inventory{}})
	feed(Submit{Submission: &wire.Submission{Key: "k", Staging: "mem://s", Plan: wire.Plan{Jobs: []wire.JobPlan{{
		Properties: map[string]string{"mapreduce.map.memory.mb": "2", "mapreduce.map.cpu.vcores": "3", "quern.task.processes": "4", wire.LocalBytesProperty: "5"},
	}}}}})
	if launch == nil || launch.Attempt.Task.Kind != wire.Map || launch.Memory != 2<<20 || launch.Processes != 4 || launch.Cores != 3 || launch.LocalBytes != 5 {
		t.Errorf("launched %+v", launch)
	}
}
