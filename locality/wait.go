package locality

import "time"

// Wait measures how long a job phase has been deferring slots for locality.
//
// A spell begins when the job defers a slot and ends with a round in which it gets a slot and
// defers none. The spell continues while other jobs keep the deferred slot busy, because the
// job still deserves one. In Algorithm 1 every launch restarts the spell, so one local launch
// in time keeps all other slots idle for ever (SPARK-18886): see Restart.
type Wait struct {
	refusing bool
	since    time.Duration // when the spell began
	past     time.Duration // total of the spells that have ended
}

// Refuse records that a slot is deferred now.
func (w *Wait) Refuse(now time.Duration) {
	if !w.refusing {
		w.refusing, w.since = true, now
	}
}

// Settle records that the job got a slot now and deferred none.
func (w *Wait) Settle(now time.Duration) {
	w.past = w.Total(now)
	w.refusing = false
}

// Restart begins a new spell, as Algorithm 1 does at every launch (line 12).
func (w *Wait) Restart(now time.Duration) {
	w.Settle(now)
	w.refusing, w.since = true, now
}

// Spell returns the length of the present spell; 0 if there is none.
func (w *Wait) Spell(now time.Duration) time.Duration {
	if !w.refusing {
		return 0
	}
	return max(0, now-w.since)
}

// Total returns the length of all spells together. The difference to its value at a task's
// first deferral is how long the task has been deferred.
func (w *Wait) Total(now time.Duration) time.Duration { return w.past + w.Spell(now) }
