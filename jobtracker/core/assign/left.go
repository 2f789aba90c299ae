package assign

import "time"

// A deferred job leaves free slots that it could use. The time of these slots is counted for displays: a slot
// that two jobs leave counts for both. It costs O(1) for each change of a tracker's free map slots, and for each
// wait of a job.

// idling counts free map slots of trackers that take work, and their time.
type idling struct {
	slots int
	total time.Duration // until since
	since time.Duration // time of the last change
}

// until returns the time of free map slots until now.
func (x *idling) until(now time.Duration) time.Duration {
	return x.total + time.Duration(x.slots)*(now-x.since)
}

// countIdle updates the free map slots that count for a tracker.
func (a *Assigner) countIdle(t *Tracker, slots int) {
	if slots == t.idle {
		return
	}
	now := a.cluster.Now()
	a.idle.total, a.idle.since = a.idle.until(now), now
	a.idle.slots += slots - t.idle
	t.idle = slots
}

// leaving is the slots that a job has left.
type leaving struct {
	past    time.Duration // in waits that are over
	idle    time.Duration // idling.until at the begin of this wait
	maps    int           // pending maps then
	waiting bool
}

// beginLeaving begins a wait of a job for local slots.
func (a *Assigner) beginLeaving(j *Job) {
	j.left.idle, j.left.maps, j.left.waiting = a.idle.until(a.cluster.Now()), j.pending.Len(), a.mayTake(j, Map)
}

// endLeaving ends a wait of a job for local slots.
func (a *Assigner) endLeaving(j *Job) {
	j.left.past = a.LeftSlots(j, a.cluster.Now())
	j.left.waiting = false
}

// LeftSlots returns the time of free map slots that a job has left to wait for local ones. In each wait they are
// at most the free slots, and at most one for each pending map.
func (a *Assigner) LeftSlots(j *Job, now time.Duration) time.Duration {
	if !j.left.waiting {
		return j.left.past
	}
	maps := max(j.left.maps, j.pending.Len())
	return j.left.past + min(a.idle.until(now)-j.left.idle, time.Duration(maps)*(now-j.deferredAt))
}
