package assign

import "iter"

// Jobs that the same limits keep from slots are a group: it is full while one of these limits is
// reached, and then costs a round one look, however many of its jobs wait. Each phase has all
// groups. Group 0 has the jobs without limits.
//
// A group's key is what decides whether its jobs may take another slot. To add such a thing, add it
// to groupKey, and to keyOf and isFull; call updateFull for the groups where it has changed.

// groupKey tells groups apart.
type groupKey struct {
	pool string // name of the capped pool; empty: none
}

// keyOf returns the key of a job's group.
func keyOf(j *Job) (k groupKey) {
	if j.pool != nil {
		k.pool = j.pool.Name
	}
	return k
}

// isFull reports whether no job of the group with a key may take another slot of a phase.
func (a *Assigner) isFull(k groupKey, phase int) bool { return a.pools[k.pool].Full(phase) }

// group is the jobs of a group that wait for slots of a phase.
type group struct {
	key      groupKey
	order    []int32 // indexes of the jobs in line, by position
	deferred []int32 // indexes of the deferred jobs, sorted the same way
	full     bool
	recheck  bool // the next round looks for maps of the group that are local to any free slot
}

// groupOf returns the index of the group with a key, and makes it if needed.
func (a *Assigner) groupOf(k groupKey) int32 {
	i, ok := a.groups[k]
	if !ok {
		i = int32(len(a.groups))
		a.groups[k] = i
		for phase := range a.phases {
			s := &a.phases[phase].line
			s.groups = append(s.groups, &group{key: k, full: a.isFull(k, phase)})
			s.turns = append(s.turns, 0)
		}
	}
	return i
}

// updateFull updates whether a group is full, after what decides that has changed. Free slots may
// then be local to its jobs.
func (a *Assigner) updateFull(k groupKey) {
	i, ok := a.groups[k]
	if !ok {
		return
	}
	for phase := range a.phases {
		s := &a.phases[phase].line
		g, full := s.groups[i], a.isFull(k, phase)
		if g.full == full {
			continue
		}
		g.full = full
		if full {
			s.open -= len(g.order)
			continue
		}
		s.open += len(g.order)
		g.recheck = true
	}
}

// recheck reports whether a group with deferred jobs is to be looked at again.
func (s *line) recheck() bool {
	for _, g := range s.groups {
		if g.recheck && !g.full && len(g.deferred) > 0 {
			return true
		}
	}
	return false
}

// someDeferred reports whether a group that is not full has deferred jobs.
func (s *line) someDeferred() bool {
	for _, g := range s.groups {
		if !g.full && len(g.deferred) > 0 {
			return true
		}
	}
	return false
}

// first returns the index of the first job in line, without those that each group has left out;
// -1: none.
func (s *line) first() int32 {
	best := int32(-1)
	if s.open == 0 {
		return best
	}
	for i, g := range s.groups {
		if skip := s.turns[i]; !g.full && skip < len(g.order) {
			if index := g.order[skip]; best < 0 || s.positions[index].compare(&s.positions[best]) < 0 {
				best = index
			}
		}
	}
	return best
}

// leaveOut leaves out the job that first has returned, if it is still there.
func (s *line) leaveOut(index int32) {
	i := s.positions[index].group
	if order := s.groups[i].order; s.turns[i] < len(order) && order[s.turns[i]] == index {
		s.turns[i]++
	}
}

// beginTurns yields the jobs in line, in order. The loop may change the line: then the next job is
// the first one that was not yielded, or has moved behind those.
func (s *line) beginTurns() iter.Seq[int32] {
	return func(yield func(int32) bool) {
		clear(s.turns)
		for {
			index := s.first()
			if index < 0 || !yield(index) {
				return
			}
			s.leaveOut(index)
		}
	}
}

// deferredInOrder yields the deferred jobs of groups that are not full, in order; with recheck, only
// of groups that are to be looked at again. The loop must not change the line.
func (s *line) deferredInOrder(recheck bool) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		clear(s.turns)
		for {
			best, from := int32(-1), 0
			for i, g := range s.groups {
				if skip := s.turns[i]; !g.full && (g.recheck || !recheck) && skip < len(g.deferred) {
					if index := g.deferred[skip]; best < 0 || s.positions[index].compare(&s.positions[best]) < 0 {
						best, from = index, i
					}
				}
			}
			if best < 0 || !yield(best) {
				return
			}
			s.turns[from]++
		}
	}
}
