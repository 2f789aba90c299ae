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
	j, before := l.jobs[1], len(l.timers.alarms)
	for i := range j.maps {
		l.now = f.now + time.Duration(i/2)*time.Millisecond
		tk := &j.maps[i].task
		j.faults.Fail(tk.key(), faults.NewFailure("other", wire.AttemptID{Task: j.idOf(tk)}, new(wire.Result)), l.now)
		l.delayTask(j, tk)
	}
	if n := len(l.timers.alarms) - before; n != 1 {
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

// TestAdoptedFences tests that failures of earlier leaders' fences do not add up, although each
// leader numbers its fences from 0.
func TestAdoptedFences(t *testing.T) {
	f, l, host := smallFleet(t)
	j := l.jobs[1]
	for n := range settings.ServiceAttempts {
		id := wire.AttemptID{Task: wire.TaskID{Job: j.id, Kind: wire.Fence}, N: n}
		for _, state := range []wire.AttemptState{wire.AttemptRunning, wire.AttemptFailed} {
			f.step(FromTracker{Stream: host.contact.stream, Message: &wire.Report{Attempt: id, State: state, Result: new(wire.Result)}})
		}
	}
	if got := len(j.faults.Troubles()); got != settings.ServiceAttempts || !j.facts.Running() {
		t.Errorf("%d fences have failed, want %d; the job runs: %v", got, settings.ServiceAttempts, j.facts.Running())
	}
}
