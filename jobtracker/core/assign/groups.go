package assign

import (
	"iter"
	"slices"

	"github.com/quernmr/quern/jobtracker/core/taskset"
)

// Jobs with the same limits and requests are a group: it is full while one of these limits is
// reached, and it has no room while no free slot has what its tasks request. Then it costs a round one
// look, however many of its jobs wait. Each phase has all groups. Group 0 has the jobs without limits
// and requests.
//
// A group's key is what decides whether its jobs may take another slot. To add such a thing, add it
// to groupKey, and to keyOf and isFull; call updateFull for the groups where it has changed.

// groupKey tells groups apart.
type groupKey struct {
	pool    string    // name of the pool of the table; empty: none
	classes [2]*class // of its requests, by phase
}

// keyOf returns the key of a job's group.
func keyOf(j *Job) (k groupKey) {
	k.classes = j.class
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
	free     *taskset.Set // trackers with a free slot that has what its tasks request
	order    []int32      // indexes of the jobs in line, by position
	deferred []int32      // indexes of the deferred jobs, sorted the same way
	full     bool
	recheck  bool // the next round looks for maps of the group that are local to any free slot
}

// groupOf returns the index of the group with a key, and makes it if needed.
func (a *Assigner) groupOf(k groupKey) int32 {
	i, ok := a.groups[k]
	if ok {
		return i
	}
	if n := len(a.unusedGroups); n > 0 {
		i, a.unusedGroups = a.unusedGroups[n-1], a.unusedGroups[:n-1]
	} else {
		i = int32(len(a.phases[Map].line.groups))
	}
	a.groups[k] = i
	for phase := range a.phases {
		s := &a.phases[phase].line
		if int(i) == len(s.groups) {
			s.groups, s.turns = append(s.groups, nil), append(s.turns, 0)
		}
		s.groups[i] = &group{key: k, free: &k.classes[phase].free[phase], full: a.isFull(k, phase)}
	}
	return i
}

// dropGroups forgets the groups of a class that has no jobs any more.
func (a *Assigner) dropGroups(c *class) {
	for i, g := range a.phases[Map].line.groups {
		if k := g.key; slices.Contains(k.classes[:], c) && a.groups[k] == int32(i) {
			delete(a.groups, k)
			a.unusedGroups = append(a.unusedGroups, int32(i))
		}
	}
}

// updateFull updates whether the groups of a pool are full, after what decides that has changed. Free
// slots may then be local to their jobs.
func (a *Assigner) updateFull(pool string) {
	for i, g := range a.phases[Map].line.groups {
		if g.key.pool == pool {
			a.updateFullAt(i, g.key)
		}
	}
}

func (a *Assigner) updateFullAt(i int, k groupKey) {
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

// first returns the index of the first job in line that can use a slot of a tracker, without those that
// each group has left out; -1: none. Tracker -1 means any tracker with a free slot.
func (s *line) first(tracker int32) int32 {
	best := int32(-1)
	if s.open == 0 {
		return best
	}
	for i, g := range s.groups {
		if skip := s.turns[i]; skip < len(g.order) && !g.full && g.hasRoom(tracker) {
			if index := g.order[skip]; best < 0 || s.positions[index].compare(&s.positions[best]) < 0 {
				best = index
			}
		}
	}
	return best
}

// hasRoom reports whether a free slot of a tracker has what the group's tasks request; -1: of any one.
func (g *group) hasRoom(tracker int32) bool {
	if tracker < 0 {
		return g.free.Len() > 0
	}
	return g.free.Has(int(tracker))
}

// firstOfEach returns, by class, the index of the first job in line that no limit keeps from slots; -1:
// none. The list is valid until the next call. It looks at each group once: there may be a group for each job.
func (s *line) firstOfEach(classes, phase int) []int32 {
	s.firsts = slices.Grow(s.firsts[:0], classes)[:classes]
	for i := range s.firsts {
		s.firsts[i] = -1
	}
	for _, g := range s.groups {
		if g.full || len(g.order) == 0 {
			continue
		}
		best, index := &s.firsts[g.key.classes[phase].index], g.order[0]
		if *best < 0 || s.positions[index].compare(&s.positions[*best]) < 0 {
			*best = index
		}
	}
	return s.firsts
}

// hasClass reports whether jobs of a class wait that no limit keeps from slots.
func (s *line) hasClass(c *class, phase int) bool {
	for _, g := range s.groups {
		if g.key.classes[phase] == c && !g.full && len(g.order)+len(g.deferred) > 0 {
			return true
		}
	}
	return false
}

// leaveOut leaves out the job that first has returned, if it is still there.
func (s *line) leaveOut(index int32) {
	i := s.positions[index].group
	if order := s.groups[i].order; s.turns[i] < len(order) && order[s.turns[i]] == index {
		s.turns[i]++
	}
}

// beginTurns yields the jobs in line that can use a slot of a tracker, in order; -1: of any one. The loop may change the line: then the next job is
// the first one that was not yielded, or has moved behind those.
func (s *line) beginTurns(tracker int32) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		clear(s.turns)
		for {
			index := s.first(tracker)
			if index < 0 || !yield(index) {
				return
			}
			s.leaveOut(index)
		}
	}
}

// onlyDeferred returns the group with deferred jobs if there is one such group, else nil.
func (s *line) onlyDeferred() (only *group) {
	for _, g := range s.groups {
		switch {
		case len(g.deferred) == 0:
		case only != nil:
			return nil
		default:
			only = g
		}
	}
	return only
}

// deferredInOrder yields the deferred jobs of groups that are not full, in order; with recheck, only
// of groups that are to be looked at again. The loop must not change the line.
func (s *line) deferredInOrder(recheck bool) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		if g := s.onlyDeferred(); g != nil {
			for i := 0; i < len(g.deferred) && !g.full && (g.recheck || !recheck) && yield(g.deferred[i]); i++ {
			}
			return
		}
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
