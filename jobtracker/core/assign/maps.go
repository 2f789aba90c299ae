package assign

import "github.com/quernmr/quern/jobtracker/core/taskset"

// AllowLaunches limits how many tasks the next rounds launch together. If Exhausted reports then that they have
// launched so many, another round continues.
func (a *Assigner) AllowLaunches(n int) { a.launches = n }

// Exhausted reports whether rounds have launched as many tasks as they may: slots may be free for others.
func (a *Assigner) Exhausted() bool { return a.launches <= 0 }

// AssignMaps assigns maps to the free map slots; the package comment lists the steps. A map runs
// again on a tracker where it failed only after it has waited for another one.
func (a *Assigner) AssignMaps() {
	a.letIn()
	a.updateLines()
	a.save(Map)
	p := &a.phases[Map]
	if p.free.Len() == 0 || p.line.open+len(a.deferred)+len(a.jobsWithAside) == 0 && !p.hasQueues || a.Exhausted() {
		return
	}
	a.round++
	a.bringBack()
	a.launchQueued()
	a.lookAhead()
	for _, strict := range []bool{true, false} {
		a.pass++
		for !a.Exhausted() && a.matchMaps(strict) {
		}
	}
	now := a.cluster.Now()
	for _, j := range a.launched {
		if !j.deferred && j.deferredRound != a.round {
			j.wait.Settle(now)
		}
	}
	a.launched = a.launched[:0]
	if a.Exhausted() {
		return
	}
	for i := range a.unchecked.All() {
		a.unchecked.Remove(i)
	}
	for _, g := range p.line.groups {
		g.recheck = false
	}
}

// MapsWait updates the lines, and reports whether map slots are free that jobs in line can use.
func (a *Assigner) MapsWait() bool {
	a.letIn() // a reduce may have ended the saving of a tracker
	a.updateLines()
	p := &a.phases[Map]
	if p.free.Len() == 0 {
		return false
	}
	clear(p.line.turns)
	return p.line.first(-1) >= 0
}

// reserved is a free slot that is reserved for map m of a job; -1: for any relaxed map.
type reserved struct {
	job *Job
	m   int
}

// matchMaps lets the jobs in line take turns until no job can use another slot. A slot moves its
// job back in the line. Then it fills the reserved slots. It returns whether it launched a local
// map or reserved a slot.
func (a *Assigner) matchMaps(strict bool) (changed bool) {
	free := &a.phases[Map].free
	if free.Len() == 0 {
		return false
	}
	a.recallLocal(strict)
	a.updateLines()
	a.reserved = a.reserved[:0]
	s := &a.phases[Map].line
	clear(s.turns)
	for free.Len() > len(a.reserved) && a.launches > len(a.reserved) {
		index := s.first(-1)
		if index < 0 {
			break
		}
		switch a.takeTurn(a.jobs[index], strict) {
		case tookLocal:
			changed = true
		case tookNothing:
			s.leaveOut(index) // unless it was deferred
		}
	}
	return a.fillReserved(strict) || changed
}

// outcome is the result of a job's turn.
type outcome int

const (
	tookLocal   outcome = iota // launched a local map
	tookReserve                // reserved a slot
	tookNothing                // can use no slot now
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
	a.reserve(j, 1)
	return tookReserve
}

// fillReserved launches maps in the reserved slots. It returns whether there were any.
func (a *Assigner) fillReserved(strict bool) bool {
	for _, r := range a.reserved {
		a.reserve(r.job, -1)
	}
	for _, r := range a.reserved {
		switch t, m := a.findSlot(r, strict); {
		case t != nil && a.mayTake(r.job, Map):
			a.launch(r.job, m, t)
		case t == nil && (strict || (r.m >= 0 || r.job.relaxed.Len() == 0) && !a.bannedFromFree(r.job)): // else its maps are set aside, or it is shut out
			r.job.findings.noSlotIn = a.pass // other jobs took all slots that it could use
		}
	}
	a.updateLines()
	return len(a.reserved) > 0
}

// reserve counts a reserved slot of a job, which counts as a slot of its pool too.
func (a *Assigner) reserve(j *Job, slots int) {
	j.reserved += slots
	if p := j.pool; p != nil {
		before := p.Full(Map)
		if p.reserved += slots; p.Full(Map) != before {
			a.updateFull(p.Name)
		}
	}
	a.MarkChanged(j)
}

