package core

import (
	"github.com/quernmr/quern/jobtracker/core/taskset"
	"github.com/quernmr/quern/wire"
)

// assignMaps gives the free map slots away. The job first in line has the first
// slot, on whichever tracker is best for it. One that has no map near any of them
// and need not wait has a slot set aside, and takes it when all others have what
// is near to them; one that is to wait is passed over. A map that has failed on a
// tracker goes there again, not strictly, only if no other can take it now and it has
// waited for one; until then it is set aside.
//
// Only fresh slots are looked at for maps near to them: those that have become free,
// or near which a map has become one to launch. Of the others it is known that nobody
// in line, nor who refuses, has any. So afterwards no slot is free, or nobody in line.
func (l *Live) assignMaps() {
	free, line := &l.free[mapPhase], &l.phases[mapPhase].line
	if free.Len() == 0 || line.Len()+len(l.refusing)+len(l.setAsides) == 0 && !l.phases[mapPhase].queued {
		return
	}
	l.round++
	l.bringBack()
	l.serveQueues()
	l.lookAhead()
	for _, strict := range []bool{true, false} {
		l.pass++
		for l.matchMaps(strict) {
		}
	}
	for _, j := range l.given {
		if !j.refuses && j.refusedIn != l.round {
			j.wait.Settle(l.now)
		}
	}
	l.given = l.given[:0]
	for i := range l.fresh.All() {
		l.fresh.Remove(i)
	}
}

// choice is a slot set aside for a job, for one map or, -1, any that may go far.
type choice struct {
	job *job
	m   int
}

// matchMaps goes through the line once. It says whether that changed anything.
func (l *Live) matchMaps(strict bool) bool {
	free, p := &l.free[mapPhase], &l.phases[mapPhase]
	if free.Len() == 0 {
		return false
	}
	l.recallNear(strict)
	l.lineUp()
	changed := false
	far := l.far[:0]
	// Who is given something moves back in the line, so the next is where it stood.
	for i := 0; i < p.line.Len() && free.Len() > len(far); {
		j := p.line.at(i)
		if l.giveNear(j, strict) {
			changed = true
		} else if m, ok := l.mayGoFar(j, strict); ok {
			far = append(far, choice{j, m})
			j.far++
			l.move(j)
		} else {
			l.lineUp()
			if i < p.line.Len() && p.line.at(i) == j { // else it has left the line
				i++
			}
		}
		l.lineUp()
	}
	for _, c := range far {
		c.job.far--
		l.move(c.job)
	}
	for _, c := range far {
		changed = true
		if t, m := l.findFar(c, strict); t == nil {
			if strict || c.m >= 0 || c.job.loose.Len() == 0 { // else it is set aside
				c.job.look.blocked = l.pass // another job has what it would have taken
			}
		} else if l.mayTake(c.job, mapPhase) {
			l.giveMap(c.job, m, t)
		}
	}
	l.far = far[:0]
	l.lineUp()
	return changed
}

// mayLaunch says whether tasks of a job may be launched at all.
func (l *Live) mayLaunch(j *job) bool {
	return j.runnable() && !j.facts.Submission().Suspended() && !j.barred
}

// mayTake says whether a job may have another slot of a phase.
func (l *Live) mayTake(j *job, phase int) bool { return l.mayLaunch(j) && !j.party.full(phase) }

func (l *Live) giveMap(j *job, m int, t *tracker) {
	l.cursor = t.index + 1
	l.given = append(l.given, j)
	if j.pending.Remove(m) { // here, since where its input is can be found before the map itself
		l.leave(j, m)
	}
	l.launch(j, &j.maps[m].task, t, wire.AttemptID{})
}

// recallNear brings those back who refuse other slots and have maps near a fresh one:
// of each tracker the first.
func (l *Live) recallNear(strict bool) {
	if len(l.refusing) == 0 {
		return
	}
	l.lineUp()
	for i := range l.fresh.All() {
		t := l.byIndex[i]
		if !l.free[mapPhase].Has(i) || l.pull[t.place] == 0 {
			continue
		}
		for _, seat := range l.phases[mapPhase].line.out {
			if j := l.seats[seat]; j.refuses && j.pickNear(t, strict) >= 0 {
				l.askAgain(j)
				break
			}
		}
	}
}

// looked is what has not been found for a job among the free slots, by the pass
// in which: these and the maps to launch only get fewer in a pass.
type looked struct{ near, blocked, roams int }

// giveNear launches a map of a job on a node that keeps its input.
func (l *Live) giveNear(j *job, strict bool) bool {
	if j.look.near == l.pass || len(j.in.atNodes.all) == 0 {
		return false
	}
	t, m := l.find(&l.fresh, func(t *tracker) int { return j.pickNear(t, strict) })
	if t == nil {
		j.look.near = l.pass
		return false
	}
	l.giveMap(j, m, t)
	return true
}

// mayGoFar says whether a job can use one more slot that is not near any input of
// its, and for which map. If all that it can do is wait, it leaves the line.
func (l *Live) mayGoFar(j *job, strict bool) (m int, ok bool) {
	if j.look.blocked == l.pass {
		return -1, false
	}
	if loose := j.loose.Len(); loose > j.far {
		if t, _ := l.findFar(choice{j, -1}, strict); t != nil {
			return -1, true
		}
		// They have failed wherever there is a slot, and hide no others.
		if !strict && j.far == 0 && l.setAside(j) {
			return -1, true
		}
	}
	bound := j.pending.Len() - j.loose.Len()
	if bound == 0 || j.look.roams == l.pass {
		return -1, bound > 0
	}
	v := l.judge(j)
	switch {
	case !v.launch:
		if j.far == 0 && j.loose.Len() == 0 {
			l.passOver(j, l.now+v.again)
		}
		return -1, false
	case v.m < 0:
		j.look.roams = l.pass
	case j.far > 0:
		return -1, false // one such at a time
	}
	return v.m, true
}

// findFar finds the nearest slot for a map that need not wait for a nearer one.
func (l *Live) findFar(c choice, strict bool) (*tracker, int) {
	j, free := c.job, &l.free[mapPhase]
	which := amongLoose
	if j.look.roams == l.pass {
		which = amongPending
	}
	if c.m >= 0 {
		if !j.pending.Has(c.m) {
			return nil, -1
		}
		return l.find(free, func(t *tracker) int {
			if j.mayRun(c.m, t, strict) {
				return c.m
			}
			return -1
		})
	}
	if len(j.in.inRacks.all) > 0 {
		if t, m := l.find(free, func(t *tracker) int { return j.pickInRack(which, t, strict) }); t != nil {
			return t, m
		}
	}
	return l.find(free, func(t *tracker) int { return j.pickAny(which, t, strict) })
}

// find tries those of some trackers in turn that have a free map slot, from where the
// last map was given away.
func (l *Live) find(among *taskset.Set, pick func(*tracker) int) (*tracker, int) {
	i := l.cursor
	for range among.Len() {
		if i = among.Next(i); i < 0 {
			i = among.Next(0)
		}
		if l.free[mapPhase].Has(i) {
			if m := pick(l.byIndex[i]); m >= 0 {
				return l.byIndex[i], m
			}
		}
		i++
	}
	return nil, -1
}
