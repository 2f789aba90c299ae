package locality

import "time"

// Wait is how long a job phase has been refusing slots for want of locality. The zero
// Wait has not.
//
// A spell begins when the job refuses a slot and ends with a round in which it is given
// a slot and refuses none. While others keep the refused slot busy the spell goes on, as
// the job is still owed one. Algorithm 1 begins anew with every launch instead, so that
// one local launch in time keeps all other slots idle for ever (SPARK-18886): see
// Restart.
type Wait struct {
	refusing bool
	since    time.Duration // when the spell began
	past     time.Duration // spells that have ended, together
}

// Refuse says that a slot is refused now.
func (w *Wait) Refuse(now time.Duration) {
	if !w.refusing {
		w.refusing, w.since = true, now
	}
}

// Settle says that the job was given a slot now and refused none.
func (w *Wait) Settle(now time.Duration) {
	w.past = w.Total(now)
	w.refusing = false
}

// Restart begins a spell anew, as Algorithm 1 does at every launch (line 12).
func (w *Wait) Restart(now time.Duration) {
	w.Settle(now)
	w.refusing, w.since = true, now
}

// Spell is the length of the present spell; 0 if there is none.
func (w *Wait) Spell(now time.Duration) time.Duration {
	if !w.refusing {
		return 0
	}
	return max(0, now-w.since)
}

// Total is the length of all spells together. A task that notes it when it is first
// refused a slot knows from the difference how long it has been waiting in all.
func (w *Wait) Total(now time.Duration) time.Duration { return w.past + w.Spell(now) }
