package core

import (
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core/forecast"
	"github.com/quernmr/quern/jobtracker/core/placement"
	"github.com/quernmr/quern/locality"
	"github.com/quernmr/quern/wire"
)

// A ready partition is reduced at its home, or moves: see package placement. Before it moves,
// lost map outputs are recomputed: the new home needs all of them.

// A Step checks at most maxMovesChecked partitions of a job, and the others moveCheckGap later.
const (
	maxMovesChecked = 32
	moveCheckGap    = 20 * time.Millisecond
)

// minMoveTime is the minimum of moveTime.
const minMoveTime = 200 * time.Millisecond

// moveReady moves ready partitions to trackers with free slots. It follows AssignReduces: a job
// that is still in line has no ready partition on a tracker with a free slot.
func (l *leader) moveReady() {
	free := l.assign.FreeTrackers(reducePhase)
	if free.Len() == 0 {
		return
	}
	for _, waiting := range l.assign.InLine(reducePhase) {
		j := jobOf(waiting)
		if j.assign.Ready() == 0 || l.now < j.partitions.nextMoveCheck && j.partitions.freeAtMoveCheck == free.Len() {
			continue
		}
		j.partitions.freeAtMoveCheck, j.partitions.nextMoveCheck = free.Len(), l.moveWaiting(j)
		if j.partitions.nextMoveCheck != never {
			l.alarm(j, j.partitions.nextMoveCheck)
		}
	}
}

// checkMovesNow makes the next moveReady check the partitions.
func (s *partitions) checkMovesNow() { s.nextMoveCheck = 0 }

// moveWaiting moves partitions of a job that have waited long enough, and returns the time of the
// next check.
func (l *leader) moveWaiting(j *job) time.Duration {
	nextCheck, checked := never, 0
	for i := range j.partitions.hosts.All() {
		t := l.fleet.byIndex[i]
		ready := t.hosting.ready[j]
		if ready == nil || ready.Len() == 0 {
			continue
		}
		for p := range ready.All() {
			h := &j.partitions.homes[p]
			if checked++; checked > maxMovesChecked {
				return min(nextCheck, l.now+moveCheckGap)
			}
			if h.waitingSince == 0 {
				h.waitingSince = l.now + 1
			}
			until := h.waitingSince - 1 + l.maxMoveWait(j, t, h)
			if l.now < until {
				nextCheck = min(nextCheck, until)
				continue
			}
			if j.outputs.chosen < len(j.maps) {
				l.recomputeLost(j)
				continue
			}
			to := l.moveTarget(j, p, t)
			if to == nil { // other partitions move to the free slots, or the reduce has failed there
				nextCheck = min(nextCheck, l.now+minMoveTime)
				if j.faults.AvoidUntil(j.reduces[p].key()) == 0 {
					return nextCheck
				}
				continue
			}
			l.moveTo(j, p, to)
		}
	}
	return nextCheck
}

// maxMoveWait is how long a ready partition waits for a slot at its home before it moves.
func (l *leader) maxMoveWait(j *job, t *tracker, h *home) time.Duration {
	return placement.MaxWait(placement.WaitInput{
		Rule: l.sharing.Rule, MoveTime: l.moveTime(j, t, h), RemoteCost: j.assign.RemoteCost(), Moves: h.moves,
		Slot: func() (time.Duration, bool) { return l.slotWait(j, t) },
	})
}

// recomputeLost reruns maps with lost outputs although all partitions are gathered, since a
// partition is about to move. If such a map has failed for good, partitions stay where they are.
func (l *leader) recomputeLost(j *job) {
	if !j.outputs.recomputing && !j.outputs.recomputeFailed {
		l.outputsMayBeNeeded()
		j.outputs.recomputing = true
		l.rerunMissing(j)
	}
}

// recomputeEnded ends recomputeLost: all outputs exist, no partition is ready, or no reduce is slow.
func (l *leader) recomputeEnded(j *job) {
	if j.outputs.recomputing {
		j.outputs.recomputing = false
		l.dropUnneededMaps(j)
	}
}

// recomputeTime estimates how long it takes to recompute the lost map outputs of a job; 0: none is lost.
func (l *leader) recomputeTime(j *job) time.Duration {
	if j.outputs.chosen == len(j.maps) {
		return 0
	}
	return l.taskTime(j, mapPhase).Time
}

// moveTime estimates how long it takes to gather a partition again.
func (l *leader) moveTime(j *job, t *tracker, h *home) time.Duration {
	return minMoveTime + l.recomputeTime(j) + min(forecast.GatherTime(h.report.Bytes, t.hosting.fetchRate), locality.MaxDelay)
}

// slotWait estimates how long the last ready partition at a tracker waits for a slot there.
func (l *leader) slotWait(j *job, t *tracker) (time.Duration, bool) {
	task := l.taskTime(j, reducePhase).Time
	if task == 0 {
		return 0, false
	}
	n := locality.Node{Task: task, Ahead: float64(t.assign.Ready() - 1)}
	for range t.assign.Free(reducePhase) {
		n.Releases = append(n.Releases, 0)
	}
	for _, a := range t.attempts {
		if a.id.Task.Kind != wire.Reduce {
			continue
		}
		total := l.taskTime(a.job, reducePhase).Time
		if total == 0 {
			total = task
		}
		n.Releases = append(n.Releases, max(0, total-time.Duration(l.wall()-a.began)*time.Millisecond))
	}
	slices.Sort(n.Releases)
	return locality.Predict([]locality.Node{n})
}

// moveTarget returns a tracker with a free reduce slot to which no other partition moves, or nil.
// It goes by the plan's ranking, then round robin.
func (l *leader) moveTarget(j *job, p int, from *tracker) *tracker {
	free := j.assign.FreeFor(reducePhase)
	suitable := func(t *tracker) bool {
		return t != nil && t != from && free.Has(t.assign.Index()) && t.canBeHome() && t.assign.Free(reducePhase) > t.hosting.incoming &&
			!j.mustAvoid(&j.reduces[p], t) && !j.reduces[p].runsOn(t) && !l.outranLately(t)
	}
	for _, name := range l.ranking(j) {
		if t := l.fleet.trackers[name]; suitable(t) {
			return t
		}
	}
	i := l.roundRobin
	for range free.Len() {
		if i = free.Next(i); i < 0 {
			i = free.Next(0)
		}
		if t := l.fleet.byIndex[i]; suitable(t) {
			l.roundRobin = i + 1
			return t
		}
		i++
	}
	return nil
}

// moveTo makes a tracker with a free slot gather a ready partition again.
func (l *leader) moveTo(j *job, p int, t *tracker) {
	moves := j.partitions.homes[p].moves + 1
	l.assignHome(j, p, t)
	h := &j.partitions.homes[p]
	h.moves, h.moving = moves, true
	t.hosting.incoming++
	l.touch(j)
}

// moveEnded ends the move of a partition: it is gathered, or its home has changed.
func (l *leader) moveEnded(h *home) {
	if h.moving {
		h.moving = false
		h.tracker.hosting.incoming--
	}
}
