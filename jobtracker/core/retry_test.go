package core

import (
	"testing"
	"time"
)

// TestReminders: tasks that wait after failing are each looked at in time, and need no alarm
// each.
func TestReminders(t *testing.T) {
	f, l, _ := smallFleet(t)
	j, before := l.jobs[1], len(l.due.alarms)
	for i := range j.maps {
		l.remindAt(j, &j.maps[i].task, f.now+time.Minute+time.Duration(i/2)*time.Millisecond)
	}
	if n := len(l.due.alarms) - before; n != 1 {
		t.Errorf("%d tasks that wait need %d alarms", len(j.faults.reminded), n)
	}
	for len(j.faults.reminded) > 0 {
		at, ok := f.core.Wake()
		if !ok || at > j.faults.reminded[0].at {
			t.Fatalf("the next of %d tasks waits until %v, and the core wakes up at %v (%v)", len(j.faults.reminded), j.faults.reminded[0].at, at, ok)
		}
		f.now = max(f.now, at)
		f.step(Tick{})
	}
}
