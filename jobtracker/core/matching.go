package core

import (
	"slices"

	"github.com/quernmr/quern/wire"
)

// assignMaps gives the free map slots away. The job first in line has the first
// slot, on whichever tracker is best for it. One that has no map near any of them
// and need not wait has a slot set aside, and takes it when all others have what
// is near to them; one that is to wait is passed over. A map that has failed on a
// tracker goes there again, not strictly, only if no other can take it now.
func (l *Live) assignMaps(strict bool) {
	l.pass++
	for l.matchMaps(strict) {
	}
}

// matchMaps goes through the line once. It says whether that changed anything.
func (l *Live) matchMaps(strict bool) bool {
	free, p := &l.free[mapPhase], &l.phases[mapPhase]
	changed := false
	var far []*job
	// Who is given something moves back in the line, so the next is where it stood.
	for i := 0; i < len(p.line) && free.Len() > len(far); {
		j := p.line[i]
		l.ripen(j)
		switch {
		case l.giveNear(j, strict):
			changed = true
		case l.mayGoFar(j, strict):
			far = append(far, j)
			j.far++
			l.move(j)
		default:
			i++
		}
		l.lineUp()
	}
	for _, j := range far {
		j.far--
		l.move(j)
	}
	for _, j := range far {
		changed = true
		if t, m := l.findFar(j, strict); t == nil {
			j.look.blocked = l.pass // another job has what it would have taken
		} else if j.runnable() {
			l.giveMap(j, m, t)
		}
	}
	l.lineUp()
	return changed
}

func (l *Live) giveMap(j *job, m int, t *tracker) {
	l.cursor = t.index + 1
	l.launch(j, &j.maps[m].task, t, wire.AttemptID{})
}

// looked is what has not been found for a job among the free slots, by the pass
// in which: these and the maps to launch only get fewer in a pass.
type looked struct{ near, rack, far, blocked int }

// giveNear launches a map of a job on a node that keeps its input.
func (l *Live) giveNear(j *job, strict bool) bool {
	if j.look.near == l.pass || len(j.nodes) == 0 {
		return false
	}
	t, m := l.find(func(t *tracker) int { return j.pickNear(t, strict) })
	if t == nil {
		j.look.near = l.pass
		return false
	}
	l.giveMap(j, m, t)
	return true
}

// mayGoFar says whether a job can use one more slot that is not near any input of its.
func (l *Live) mayGoFar(j *job, strict bool) bool {
	if j.look.blocked == l.pass || j.far >= max(j.ripe[rackRipe].Len(), j.ripe[anyRipe].Len()) {
		return false
	}
	t, _ := l.findFar(j, strict)
	return t != nil
}

// findFar finds the nearest slot for a map that need not wait for a nearer one.
func (l *Live) findFar(j *job, strict bool) (*tracker, int) {
	if j.look.rack != l.pass && len(j.racks) > 0 && j.ripe[rackRipe].Len() > 0 {
		if t, m := l.find(func(t *tracker) int { return j.pickRack(t, strict) }); t != nil {
			return t, m
		}
		j.look.rack = l.pass
	}
	if j.look.far != l.pass && j.ripe[anyRipe].Len() > 0 {
		if t, m := l.find(func(t *tracker) int { return j.pickAny(t, strict) }); t != nil {
			return t, m
		}
		j.look.far = l.pass
	}
	return nil, -1
}

// find tries the free trackers in turn, from where the last map was given away.
func (l *Live) find(pick func(*tracker) int) (*tracker, int) {
	free := &l.free[mapPhase]
	i := l.cursor
	for range free.Len() {
		if i = free.Next(i); i < 0 {
			i = free.Next(0)
		}
		if m := pick(l.byIndex[i]); m >= 0 {
			return l.byIndex[i], m
		}
		i++
	}
	return nil, -1
}

// pickNear is the lowest map to launch whose input is on t's node, or -1.
func (j *job) pickNear(t *tracker, strict bool) int {
	return j.nodes[t.host].pick(&j.pending, j, t, strict)
}

// pickRack is the lowest one with input in t's rack that need not wait for its node, or -1.
func (j *job) pickRack(t *tracker, strict bool) int {
	return j.racks[t.rack].pick(&j.ripe[rackRipe], j, t, strict)
}

// pickAny is the lowest one that need not wait for anything, or -1.
func (j *job) pickAny(t *tracker, strict bool) int {
	for m := range j.ripe[anyRipe].All() {
		if j.mayRun(m, t, strict) {
			return m
		}
	}
	return -1
}

func (j *job) mayRun(m int, t *tracker, strict bool) bool {
	return !strict || !slices.Contains(j.maps[m].avoid, t.Name)
}
