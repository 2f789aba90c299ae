package assign

import (
	"iter"

	"github.com/quernmr/quern/jobtracker/core/taskset"
	"github.com/quernmr/quern/wire"
)

// AddTracker adds a tracker on a host, and returns its index. It gets no work before SetTakesWork.
func (a *Assigner) AddTracker(t *Tracker, owner any, host string, slots [2]int) int {
	t.Owner, t.free = owner, slots
	t.index = int32(insert(&a.trackers, t))
	a.SetCounted(t, slots)
	for i := range a.phases {
		if p := &a.phases[i]; len(p.queueOf) < len(a.trackers) {
			p.queueOf = append(p.queueOf, nil)
		}
	}
	n := a.nodeOf(host)
	t.node, t.nodeIndex = n, n.index
	n.trackers = append(n.trackers, t)
	return int(t.index)
}

// DropTracker removes a tracker that takes no work.
func (a *Assigner) DropTracker(t *Tracker) {
	a.endSaving(t)
	a.SetCounted(t, [2]int{})
	a.trackers[t.index] = nil
	for _, j := range a.jobs {
		if j != nil {
			j.banned.Remove(int(t.index))
		}
	}
	t.node.trackers = without(t.node.trackers, t)
	a.dropNode(t.node)
}

// SetRack sets the rack of a tracker.
func (a *Assigner) SetRack(t *Tracker, rack string) { t.rack = a.rackOf(rack) }

// rackOf numbers the names of racks.
func (a *Assigner) rackOf(rack string) int32 {
	n, ok := a.racks[rack]
	if !ok {
		n = int32(len(a.racks))
		a.racks[rack] = n
	}
	return n
}

// SetTakesWork sets whether a tracker takes work, and whether it has map slots. Callers also call
// it after they change its slots.
func (a *Assigner) SetTakesWork(t *Tracker, takesWork, mapSlots bool) {
	t.takesWork = takesWork
	for phase := range a.phases {
		a.refresh(t, phase)
	}
	if !takesWork {
		a.dropQueue(t, Map)
		a.dropQueue(t, Reduce)
	}
	if takesMaps := takesWork && mapSlots; takesMaps != t.takesMaps {
		t.takesMaps = takesMaps
		a.setTakesMaps(t, takesMaps)
	}
}

// AddFree changes the number of a tracker's free slots. The caller then calls SetTakesWork.
func (a *Assigner) AddFree(t *Tracker, phase, slots int) { t.free[phase] += slots }

// Occupy assigns a slot of a tracker, and the requested room, to a task of a job.
func (a *Assigner) Occupy(j *Job, t *Tracker, phase int) {
	a.HoldSlot(j, t, phase)
	a.useRoom(t, j.class[phase], 1)
}

// Vacate undoes Occupy. The caller then calls MarkChanged, unless the job has ended.
func (a *Assigner) Vacate(j *Job, t *Tracker, phase int) {
	a.useRoom(t, j.class[phase], -1)
	a.ReleaseSlot(j, t, phase)
}

// HoldSlot assigns a slot of a tracker to a job without room: no task runs in it yet.
func (a *Assigner) HoldSlot(j *Job, t *Tracker, phase int) {
	t.free[phase]--
	a.countSlots(j, phase, 1)
	a.MarkChanged(j)
	a.gotSlot(j, t, phase)
	a.refresh(t, phase)
}

// ReleaseSlot undoes HoldSlot. The caller then calls MarkChanged, unless the job has ended.
func (a *Assigner) ReleaseSlot(j *Job, t *Tracker, phase int) {
	t.free[phase]++
	a.countSlots(j, phase, -1)
	a.refresh(t, phase)
}

// AddReady adds n, which may be negative, to a job's ready partitions on a tracker. It returns the
// job's total. The caller then calls SetTakesWork.
func (a *Assigner) AddReady(j *Job, t *Tracker, n int) int {
	t.ready += n
	j.ready += n
	return j.ready
}

