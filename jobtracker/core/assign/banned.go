package assign

import "slices"

// A job may be banned from trackers, which then run none of its maps: for the job, they take no
// maps. While all free slots are on such trackers, the job is shut out: it leaves the line.
//
// A held tracker keeps its place, but gets no task until it is released.

// SetBanned bans a job from a tracker, or ends that.
func (a *Assigner) SetBanned(j *Job, t *Tracker, banned bool) {
	if !j.banned.Set(int(t.index), banned) || !j.Indexed() {
		return
	}
	if t.takesMaps && !t.node.takesMapsOf(j, t) {
		a.setLive(j, t.node, !banned)
	}
	for m := range j.aside.All() {
		a.BringBack(j, m)
	}
	a.uncheck(t)
	a.MarkChanged(j)
}

// Banned reports whether a job is banned from a tracker.
func (j *Job) Banned(t *Tracker) bool { return j.banned.Has(int(t.index)) }

// bannedFromFree reports whether map slots are free for a job, and it is banned from all trackers with
// them.
func (a *Assigner) bannedFromFree(j *Job) bool {
	free := j.FreeFor(Map)
	if j.banned.Len() == 0 || free.Len() == 0 {
		return false
	}
	for i := range free.All() {
		if !j.banned.Has(i) {
			return false
		}
	}
	return true
}

// shutOut removes a job from the line, since it is banned from all trackers with free map slots.
func (a *Assigner) shutOut(j *Job) {
	j.shutOut = true
	a.jobsShutOut = append(a.jobsShutOut, j)
	a.MarkChanged(j)
}

// ShutOut reports whether a job has left the line, since it was banned from all trackers with free map
// slots.
func (j *Job) ShutOut() bool { return j.shutOut }

// letIn returns jobs to the line that are no longer banned from all trackers with free map slots.
func (a *Assigner) letIn() {
	a.jobsShutOut = slices.DeleteFunc(a.jobsShutOut, func(j *Job) bool {
		if a.bannedFromFree(j) {
			return false
		}
		j.shutOut = false
		a.MarkChanged(j)
		return true
	})
}

// Held reports whether a tracker is held.
func (t *Tracker) Held() bool { return t.held }

// SetHeld holds a tracker, or releases it.
func (a *Assigner) SetHeld(t *Tracker, held bool) {
	t.held = held
	for phase := range a.phases {
		a.refresh(t, phase)
	}
}
