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
// lost map outputs are recomputed, while the partition waits at its home.

// maxMovesChecked is how many of a job's partitions a Step checks. The others wait for
// moveCheckGap.
const (
	maxMovesChecked = 32
	moveCheckGap    = 20 * time.Millisecond
)

// minMoveTime is the minimum cost of a move.
const minMoveTime = 200 * time.Millisecond

// moveReady moves ready partitions to trackers with free slots. The trackers of jobs that are
// still in the line for reduces have no free slots.
func (l *Live) moveReady() {
	free := l.assign.FreeTrackers(reducePhase)
	if free.Len() == 0 {
		return
	}
	for _, waits := range l.assign.InLine(reducePhase) {
		j := jobOf(waits)
		if j.assign.Ready() == 0 || l.now < j.housing.movesDue && j.housing.movesFree == free.Len() {
			continue
		}
		j.housing.movesFree, j.housing.movesDue = free.Len(), l.moveDue(j)
		if j.housing.movesDue != never {
			l.alarm(j, j.housing.movesDue)
		}
	}
}

// checkMovesNow lets the next moveReady check the job's partitions before movesDue.
func (h *housing) checkMovesNow() { h.movesDue = 0 }

// moveDue moves those partitions of a job that have waited for long enough, and returns when to
// check the others.
func (l *Live) moveDue(j *job) time.Duration {
	due, checked := never, 0
	for i := range j.housing.hosts.All() {
		t := l.fleet.byIndex[i]
		ready := t.hosting.ready[j]
		if ready == nil || ready.Len() == 0 {
			continue
		}
		for p := range ready.All() {
			h := &j.housing.homes[p]
			if checked++; checked > maxMovesChecked {
				return min(due, l.now+moveCheckGap)
			}
			if h.waitsSince == 0 {
				h.waitsSince = l.now + 1
			}
			until := h.waitsSince - 1 + l.maxMoveWait(j, t, h)
			if l.now < until {
				due = min(due, until)
				continue
			}
			if j.outputs.chosen < len(j.maps) {
				l.recomputeLost(j)
				continue
			}
			to := l.moveTarget(j, p, t)
			if to == nil { // others move there already, or its reduce failed there
				due = min(due, l.now+minMoveTime)
				if j.faults.AvoidUntil(j.reduces[p].key()) == 0 {
					return due
				}
				continue
			}
			l.moveTo(j, p, to)
		}
	}
	return due
}

// maxMoveWait is how long a ready partition waits for a slot at its home.
func (l *Live) maxMoveWait(j *job, t *tracker, h *home) time.Duration {
	return placement.MaxWait(placement.WaitInput{
		Rule: l.sharing.Rule, MoveTime: l.moveTime(j, t, h), RemoteCost: j.assign.RemoteCost(), Moves: h.moves,
		Slot: func() (time.Duration, bool) { return l.slotWait(j, t) },
	})
}

// recomputeLost reruns maps with lost outputs although all partitions are gathered: one of them
// has to be gathered again elsewhere.
func (l *Live) recomputeLost(j *job) {
	if !j.outputs.recomputing {
		j.outputs.recomputing = true
		l.rerunMissing(j)
	}
}

// recomputeEnded ends recomputeLost: all outputs exist, or no partition needs them any more.
func (l *Live) recomputeEnded(j *job) {
	if j.outputs.recomputing {
		j.outputs.recomputing = false
		l.dropUnneededMaps(j)
	}
}

// moveTime is how long it should take to gather a partition again.
func (l *Live) moveTime(j *job, t *tracker, h *home) time.Duration {
	made := time.Duration(0)
	if j.outputs.chosen < len(j.maps) {
		made = l.taskTime(j, mapPhase).Time
	}
	return minMoveTime + made + min(forecast.GatherTime(h.report.Bytes, t.hosting.fetchRate), locality.MaxDelay)
}

// slotWait is how long the last ready partition at a tracker should wait for a slot there.
func (l *Live) slotWait(j *job, t *tracker) (time.Duration, bool) {
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
		whole := l.taskTime(a.job, reducePhase).Time
		if whole == 0 {
			whole = task
		}
		n.Releases = append(n.Releases, max(0, whole-time.Duration(l.wall()-a.began)*time.Millisecond))
	}
	slices.Sort(n.Releases)
	return locality.Predict([]locality.Node{n})
}

// moveTarget is a tracker with a free reduce slot to which no other partition moves. It prefers
// the plan's ranking, then goes round robin.
func (l *Live) moveTarget(j *job, p int, from *tracker) *tracker {
	free := l.assign.FreeTrackers(reducePhase)
	may := func(t *tracker) bool {
		return t != nil && t != from && free.Has(t.assign.Index()) && t.canBeHome() && t.assign.Free(reducePhase) > t.hosting.incoming &&
			!j.mustAvoid(&j.reduces[p], t)
	}
	for _, name := range l.ranking(j) {
		if t := l.fleet.trackers[name]; may(t) {
			return t
		}
	}
	i := l.roundRobin
	for range free.Len() {
		if i = free.Next(i); i < 0 {
			i = free.Next(0)
		}
		if t := l.fleet.byIndex[i]; may(t) {
			l.roundRobin = i + 1
			return t
		}
		i++
	}
	return nil
}

// moveTo makes a tracker with a free slot gather a ready partition again.
func (l *Live) moveTo(j *job, p int, t *tracker) {
	moves := j.housing.homes[p].moves + 1
	l.assignHome(j, p, t)
	h := &j.housing.homes[p]
	h.moves, h.incoming = moves, true
	t.hosting.incoming++
	l.touch(j)
}

// moveEnded ends a partition's move: it is gathered, or its home has changed.
func (l *Live) moveEnded(h *home) {
	if h.incoming {
		h.incoming = false
		h.tracker.hosting.incoming--
	}
}
