package locality

import "time"

// Wait measures how long a job phase has been deferring slots for locality.
//
// A spell begins when the job defers a slot. It ends with a round in which the job gets a slot
// and defers none. It continues while other jobs use the deferred slot, because the job is still
// entitled to one. Algorithm 1 restarts the spell at every launch, so a local launch now and then
// keeps all other slots idle for ever (SPARK-18886): see Restart.
type Wait struct {
	deferring bool
	since     time.Duration // when the spell began
	past      time.Duration // total of the spells that have ended
}

// Defer records that a slot is deferred now.
func (w *Wait) Defer(now time.Duration) {
	if !w.deferring {
		w.deferring, w.since = true, now
	}
}

// Settle records that the job got a slot now and deferred none.
func (w *Wait) Settle(now time.Duration) {
	w.past = w.Total(now)
	w.deferring = false
}

// Restart begins a new spell, as Algorithm 1 does at every launch (line 12).
func (w *Wait) Restart(now time.Duration) {
	w.Settle(now)
	w.deferring, w.since = true, now
}

// Spell returns the length of the current spell, or 0.
func (w *Wait) Spell(now time.Duration) time.Duration {
	if !w.deferring {
		return 0
	}
	return max(0, now-w.since)
}

// Total returns the length of all spells together. A task has been deferred for as long as Total
// has grown since the task's first deferral.
func (w *Wait) Total(now time.Duration) time.Duration { return w.past + w.Spell(now) }
