package core

import (
	"testing"
	"time"

	"github.com/quernmr/quern/jobtracker/core/faults"
	"github.com/quernmr/quern/jobtracker/core/settings"
	"github.com/quernmr/quern/wire"
)

// TestRetryAlarms tests that failed tasks are relaunched in time without an alarm for each.
func TestRetryAlarms(t *testing.T) {
	f, l, _ := smallFleet(t)
	j, before := l.jobs[1], l.timers.alarms.len()
	for i := range j.maps {
		l.now = f.now + time.Duration(i/2)*time.Millisecond
		tk := &j.maps[i].task
		j.faults.Fail(tk.key(), faults.NewFailure("other", wire.AttemptID{Task: j.idOf(tk)}, new(wire.Result)), l.now)
		l.delayTask(j, tk)
	}
	if n := l.timers.alarms.len() - before; n != 1 {
		t.Errorf("%d waiting tasks set %d alarms, want 1", len(j.faults.Reminders()), n)
	}
	for {
		next, waits := j.faults.NextReminder()
		if !waits {
			break
		}
		at, ok := f.core.Wake()
		if !ok || at > next {
			t.Fatalf("the next of %d tasks waits until %v, and the core wakes up at %v (%v)", len(j.faults.Reminders()), next, at, ok)
		}
		f.now = max(f.now, at)
		f.step(Tick{})
	}
}

// TestAdoptedFences tests that failures of earlier leaders' fences, which are killed, do not count, although
// each leader numbers its fences from 0.
func TestAdoptedFences(t *testing.T) {
	f, l, host := smallFleet(t)
	j := l.jobs[1]
	for n := range settings.ServiceAttempts {
		id := wire.AttemptID{Task: wire.TaskID{Job: j.id, Kind: wire.Fence}, N: n}
		for _, state := range []wire.AttemptState{wire.AttemptRunning, wire.AttemptFailed} {
			f.step(FromTracker{Stream: host.contact.stream, Message: &wire.Report{Attempt: id, State: state, Result: new(wire.Result)}})
		}
	}
	if got := len(j.faults.Troubles()); got != 0 || !j.facts.Running() {
		t.Errorf("%d fences have failed, want 0; the job runs: %v", got, j.facts.Running())
	}
}

// TestSlowServiceAlarms tests that a slow service task that can run nowhere else sets few alarms, however
// often its job advances.
func TestSlowServiceAlarms(t *testing.T) {
	f := newFleet(t, fleetSize{trackers: 1, jobs: 0, maps: 1, inputRacks: 1}, nil)
	f.step(Submit{Submission: &wire.Submission{Key: "slow", Staging: "mem://s", Plan: wire.Plan{Jobs: []wire.JobPlan{{Name: "slow"}}}}})
	l := f.core.leader
	for range 1000 {
		f.now += 10 * time.Millisecond
		l.touch(l.jobs[1])
		f.step(Tick{})
	}
	if n := l.timers.alarms.len(); n > 3 || !l.jobs[1].service.setup.runs() {
		t.Errorf("%d alarms are set, want at most 3; the setup runs: %v", n, l.jobs[1].service.setup.runs())
	}
}
