package core

import (
	"time"

	"github.com/quernmr/quern/wire"
)

// This file simulates the files of a task tracker: the nonce in the staging directory, map outputs
// that survive a restart, and disks that fail.

func (t *simTracker) readNonce(l *link) {
	t.w.after(t.w.randomTime(100*time.Millisecond), func() {
		switch {
		case t.link != l:
		case t.w.fault(0.05):
			t.send(&wire.NoStaging{Reason: "simulated"})
		case t.w.fault(0.05):
			t.nonce = "nonce of another cluster"
			t.hello()
		default:
			t.nonce = worldConfig.Nonce
			t.hello()
		}
	})
}

// restart ends the process. Another one starts soon, with most of its map outputs.
func (t *simTracker) restart() {
	if t.down {
		return
	}
	t.w.note("%s restarts", t.name)
	attempts := make(map[wire.AttemptID]*simAttempt)
	outputs := make(map[wire.AttemptID]uint64)
	for _, a := range t.sorted() {
		id := a.report.Attempt
		if d, ok := t.outputs[id]; ok && a.report.State == wire.AttemptSucceeded && !t.w.fault(0.2) {
			attempts[id], outputs[id] = a, d
		}
		t.release(a)
	}
	t.down = true
	if t.link != nil {
		t.link.closedByTracker()
	}
	t.w.after(t.w.randomTime(8*time.Second), func() {
		t.start()
		t.attempts, t.outputs = attempts, outputs
	})
}

// failDisks makes all disks fail for a time.
func (t *simTracker) failDisks() {
	if t.down || t.slots != t.configured {
		return
	}
	t.w.note("%s has no disk", t.name)
	t.slots = [2]int{}
	t.send(&wire.Capacity{Reason: "disk failed"})
	for _, a := range t.sorted() {
		id := a.report.Attempt
		if _, ok := t.outputs[id]; ok {
			delete(t.outputs, id)
			t.send(&wire.OutputLost{Job: id.Task.Job, Map: id.Task.N, Attempt: id.N, Reason: "disk failed"})
		}
		if !a.report.State.Final() && id.Task.Kind.Slotted() {
			t.after(a, 200*time.Millisecond, func() { t.end(a, wire.AttemptKilled, &wire.Result{Error: "disk failed"}) })
		}
	}
	t.homes = make(map[homeName]*simHome)
	process := t.process
	t.w.after(t.w.randomTime(5*time.Second), func() {
		if t.process == process && !t.down {
			t.slots = t.configured
			t.send(&wire.Capacity{MapSlots: t.configured[0], ReduceSlots: t.configured[1]})
		}
	})
}
