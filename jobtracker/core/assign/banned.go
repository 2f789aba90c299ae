package assign

// A job may be banned from trackers, which then run none of its maps. While it is banned from one,
// its maps wait for no local slots: the delay rule would count the slots of that tracker. Maps for
// which only banned trackers have free slots are set aside.
//
// A held tracker keeps its place, but gets no task until it is released.

// SetBanned bans a job from a tracker, or ends that.
func (a *Assigner) SetBanned(j *Job, t *Tracker, banned bool) {
	if !j.banned.Set(int(t.index), banned) || !j.Indexed() {
		return
	}
	for m := range j.pending.All() {
		a.relax(j, m)
	}
	for m := range j.aside.All() {
		a.BringBack(j, m)
	}
	a.uncheck(t)
	a.MarkChanged(j)
}

// Banned reports whether a job is banned from a tracker.
func (j *Job) Banned(t *Tracker) bool { return j.banned.Has(int(t.index)) }

// bannedFromFree reports whether a job is banned from all trackers with free map slots.
func (a *Assigner) bannedFromFree(j *Job) bool {
	if j.banned.Len() == 0 {
		return false
	}
	for i := range a.phases[Map].free.All() {
		if !j.banned.Has(i) {
			return false
		}
	}
	return true
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