// findings holds the last pass in which each finding was true. It then stays true for the rest of
// the pass, since slots and pending maps only become fewer.
type findings struct {
	noLocalIn  int // no map is local to a free slot
	noSlotIn   int // the job can use no free slot
	anywhereIn int // the delay rule lets all maps take any slot
}

// launchLocal launches a map of a job on a node with its input.
func (a *Assigner) launchLocal(j *Job, strict bool) bool {
	if j.findings.noLocalIn == a.pass || len(j.in.onNodes.all) == 0 {
		return false
	}
	among := &a.unchecked
	if p := &a.phases[Map]; p.line.groups[j.group].recheck {
		among = &p.free
	}
	t, m := a.find(j, among, func(t *Tracker) int { return a.pickLocal(j, t, strict) })
	if t == nil {
		j.findings.noLocalIn = a.pass
		return false
	}
	a.launch(j, m, t)
	return true
}

// mayReserve reports whether a job can use another slot that is local to none of its maps, and for
// which map; -1: any. It defers a job that must wait.
func (a *Assigner) mayReserve(j *Job, strict bool) (m int, ok bool) {
	if j.findings.noSlotIn == a.pass {
		return -1, false
	}
	if a.bannedFromFree(j) {
		if j.reserved == 0 {
			a.shutOut(j)
		}
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
	unrelaxed := j.pending.Len() - j.relaxed.Len()
	if unrelaxed == 0 || j.findings.anywhereIn == a.pass {
		return -1, unrelaxed > 0
	}
	d := a.decide(j)
	switch {
	case !d.launch:
		if j.reserved == 0 && j.relaxed.Len() == 0 {
			a.deferUntil(j, a.cluster.Now()+d.retryAfter)
		}
		return -1, false
	case d.onlyMap < 0:
		j.findings.anywhereIn = a.pass
	case j.reserved > 0:
		return -1, false // reserve for one map at a time
	}
	return d.onlyMap, true
}

// findSlot finds the nearest slot for a reservation, and a map for it.
func (a *Assigner) findSlot(r reserved, strict bool) (*Tracker, int) {
	j, free := r.job, r.job.FreeFor(Map)
	which := relaxed
	if j.findings.anywhereIn == a.pass {
		which = pending
	}
	if r.m >= 0 {
		if !j.pending.Has(r.m) {
			return nil, -1
		}
		return a.find(j, free, func(t *Tracker) int {
			if a.mayLaunch(j, r.m, t, strict) {
				return r.m
			}
			return -1
		})
	}
	if len(j.in.inRacks.all) > 0 {
		if t, m := a.find(j, free, func(t *Tracker) int { return a.pickInRack(j, which, t, strict) }); t != nil {
			return t, m
		}
	}
	return a.find(j, free, func(t *Tracker) int { return a.pickAny(j, which, t, strict) })
}

// find returns the first tracker with a free map slot for a job for which pick returns a map. It
// begins with the job's warm tracker, and goes on after the tracker of the last launch.
func (a *Assigner) find(j *Job, among *taskset.Set, pick func(*Tracker) int) (*Tracker, int) {
	if w := int(j.Warm) - 1; w >= 0 && among.Has(w) && j.FreeFor(Map).Has(w) {
		if m := pick(a.trackers[w]); m >= 0 {
			return a.trackers[w], m
		}
	}
	i := a.cursor
	for range among.Len() {
		if i = among.Next(i); i < 0 {
			i = among.Next(0)
		}
		if j.FreeFor(Map).Has(i) {
			if m := pick(a.trackers[i]); m >= 0 {
				return a.trackers[i], m
			}
		}
		i++
	}
	return nil, -1
}

// launch launches a map. It updates the index first, while the processor fetches the map's memory.
func (a *Assigner) launch(j *Job, m int, t *Tracker) {
	a.cursor = int(t.index) + 1
	a.launched = append(a.launched, j)
	a.launches--
	if j.pending.Remove(m) {
		a.unindex(j, m)
	}
	a.cluster.Launch(j, m, t)
}
