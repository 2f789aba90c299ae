package assign

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
			if a.Exhausted() {
				return
			}
			launched = a.assignReduce(a.trackers[i]) || launched
		}
	}
}

// assignReduce fills one slot of a tracker. It returns whether it could.
func (a *Assigner) assignReduce(t *Tracker) bool {
	launched := a.reduceQueued(t)
	if !launched {
		for index := range a.phases[Reduce].line.beginTurns(t.index) {
			if launched = a.cluster.LaunchReduce(a.jobs[index], t, true); launched {
				break
			}
		}
	}
	if launched {
		a.launches--
		a.updateLines()
	}
	return launched
}

// someGather reports whether a job in line has partitions to gather in slots.
func (a *Assigner) someGather() bool {
	for _, g := range a.phases[Reduce].line.groups {
		for _, index := range g.order {
			if g.full || !g.hasRoom(-1) {
				break
			}
			if a.cluster.ToGather(a.jobs[index]) > 0 {
				return true
			}
		}
	}
	return false
}
