package assign

import "github.com/quernmr/quern/jobtracker/core/taskset"

// AssignMaps assigns maps to the free map slots; the package comment has the steps. A map
// returns to a tracker on which it failed only after it has waited for another one.
func (a *Assigner) AssignMaps() {
	a.updateLines()
	p := &a.phases[Map]
	if p.free.Len() == 0 || p.line.Len()+len(a.deferred)+len(a.jobsWithAside) == 0 && !p.hasQueues {
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
		if !j.deferred && j.deferredRound != a.round {
			j.wait.Settle(now)
		}
	}
	a.launched = a.launched[:0]
	for i := range a.unchecked.All() {
		a.unchecked.Remove(i)
	}
}

// MapsWait updates the lines, and reports whether map slots are free and jobs in line for them.
func (a *Assigner) MapsWait() bool {
	a.updateLines()
	p := &a.phases[Map]
	return p.free.Len() > 0 && p.line.Len() > 0
}

// reserved is a free slot that is reserved for map m of a job; -1: for any relaxed map.
type reserved struct {
	job *Job
	m   int
}

// matchMaps gives each job in line turns until it can use no more slots; each slot moves the
// job back in the line. Then it fills the reserved slots. It returns whether it launched a
// local map or reserved a slot.
func (a *Assigner) matchMaps(strict bool) (changed bool) {
	free := &a.phases[Map].free
	if free.Len() == 0 {
		return false
	}
	a.recallLocal(strict)
	a.updateLines()
	a.reserved = a.reserved[:0]
	for hadTurns := 0; free.Len() > len(a.reserved); {
		j := a.first(Map, hadTurns)
		if j == nil {
			break
		}
		switch a.takeTurn(j, strict) {
		case tookLocal:
			changed = true
		case tookNothing:
			if a.first(Map, hadTurns) == j { // else it was deferred
				hadTurns++
			}
		}
	}
	return a.fillReserved(strict) || changed
}

// outcome is the result of a job's turn.
type outcome int

const (
	tookLocal   outcome = iota // it launched a local map
	tookReserve                // a slot is reserved for it
	tookNothing                // it can use no slot now
)

// takeTurn lets a job take one slot, and updates the lines.
func (a *Assigner) takeTurn(j *Job, strict bool) outcome {
	defer a.updateLines()
	if a.launchLocal(j, strict) {
		return tookLocal
	}
	m, ok := a.mayReserve(j, strict)
	if !ok {
		return tookNothing
	}
	a.reserved = append(a.reserved, reserved{j, m})
	j.reserved++
	a.MarkChanged(j)
	return tookReserve
}

// fillReserved launches maps in the reserved slots. It returns whether there were any.
func (a *Assigner) fillReserved(strict bool) bool {
	for _, r := range a.reserved {
		r.job.reserved--
		a.MarkChanged(r.job)
	}
	for _, r := range a.reserved {
		switch t, m := a.findSlot(r, strict); {
		case t != nil && a.mayTake(r.job, Map):
			a.launch(r.job, m, t)
		case t == nil && (strict || r.m >= 0 || r.job.relaxed.Len() == 0): // else it is set aside
			r.job.findings.noSlotIn = a.pass // other jobs took the slots it could use
		}
	}
	a.updateLines()
	return len(a.reserved) > 0
}

// findings holds the pass in which each was found last. A finding stays true for the rest of
// its pass, since slots and pending maps only become fewer.
type findings struct {
	noLocalIn  int // no map is local to a free slot
	noSlotIn   int // no free slot can be used
	anywhereIn int // the delay rule lets all maps take any slot
}

// launchLocal launches a map of a job on a node with its input.
func (a *Assigner) launchLocal(j *Job, strict bool) bool {
	if j.findings.noLocalIn == a.pass || len(j.in.onNodes.all) == 0 {
		return false
	}
	t, m := a.find(&a.unchecked, func(t *Tracker) int { return a.pickLocal(j, t, strict) })
	if t == nil {
		j.findings.noLocalIn = a.pass
		return false
	}
	a.launch(j, m, t)
	return true
}

// mayReserve reports whether a job can use one more slot that is local to none of its maps,
// and for which map (-1: any). It defers a job that can only wait.
func (a *Assigner) mayReserve(j *Job, strict bool) (m int, ok bool) {
	if j.findings.noSlotIn == a.pass {
		return -1, false
	}
	if j.relaxed.Len() > j.reserved {
		if t, _ := a.findSlot(reserved{j, -1}, strict); t != nil {
			return -1, true
		}
		// The relaxed maps have failed on all trackers with free slots.
		if !strict && j.reserved == 0 && a.setAside(j) {
			return -1, true
		}
	}
	bound := j.pending.Len() - j.relaxed.Len()
	if bound == 0 || j.findings.anywhereIn == a.pass {
		return -1, bound > 0
	}
	v := a.decide(j)
	switch {
	case !v.launch:
		if j.reserved == 0 && j.relaxed.Len() == 0 {
			a.deferUntil(j, a.cluster.Now()+v.retryAfter)
		}
		return -1, false
	case v.onlyMap < 0:
		j.findings.anywhereIn = a.pass
	case j.reserved > 0:
		return -1, false // reserve for one map at a time
	}
	return v.onlyMap, true
}

// findSlot finds the nearest slot for a reservation, and a map for it.
func (a *Assigner) findSlot(r reserved, strict bool) (*Tracker, int) {
	j, free := r.job, &a.phases[Map].free
	which := relaxed
	if j.findings.anywhereIn == a.pass {
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

// find returns the first tracker with a free map slot for which pick finds a map. It begins
// after the tracker of the last launch.
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

// launch launches a map. It updates the index first, while the processor still fetches the
// map's own memory.
func (a *Assigner) launch(j *Job, m int, t *Tracker) {
	a.cursor = int(t.index) + 1
	a.launched = append(a.launched, j)
	if j.pending.Remove(m) {
		a.unindex(j, m)
	}
	a.cluster.Launch(j, m, t)
}
