package core

import (
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core/forecast"
	"github.com/quernmr/quern/jobtracker/core/placement"
	"github.com/quernmr/quern/locality"
	"github.com/quernmr/quern/wire"
)

// A ready partition is reduced at its home, or moves: see package placement. Map outputs that
// were lost are made again before, which the partition waits for where it is.

// movesAtOnce is how many of a job's partitions are looked at in one Step, and moveGap how
// long the others wait then.
const (
	movesAtOnce = 32
	moveGap     = 20 * time.Millisecond
)

// leastMove is what moving takes in any case.
const leastMove = 200 * time.Millisecond

// moveHomes moves ready partitions to where slots are free. All that are still in
// the line for reduces are on trackers without any.
func (l *Live) moveHomes() {
	free := l.assign.FreeTrackers(reducePhase)
	if free.Len() == 0 {
		return
	}
	for _, waits := range l.assign.InLine(reducePhase) {
		j := jobOf(waits)
		if j.assign.Ready() == 0 || l.now < j.housing.movesDue && j.housing.movesAsOf == free.Len() {
			continue
		}
		j.housing.movesAsOf, j.housing.movesDue = free.Len(), l.moveSome(j)
		if j.housing.movesDue != never {
			l.alarm(j, j.housing.movesDue)
		}
	}
}

// moveSome moves those of a job that have waited for long enough, and says when the
// next will have.
func (l *Live) moveSome(j *job) time.Duration {
	due, looked := never, 0
	for i := range j.housing.hosts.All() {
		t := l.fleet.byIndex[i]
		ready := t.hosting.ready[j]
		if ready == nil || ready.Len() == 0 {
			continue
		}
		for p := range ready.All() {
			h := &j.housing.homes[p]
			if looked++; looked > movesAtOnce {
				return min(due, l.now+moveGap)
			}
			if h.stuck == 0 {
				h.stuck = l.now + 1
			}
			until := h.stuck - 1 + l.movePatience(j, t, h)
			if l.now < until {
				due = min(due, until)
				continue
			}
			if j.outputs.chosen < len(j.maps) {
				l.makeAgain(j)
				continue
			}
			to := l.landing(j, p, t)
			if to == nil { // others are on their way there, or its reduce has failed there
				due = min(due, l.now+leastMove)
				if j.faults.Elsewhere(j.reduces[p].key()) == 0 {
					return due
				}
				continue
			}
			l.moveTo(j, p, to)
		}
	}
	return due
}

// movePatience is how long a ready partition waits for a slot of its home's tracker.
func (l *Live) movePatience(j *job, t *tracker, h *home) time.Duration {
	return placement.Patience(placement.Waiting{
		Rule: l.sharing.Rule, MoveTime: l.moveTime(j, t, h), RemoteCost: j.assign.RemoteCost(), Moves: h.moves,
		Slot: func() (time.Duration, bool) { return l.reduceAt(j, t) },
	})
}

// makeAgain has the maps run again whose outputs were lost, though all partitions were
// gathered: one is to be gathered anew.
func (l *Live) makeAgain(j *job) {
	if !j.outputs.remaking {
		j.outputs.remaking = true
		l.missingMaps(j)
	}
}

// madeAgain ends that: all outputs are at hand, or nobody waits for them any more.
func (l *Live) madeAgain(j *job) {
	if j.outputs.remaking {
		j.outputs.remaking = false
		l.dropNeedless(j)
	}
}

// moveTime is how long it should take to gather a partition anew.
func (l *Live) moveTime(j *job, t *tracker, h *home) time.Duration {
	made := time.Duration(0)
	if j.outputs.chosen < len(j.maps) {
		made = l.taskTime(j, mapPhase).Time
	}
	return leastMove + made + min(forecast.GatherTime(h.report.Bytes, t.hosting.rate), locality.MaxDelay)
}

// reduceAt is how long the last of the partitions that are ready on a tracker should
// wait for a slot there.
func (l *Live) reduceAt(j *job, t *tracker) (time.Duration, bool) {
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

// landing is a tracker with a free reduce slot that no other partition is on its way
// to: of those where the policy wants the job to be the first, else in turn.
func (l *Live) landing(j *job, p int, from *tracker) *tracker {
	free := l.assign.FreeTrackers(reducePhase)
	may := func(t *tracker) bool {
		return t != nil && t != from && free.Has(t.assign.Index()) && t.mayHome() && t.assign.Free(reducePhase) > t.hosting.incoming &&
			!j.waitsFor(&j.reduces[p], t)
	}
	for _, name := range l.ranking(j) {
		if t := l.fleet.trackers[name]; may(t) {
			return t
		}
	}
	i := l.placed
	for range free.Len() {
		if i = free.Next(i); i < 0 {
			i = free.Next(0)
		}
		if t := l.fleet.byIndex[i]; may(t) {
			l.placed = i + 1
			return t
		}
		i++
	}
	return nil
}

// moveTo has a ready partition gathered anew on a tracker with a free slot.
func (l *Live) moveTo(j *job, p int, t *tracker) {
	moves := j.housing.homes[p].moves + 1
	l.homeAt(j, p, t)
	h := &j.housing.homes[p]
	h.moves, h.moving = moves, true
	t.hosting.incoming++
	l.touch(j)
}

// landed counts a moved partition that is gathered, or is not any more, as on its way
// no longer.
func (l *Live) landed(h *home) {
	if h.moving {
		h.moving = false
		h.tracker.hosting.incoming--
	}
}
