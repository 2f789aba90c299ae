package core

import (
	"testing"
	"time"

	"github.com/quernmr/quern/jobtracker/core/faults"
	"github.com/quernmr/quern/wire"
)

// TestReminders: tasks that wait after failing are each looked at in time, and need no alarm
// each.
func TestReminders(t *testing.T) {
	f, l, _ := smallFleet(t)
	j, before := l.jobs[1], len(l.due.alarms)
	for i := range j.maps {
		l.now = f.now + time.Duration(i/2)*time.Millisecond
		tk := &j.maps[i].task
		j.faults.Fail(tk.key(), faults.NewFailure("other", wire.AttemptID{Task: j.idOf(tk)}, new(wire.Result)), l.now)
		l.holdBack(j, tk)
	}
	if n := len(l.due.alarms) - before; n != 1 {
		t.Errorf("%d tasks that wait need %d alarms", len(j.faults.Reminders()), n)
	}
	for {
		next, waits := j.faults.Next()
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