// refresh updates the sets of trackers that can take tasks of a phase.
func (a *Assigner) refresh(t *Tracker, phase int) {
	i, free := int(t.index), t.takesWork && !t.held && t.free[phase] > 0
	changed := a.phases[phase].free.Set(i, free)
	for _, c := range a.classes {
		if c != nil && a.refreshClass(t, phase, c) {
			changed = true
		}
	}
	if phase == Map {
		idle := 0
		if free {
			idle = t.free[Map]
		}
		a.countIdle(t, idle)
	}
	switch {
	case phase == Reduce:
		a.reducible.Set(i, free && t.ready > 0)
	case changed:
		a.unchecked.Set(i, free)
		a.unclaimed.Set(i, free && a.demand[t.nodeIndex] == 0)
	}
}

// Free returns the number of free slots. It is negative after slots in use were removed.
func (t *Tracker) Free(phase int) int { return t.free[phase] }

// Ready counts the ready partitions on a tracker.
func (t *Tracker) Ready() int { return t.ready }

// Index returns the tracker's index, which is reused after DropTracker.
func (t *Tracker) Index() int { return int(t.index) }

// TakesMaps reports whether a tracker takes work and has map slots.
func (t *Tracker) TakesMaps() bool { return t.takesMaps }

// MapTrackers counts the trackers for which TakesMaps is true.
func (a *Assigner) MapTrackers() int { return a.mapTrackers }

// FreeTrackers returns the trackers that can take a task of a phase. It must not be changed.
func (a *Assigner) FreeTrackers(phase int) *taskset.Set { return &a.phases[phase].free }

// UsedSlots counts the slots that a job has.
func (j *Job) UsedSlots(phase int) int { return j.usedSlots[phase] }

// UsedSlots counts the slots of a phase that all jobs have.
func (a *Assigner) UsedSlots(phase int) int { return a.usedSlots[phase] }

// Ready counts the ready partitions of a job.
func (j *Job) Ready() int { return j.ready }

// MayTake reports whether a job may take another slot, as updateLines last computed.
func (j *Job) MayTake(phase int) bool { return j.mayRun && !j.pool.Full(phase) }

// Maps yields the pending maps, and then the maps set aside. The loop may remove the yielded map.
func (j *Job) Maps() iter.Seq[int] {
	return func(yield func(int) bool) {
		for _, maps := range []*taskset.Set{&j.pending, &j.aside} {
			for m := range maps.All() {
				if !yield(m) {
					return
				}
			}
		}
	}
}

// Pending counts the maps that wait for slots.
func (j *Job) Pending() int { return j.pending.Len() }

// IsPending reports whether a map waits for a slot.
func (j *Job) IsPending(m int) bool { return j.pending.Has(m) }

// AddPending makes a map pending, unless it is set aside.
func (a *Assigner) AddPending(j *Job, m int) {
	if j.aside.Has(m) || !j.pending.Add(m) {
		return
	}
	a.index(j, m)
	a.MarkChanged(j)
	if j.pending.Len() == 1 {
		a.cluster.PlanNow(Map)
	}
}

// RemovePending removes a map from the pending maps and the maps set aside.
func (a *Assigner) RemovePending(j *Job, m int) {
	j.aside.Remove(m)
	a.takePending(j, m)
}

func (a *Assigner) takePending(j *Job, m int) {
	if j.pending.Remove(m) {
		a.unindex(j, m)
		a.MarkChanged(j)
	}
}

// LevelOf returns how near a tracker is to the input of map m. It is [locality.Level], but compares
// numbers and not names. Input without preferred nodes has no level.
func (j *Job) LevelOf(m int, t *Tracker) wire.Level {
	nodes := j.in.nodes.At(m)
	switch {
	case len(nodes) == 0:
		return 0
	case taskset.Has(nodes, t.nodeIndex):
		return wire.NodeLocal
	case taskset.Has(j.in.racks.At(m), t.rack):
		return wire.RackLocal
	}
	return wire.Remote
}
