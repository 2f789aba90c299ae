package assign

import "slices"

// A map that has failed wherever a slot is free is set aside until another tracker has one,
// so that the slots and the line of jobs need not be looked at for it.

// setAside sets the relaxed maps of a job aside. The caller knows that failures alone keep
// them from the free slots: any other rule is asked before. It returns whether there is one
// for which there is no other tracker; that one waits no longer.
func (a *Assigner) setAside(j *Job) (some bool) {
	for m := range j.relaxed.All() {
		if a.cluster.StopAvoiding(j, m) {
			some = true
			continue
		}
		a.unpend(j, m)
		j.aside.Add(m)
	}
	if j.aside.Len() > 0 && !slices.Contains(a.asideJobs, j) {
		a.asideJobs = append(a.asideJobs, j)
	}
	return some
}

// bringBack brings as many of the maps that were set aside back as the slots can take
// that have become free on other trackers.
func (a *Assigner) bringBack() {
	if len(a.asideJobs) == 0 {
		return
	}
	for i := range a.unchecked.All() {
		t := a.trackers[i]
		for _, j := range a.asideJobs {
			n := t.free[Map]
			for m := range j.aside.All() {
				if n <= 0 {
					break
				}
				if a.cluster.MayRetry(j, m, t, true) {
					a.BringBack(j, m)
					n--
				}
			}
		}
	}
	a.asideJobs = slices.DeleteFunc(a.asideJobs, func(j *Job) bool { return j.aside.Len() == 0 })
}

// allBack brings all of them back, when there may be no tracker that they can wait for.
func (a *Assigner) allBack() {
	for _, j := range a.asideJobs {
		for m := range j.aside.All() {
			a.BringBack(j, m)
		}
	}
	a.asideJobs = a.asideJobs[:0]
}

// BringBack has a map wait for a slot again, if it is set aside.
func (a *Assigner) BringBack(j *Job, m int) {
	if j.aside.Remove(m) {
		a.Enter(j, m)
	}
}

// Aside counts the maps that are set aside.
func (j *Job) Aside() int { return j.aside.Len() }

// IsAside says whether a map is set aside.
func (j *Job) IsAside(m int) bool { return j.aside.Has(m) }
