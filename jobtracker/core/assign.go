package core

import (
	"cmp"
	"slices"

	"github.com/quernmr/quern/wire"
)

// candidate is a job that has tasks to launch in a phase, with what its place in
// the queue depends on.
type candidate struct {
	job   *job
	under int // slots below the plan's target, at least 0
	rank  int // place in the plan
}

// compareCandidates puts the most under-allocated job first. Jobs that have what
// the plan gives them follow in the plan's order, so that no slot stays empty.
func compareCandidates(a, b *candidate) int {
	return cmp.Or(
		cmp.Compare(b.under, a.under),
		rankUnlessUnder(a, b),
		cmp.Compare(a.job.facts.n, b.job.facts.n),
	)
}

func rankUnlessUnder(a, b *candidate) int {
	if a.under > 0 {
		return 0
	}
	return cmp.Compare(a.rank, b.rank)
}

// candidates lists the jobs with tasks to launch in a phase, first come first.
func (l *Live) candidates(p int) []*candidate {
	var list []*candidate
	for _, j := range l.order {
		waiting := j.pending.Len()
		if p == reducePhase {
			waiting = j.ready
		}
		if waiting > 0 && j.runnable() {
			list = append(list, l.phases[p].candidate(j, p))
		}
	}
	slices.SortFunc(list, compareCandidates)
	return list
}

// launched moves the first candidates[i], which has one slot more now, to its new place.
func launched(list []*candidate, i int) {
	c := list[i]
	c.under = max(c.under-1, 0)
	for ; i+1 < len(list) && compareCandidates(list[i+1], c) < 0; i++ {
		list[i] = list[i+1]
	}
	list[i] = c
}

// assign fills free slots.
func (l *Live) assign() {
	if l.free[mapPhase].Len() > 0 {
		l.assignMaps()
	}
	if l.free[reducePhase].Len() > 0 && l.offers.Len() > 0 {
		l.assignReduces()
	}
}

// assignMaps gives each tracker in turn one map until slots or maps run out. A
// map that has failed on a tracker goes there again only if no other can take it now.
func (l *Live) assignMaps() {
	list := l.candidates(mapPhase)
	for _, strict := range []bool{true, false} {
		if len(list) == 0 {
			return
		}
		open := l.openTrackers(mapPhase)
		for len(open) > 0 && len(list) > 0 {
			open = slices.DeleteFunc(open, func(t *tracker) bool {
				return !l.giveMap(t, list, strict) || t.free[mapPhase] <= 0
			})
			list = slices.DeleteFunc(list, func(c *candidate) bool { return c.job.pending.Len() == 0 || !c.job.runnable() })
		}
	}
}

// openTrackers lists those with a free slot, beginning after the one that was
// given a task last.
func (l *Live) openTrackers(p int) []*tracker {
	var open, first []*tracker
	for i := range l.free[p].All() {
		if i < l.cursor[p] {
			first = append(first, l.byIndex[i])
		} else {
			open = append(open, l.byIndex[i])
		}
	}
	return append(open, first...)
}

func (l *Live) giveMap(t *tracker, list []*candidate, strict bool) bool {
	for i, c := range list {
		m := c.job.pickMap(t, strict)
		if m < 0 || !c.job.runnable() {
			continue
		}
		l.launch(c.job, &c.job.maps[m].task, t, wire.AttemptID{})
		l.cursor[mapPhase] = t.index + 1
		launched(list, i)
		return true
	}
	return false
}

// pickMap is the lowest map to launch that may go to t, or -1.
func (j *job) pickMap(t *tracker, strict bool) int {
	for m := range j.pending.All() {
		if !strict || !slices.Contains(j.maps[m].avoid, t.Name) {
			return m
		}
	}
	return -1
}

// assignReduces fills the slots of trackers that are home to ready partitions.
func (l *Live) assignReduces() {
	list := l.candidates(reducePhase)
	if len(list) == 0 {
		return
	}
	var open []*tracker
	for i := range l.offers.All() {
		if l.free[reducePhase].Has(i) {
			open = append(open, l.byIndex[i])
		}
	}
	for len(open) > 0 {
		open = slices.DeleteFunc(open, func(t *tracker) bool {
			return !l.giveReduce(t, list) || t.free[reducePhase] <= 0
		})
	}
}

func (l *Live) giveReduce(t *tracker, list []*candidate) bool {
	for i, c := range list {
		ready := t.ready[c.job]
		if ready == nil || ready.Len() == 0 || !c.job.runnable() {
			continue
		}
		l.launch(c.job, &c.job.reduces[ready.Next(0)], t, wire.AttemptID{})
		launched(list, i)
		return true
	}
	return false
}
