package assign

import "time"

// A large request could wait for ever: tasks with small requests fill each piece of room that
// another task leaves. So a tracker is saved for it: until a task of its class has begun there, no
// other task begins there. Running tasks end, and then the tracker has all of its offer left.
//
// Saving goes by the line. It begins when all this is true of the first job of a class:
//   - it waits, and has got no slot for saveAfter
//   - no job before it in line can use a slot
//   - it can use no free slot, and a slot is free where only the room is missing
//
// It ends with the next slot of the job, or if the job cannot use that tracker any more.
//
// The caller may save trackers too, see SaveUntil. That ends when nothing with such a request waits any more.

// saveAfter is how long the first job of a class waits for a slot before a tracker is saved for it.
const saveAfter = 10 * time.Second

// maxSaved returns how many trackers may be saved at a time.
func (a *Assigner) maxSaved() int { return max(1, len(a.trackers)/10) }

// save begins and ends the saving of trackers for a phase, before a round assigns its slots.
func (a *Assigner) save(phase int) {
	if len(a.classes) == 1 {
		return // no job requests room
	}
	for i := len(a.saved) - 1; i >= 0; i-- {
		if t := a.saved[i]; t.savedPhase == phase && !a.keepSaved(t) {
			a.endSaving(t)
		}
	}
	for i, index := range a.phases[phase].line.firstOfEach(len(a.classes), phase) {
		if index < 0 || a.classes[i].request == (Room{}) {
			continue
		}
		if j := a.jobs[index]; a.longWaiting(j, phase) && len(a.saved) < a.maxSaved() && !a.isBehind(j, phase) {
			a.saveFor(j, phase)
		}
	}
}

// longWaiting reports whether a job that is first of its class has waited for saveAfter.
func (a *Assigner) longWaiting(j *Job, phase int) bool {
	now := a.cluster.Now()
	if !j.waits[phase] {
		j.waits[phase], j.waitsSince[phase] = true, now
	}
	return now >= j.waitsSince[phase]+saveAfter && j.class[phase].saved[phase] == nil
}

// isBehind reports whether a job before this one in line may use a free slot.
func (a *Assigner) isBehind(j *Job, phase int) bool {
	s := &a.phases[phase].line
	clear(s.turns)
	first := s.first(-1)
	return first >= 0 && s.positions[first].compare(&s.positions[j.index]) < 0
}

// saveFor saves the tracker for a job where the smallest part of its request is missing, unless the
// job can use a slot at once.
func (a *Assigner) saveFor(j *Job, phase int) {
	var best *Tracker
	least := 0.0
	for i := range a.phases[phase].free.All() {
		t := a.trackers[i]
		if t.savedFor != nil || !t.offer.holds(Room{}, j.Request(phase)) || !a.mayUse(j, phase, t) {
			continue
		}
		if t.HasRoom(j, phase) {
			return
		}
		if lack := t.offer.lack(t.used, j.Request(phase)); best == nil || lack < least {
			best, least = t, lack
		}
	}
	if best == nil {
		return
	}
	j.class[phase].saved[phase] = best
	a.saveTracker(j, phase, best)
}

// mayUse reports whether a task of a job may run on a tracker, if it has a slot and the room.
func (a *Assigner) mayUse(j *Job, phase int, t *Tracker) bool {
	if phase == Reduce {
		return a.cluster.MayReduce(j, t)
	}
	return j.Indexed() && a.pickNearest(j, t) >= 0
}

// keepSaved reports whether a tracker stays saved.
func (a *Assigner) keepSaved(t *Tracker) bool {
	j, phase := t.savedJob, t.savedPhase
	if !t.offer.holds(Room{}, t.savedFor.request) {
		return false
	}
	if t.savedUntil > 0 {
		return a.cluster.Now() < t.savedUntil && (a.needsSlot(j, phase) || a.phases[phase].line.hasClass(t.savedFor, phase))
	}
	return !j.dropped && !j.pool.Full(phase) && j.waits[phase] && a.phases[phase].free.Has(int(t.index)) && a.mayUse(j, phase, t)
}

// needsSlot reports whether a job has tasks that may be launched, some perhaps only where no slot is free now.
func (a *Assigner) needsSlot(j *Job, phase int) bool {
	waiting := !j.dropped && a.ToLaunch(phase, j) > 0 || phase == Map && j.aside.Len() > 0
	return waiting && a.mayTake(j, phase)
}

// SaveUntil saves a tracker for one more task with a job's request until a time, unless the line has saved
// it, or it is saved for other requests. Attempts that were killed for the task end one after the other:
// without this, other tasks would begin in the first pieces of room that they leave.
func (a *Assigner) SaveUntil(j *Job, phase int, t *Tracker, until time.Duration) {
	switch {
	case j.Request(phase) == Room{}:
		return
	case t.savedUntil > 0 && t.savedFor == j.class[phase] && t.savedPhase == phase:
		t.savedUntil, t.savedTasks, t.savedJob = max(t.savedUntil, until), t.savedTasks+1, j
		return
	case t.savedFor != nil:
		return
	}
	t.savedUntil, t.savedTasks = until, 1
	a.saveTracker(j, phase, t)
}

func (a *Assigner) saveTracker(j *Job, phase int, t *Tracker) {
	t.savedFor, t.savedPhase, t.savedJob = j.class[phase], phase, j
	a.saved = append(a.saved, t)
	a.refreshBoth(t)
}

// endSaving ends the saving of a tracker; nil: none.
func (a *Assigner) endSaving(t *Tracker) {
	if t == nil || t.savedFor == nil {
		return
	}
	if c := t.savedFor; c.saved[t.savedPhase] == t {
		c.saved[t.savedPhase] = nil
	}
	t.savedFor, t.savedJob, t.savedUntil, t.savedTasks = nil, nil, 0, 0
	a.saved = without(a.saved, t)
	a.refreshBoth(t)
}

// gotSlot ends the wait of a job for a slot of a phase, and the saving of a tracker for it or for
// its class on the tracker of the slot.
func (a *Assigner) gotSlot(j *Job, t *Tracker, phase int) {
	j.waits[phase] = false
	c := j.class[phase]
	if t.savedFor == c && t.savedPhase == phase {
		if t.savedTasks--; t.savedTasks <= 0 {
			a.endSaving(t)
		}
	}
	if s := c.saved[phase]; s != nil && s.savedJob == j {
		a.endSaving(s)
	}
}

// Saved returns the only request of a phase with which tasks may begin on a tracker, if it is saved.
func (t *Tracker) Saved() (request Room, phase int, saved bool) {
	if t.savedFor == nil {
		return Room{}, 0, false
	}
	return t.savedFor.request, t.savedPhase, true
}

// SavedFor returns the tracker that the line saves for tasks with a job's request, or nil.
func (j *Job) SavedFor(phase int) *Tracker { return j.class[phase].saved[phase] }
