package assign

import "slices"

// AssignReduces fills the free slots of trackers with ready partitions, one slot per tracker in each
// iteration. If jobs have partitions to gather, it tries all free slots.
func (a *Assigner) AssignReduces() {
	a.updateLines()
	a.save(Reduce)
	for launched := true; launched; {
		launched = false
		trackers := &a.reducible
		if a.someGather() {
			trackers = &a.phases[Reduce].free
		}
		for i := range trackers.All() {
			launched = a.assignReduce(a.trackers[i]) || launched
		}
	}
}

// assignReduce fills one slot of a tracker. It returns whether it could.
func (a *Assigner) assignReduce(t *Tracker) bool {
	launched := a.reduceQueued(t)
	a.skip = a.skip[:0]
	for !launched {
		j := a.next(Reduce, a.skip, t)
		if j == nil {
			return false
		}
		launched = a.cluster.LaunchReduce(j, t, true)
		a.skip.add(a.phases[Reduce].line.of(j).group)
	}
	a.updateLines()
	return true
}

// someGather reports whether a job in line has partitions to gather in slots.
func (a *Assigner) someGather() bool {
	for _, g := range a.phases[Reduce].line.groups {
		if g != nil && g.canUse(Reduce, nil) && slices.ContainsFunc(g.order, func(i int32) bool { return a.cluster.ToGather(a.jobs[i]) > 0 }) {
			return true
		}
	}
	return false
}
