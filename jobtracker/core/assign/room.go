package assign

import "github.com/quernmr/quern/jobtracker/core/taskset"

// Room is memory and cores: what a tracker offers, or what a task requests beside its slot.
type Room struct {
	Memory int64 // bytes
	Cores  int
}

// holds reports whether an offer has a request left beside used room. A resource with offer 0 is not
// limited.
func (offer Room) holds(used, request Room) bool {
	return (offer.Memory == 0 || request.Memory == 0 || request.Memory <= offer.Memory-used.Memory) &&
		(offer.Cores == 0 || request.Cores == 0 || request.Cores <= offer.Cores-used.Cores)
}

// Holds reports whether an offer is enough for a request, if nothing of it is used.
func (offer Room) Holds(request Room) bool { return offer.holds(Room{}, request) }

// times returns how often an offer holds a request, at most limit.
func (offer Room) times(request Room, limit int) int {
	if offer.Memory > 0 && request.Memory > 0 {
		limit = int(min(int64(limit), offer.Memory/request.Memory))
	}
	if offer.Cores > 0 && request.Cores > 0 {
		limit = min(limit, offer.Cores/request.Cores)
	}
	return limit
}

// lack returns the largest part of a request that an offer does not have left, from 0 to 1.
func (offer Room) lack(used, request Room) float64 {
	lack := 0.0
	if offer.Memory > 0 && request.Memory > 0 {
		lack = float64(request.Memory-(offer.Memory-used.Memory)) / float64(request.Memory)
	}
	if offer.Cores > 0 && request.Cores > 0 {
		lack = max(lack, float64(request.Cores-(offer.Cores-used.Cores))/float64(request.Cores))
	}
	return min(max(lack, 0), 1)
}

// add adds the room of n tasks.
func (r *Room) add(x Room, n int) {
	r.Memory += int64(n) * x.Memory
	r.Cores += n * x.Cores
}

// class has what all tasks with the same request share. Class 0 requests nothing.
type class struct {
	request Room
	index   int
	jobs    int            // jobs with maps or reduces that request this; a job may count twice
	free    [2]taskset.Set // by phase: trackers with a free slot, the room, and not saved for others
	fits    [2]int         // by phase: slots that these tasks could have if no other task ran
	saved   [2]*Tracker    // by phase: the tracker that the line saves for the class
}

// SetRequests sets what a job's maps and reduces request. It follows AddJob.
func (a *Assigner) SetRequests(j *Job, requests [2]Room) {
	for phase, request := range requests {
		old := j.class[phase]
		j.class[phase] = a.classOf(request)
		a.dropClass(old)
	}
	j.group = a.groupOf(keyOf(j))
	a.MarkChanged(j)
}

// classOf returns the class of a request, and counts one more job in it.
func (a *Assigner) classOf(request Room) *class {
	for _, c := range a.classes {
		if c != nil && c.request == request {
			c.jobs++
			return c
		}
	}
	c := &class{request: request, jobs: 1}
	c.index = insert(&a.classes, c)
	for _, t := range a.trackers {
		if t == nil {
			continue
		}
		for phase := range c.free {
			c.fits[phase] += t.offer.times(request, t.counted[phase])
			a.refreshClass(t, phase, c)
		}
	}
	return c
}

// dropClass counts one job less in a class. It forgets a class without jobs, except class 0.
func (a *Assigner) dropClass(c *class) {
	if c.jobs--; c.jobs > 0 || c.index == 0 {
		return
	}
	for i := len(a.saved) - 1; i >= 0; i-- {
		if a.saved[i].savedFor == c {
			a.endSaving(a.saved[i])
		}
	}
	a.dropGroups(c)
	a.classes[c.index] = nil
}

// SetOffer sets what a tracker offers.
func (a *Assigner) SetOffer(t *Tracker, offer Room) {
	if offer == t.offer {
		return
	}
	a.countFits(t, offer, t.counted)
	t.offer = offer
	a.refreshBoth(t)
}

// SetCounted sets how many slots of a tracker count for Fits: none while it takes no work.
func (a *Assigner) SetCounted(t *Tracker, slots [2]int) {
	if slots != t.counted {
		a.countFits(t, t.offer, slots)
		t.counted = slots
	}
}

// countFits replaces a tracker's part of class.fits.
func (a *Assigner) countFits(t *Tracker, offer Room, counted [2]int) {
	for _, c := range a.classes {
		if c == nil {
			continue
		}
		for phase := range c.fits {
			c.fits[phase] += offer.times(c.request, counted[phase]) - t.offer.times(c.request, t.counted[phase])
		}
	}
}

// refreshBoth updates the sets of both phases: their tasks share a tracker's room.
func (a *Assigner) refreshBoth(t *Tracker) {
	for phase := range a.phases {
		a.refresh(t, phase)
	}
}

// refreshClass updates whether a tracker can take tasks of a class. It returns whether it can now,
// and could not before.
func (a *Assigner) refreshClass(t *Tracker, phase int, c *class) (opened bool) {
	free := a.phases[phase].free.Has(int(t.index)) && t.hasRoom(c, phase)
	return c.free[phase].Set(int(t.index), free) && free
}

// hasRoom reports whether a tracker has the room for a task of a class, and is not saved for others.
func (t *Tracker) hasRoom(c *class, phase int) bool {
	return t.offer.holds(t.used, c.request) && (t.savedFor == nil || t.savedFor == c && t.savedPhase == phase)
}

// useRoom adds the room of n tasks, which may be negative, to what is used on a tracker.
func (a *Assigner) useRoom(t *Tracker, c *class, n int) {
	if c.request != (Room{}) {
		t.used.add(c.request, n)
		a.refreshBoth(t)
	}
}

// Request returns what a job's tasks of a phase request.
func (j *Job) Request(phase int) Room { return j.class[phase].request }

// Fits counts the slots of a phase that a job could have if no other job ran.
func (j *Job) Fits(phase int) int { return j.class[phase].fits[phase] }

// FreeFor returns the trackers that can take a task of a job. It must not be changed.
func (j *Job) FreeFor(phase int) *taskset.Set { return &j.class[phase].free[phase] }

// HasRoom reports whether a tracker has the room for a task of a job, and is not saved for others.
// It ignores slots.
func (t *Tracker) HasRoom(j *Job, phase int) bool { return t.hasRoom(j.class[phase], phase) }

// CouldHold reports whether a tracker offers enough for a task of a job, if no other runs there.
func (t *Tracker) CouldHold(j *Job, phase int) bool { return t.offer.Holds(j.Request(phase)) }

// Offer returns what a tracker offers, and Used what its tasks use of that.
func (t *Tracker) Offer() Room { return t.offer }

// Used returns the room that tasks use on a tracker.
func (t *Tracker) Used() Room { return t.used }
