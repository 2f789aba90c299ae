package assign

import "github.com/quernmr/quern/jobtracker/core/taskset"

// AssignMaps gives the free map slots away. The job first in line has the first
// slot, on whichever tracker is best for it. One that has no local map for any of them
// and need not wait has a slot reserved, and takes it when all others have what
// is local to them; one that is to wait is deferred. A map that has failed on a
// tracker goes there again, not strictly, only if no other can take it now and it has
// waited for one; until then it is set aside.
//
// Only unchecked slots are looked at for local maps: those that have become free, or for
// which a local map has become one to launch. Of the others it is known that no job
// in line, nor a deferred one, has any. So afterwards no slot is free, or no job in line.
func (a *Assigner) AssignMaps() {
	a.lineUp()
	p := &a.phases[Map]
	if p.free.Len() == 0 || p.line.Len()+len(a.deferred)+len(a.asideJobs) == 0 && !p.hasQueues {
		return
	}
	a.round++
	a.bringBack()
	a.launchQueued()
	a.lookAhead()
	for _, strict := range []bool{true, false} {
		a.pass++
		for a.matchMaps(strict) {
		}
	}
	now := a.cluster.Now()
	for _, j := range a.launched {
		if !j.deferred && j.deferredIn != a.round {
			j.wait.Settle(now)
		}
	}
	a.launched = a.launched[:0]
	for i := range a.unchecked.All() {
		a.unchecked.Remove(i)
	}
}

// MapsWait brings all jobs to their places, and says whether map slots are free and jobs in
// line for them.
func (a *Assigner) MapsWait() bool {
	a.lineUp()
	p := &a.phases[Map]
	return p.free.Len() > 0 && p.line.Len() > 0
}

// reserved is a slot that is kept for a job, for one map or, -1, any that may run anywhere.
type reserved struct {
	job *Job
	m   int
}

// matchMaps gives each job in line a turn, and another one as long as it takes something:
// what it takes moves it back in the line. Then the reserved slots are filled. It
// says whether that changed anything.
func (a *Assigner) matchMaps(strict bool) (changed bool) {
	free := &a.phases[Map].free
	if free.Len() == 0 {
		return false
	}
	a.recallLocal(strict)
	a.lineUp()
	a.reserved = a.reserved[:0]
	for hadTurns := 0; free.Len() > len(a.reserved); {
		j := a.first(Map, hadTurns)
		if j == nil {
			break
		}
		switch a.turn(j, strict) {
		case tookLocal:
			changed = true
		case tookNothing:
			if a.first(Map, hadTurns) == j { // else it was deferred, and is not in line
				hadTurns++
			}
		}
	}
	return a.fillReserved(strict) || changed
}

// outcome is what came of a job's turn.
type outcome int

const (
	tookLocal   outcome = iota // it launched a local map
	tookReserve                // a slot is reserved for it
	tookNothing                // it can use no slot now
)

// turn lets a job take one slot, and brings it to its new place in the line.
func (a *Assigner) turn(j *Job, strict bool) outcome {
	defer a.lineUp()
	if a.launchLocal(j, strict) {
		return tookLocal
	}
	m, ok := a.mayReserve(j, strict)
	if !ok {
		return tookNothing
	}
	a.reserved = append(a.reserved, reserved{j, m})
	j.reserved++
	a.Move(j)
	return tookReserve
}

// fillReserved launches maps in the slots that were reserved. It says whether there were any.
func (a *Assigner) fillReserved(strict bool) bool {
	for _, r := range a.reserved {
		r.job.reserved--
		a.Move(r.job)
	}
	for _, r := range a.reserved {
		switch t, m := a.findSlot(r, strict); {
		case t != nil && a.mayTake(r.job, Map):
			a.launch(r.job, m, t)
		case t == nil && (strict || r.m >= 0 || r.job.relaxed.Len() == 0): // else it is set aside
			r.job.looked.blocked = a.pass // another job has what it would have taken
		}
	}
	a.lineUp()
	return len(a.reserved) > 0
}

// looked is what has not been found for a job among the free slots, by the pass
// in which: these and the maps to launch only get fewer in a pass.
type looked struct {
	local    int // no local map
	blocked  int // no map at all
	anywhere int // nothing to wait for: the delay rule lets all its maps run anywhere
}

// launchLocal launches a map of a job on a node that keeps its input.
func (a *Assigner) launchLocal(j *Job, strict bool) bool {
	if j.looked.local == a.pass || len(j.in.onNodes.all) == 0 {
		return false
	}
	t, m := a.find(&a.unchecked, func(t *Tracker) int { return a.pickLocal(j, t, strict) })
	if t == nil {
		j.looked.local = a.pass
		return false
	}
	a.launch(j, m, t)
	return true
}

// mayReserve says whether a job can use one more slot that is not local to any of its maps,
// and for which map. If all that it can do is wait, it is deferred.
func (a *Assigner) mayReserve(j *Job, strict bool) (m int, ok bool) {
	if j.looked.blocked == a.pass {
		return -1, false
	}
	if j.relaxed.Len() > j.reserved {
		if t, _ := a.findSlot(reserved{j, -1}, strict); t != nil {
			return -1, true
		}
		// They have failed wherever there is a slot, and hide no others.
		if !strict && j.reserved == 0 && a.setAside(j) {
			return -1, true
		}
	}
	bound := j.pending.Len() - j.relaxed.Len()
	if bound == 0 || j.looked.anywhere == a.pass {
		return -1, bound > 0
	}
	v := a.judge(j)
	switch {
	case !v.launch:
		if j.reserved == 0 && j.relaxed.Len() == 0 {
			a.deferUntil(j, a.cluster.Now()+v.again)
		}
		return -1, false
	case v.m < 0:
		j.looked.anywhere = a.pass
	case j.reserved > 0:
		return -1, false // one such at a time
	}
	return v.m, true
}

// findSlot finds the nearest slot for a map that need not wait for a local one.
func (a *Assigner) findSlot(r reserved, strict bool) (*Tracker, int) {
	j, free := r.job, &a.phases[Map].free
	which := relaxed
	if j.looked.anywhere == a.pass {
		which = pending
	}
	if r.m >= 0 {
		if !j.pending.Has(r.m) {
			return nil, -1
		}
		return a.find(free, func(t *Tracker) int {
			if a.mayLaunch(j, r.m, t, strict) {
				return r.m
			}
			return -1
		})
	}
	if len(j.in.inRacks.all) > 0 {
		if t, m := a.find(free, func(t *Tracker) int { return a.pickInRack(j, which, t, strict) }); t != nil {
			return t, m
		}
	}
	return a.find(free, func(t *Tracker) int { return a.pickAny(j, which, t, strict) })
}

// find tries those of some trackers in turn that have a free map slot, from where the
// last map was launched.
func (a *Assigner) find(among *taskset.Set, pick func(*Tracker) int) (*Tracker, int) {
	i := a.cursor
	for range among.Len() {
		if i = among.Next(i); i < 0 {
			i = among.Next(0)
		}
		if a.phases[Map].free.Has(i) {
			if m := pick(a.trackers[i]); m >= 0 {
				return a.trackers[i], m
			}
		}
		i++
	}
	return nil, -1
}

// launch launches a map. It leaves the index first: where its input is can be found before
// the map itself is in the processor's cache.
func (a *Assigner) launch(j *Job, m int, t *Tracker) {
	a.cursor = int(t.index) + 1
	a.launched = append(a.launched, j)
	if j.pending.Remove(m) {
		a.unindex(j, m)
	}
	a.cluster.Launch(j, m, t)
}
