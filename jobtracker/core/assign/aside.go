package assign

import "slices"

// A map that has failed on all trackers with free slots, or may not run there, is set aside until
// another tracker has a free slot. No search for slots includes it meanwhile.

// setAside sets the relaxed maps of a job aside. The caller has checked that they may run on none of
// the trackers with free slots. A map that has failed on every tracker is not set aside and may run
// anywhere; setAside returns whether there is one.
func (a *Assigner) setAside(j *Job) (mayRun bool) {
	for m := range j.relaxed.All() {
		if a.cluster.StopAvoiding(j, m) {
			mayRun = true
			continue
		}
		a.takePending(j, m)
		j.aside.Add(m)
	}
	if j.aside.Len() > 0 && !slices.Contains(a.jobsWithAside, j) {
		a.jobsWithAside = append(a.jobsWithAside, j)
	}
	return mayRun
}

// bringBack makes maps that were set aside pending again: for each tracker with unchecked slots, at
// most as many of each job as it has free slots, and only maps that it may run.
func (a *Assigner) bringBack() {
	if len(a.jobsWithAside) == 0 {
		return
	}
	for i := range a.unchecked.All() {
		t := a.trackers[i]
		for _, j := range a.jobsWithAside {
			n := t.free[Map]
			if j.Banned(t) || !j.FreeFor(Map).Has(i) {
				continue
			}
			for m := range j.aside.All() {
				if n <= 0 {
					break
				}
				if a.mayLaunch(j, m, t, false) {
					a.BringBack(j, m)
					n--
				}
			}
		}
	}
	a.jobsWithAside = slices.DeleteFunc(a.jobsWithAside, func(j *Job) bool { return j.aside.Len() == 0 })
}

// bringAllBack makes all maps that were set aside pending again.
func (a *Assigner) bringAllBack() {
	for _, j := range a.jobsWithAside {
		for m := range j.aside.All() {
			a.BringBack(j, m)
		}
	}
	a.jobsWithAside = a.jobsWithAside[:0]
}

// BringBack makes a map pending again if it is set aside.
func (a *Assigner) BringBack(j *Job, m int) {
	if j.aside.Remove(m) {
		a.AddPending(j, m)
	}
}

// Aside counts the maps that are set aside.
func (j *Job) Aside() int { return j.aside.Len() }

// IsAside reports whether a map is set aside.
func (j *Job) IsAside(m int) bool { return j.aside.Has(m) }
