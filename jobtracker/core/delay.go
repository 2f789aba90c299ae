package core

import (
	"container/heap"
	"fmt"
	"time"

	"github.com/quernmr/quern/locality"
	"github.com/quernmr/quern/wire"
)

// A map that waits for a near slot is not ripe yet: for a slot in the rack of its
// input, or for any. A job has a clock that runs while a slot is free that it does
// not use for that reason alone. By this clock each map waits, all its attempts
// together. Nothing winds it back: a map that has waited for long enough once goes
// wherever there is a slot.
const (
	rackRipe = iota
	anyRipe
)

// levelOfRipe is how far the ripe may go.
func levelOfRipe(level int) wire.Level { return wire.RackLocal + wire.Level(level) }

// delayed is a map that waits, and when by its job's clock it began to.
type delayed struct {
	since time.Duration
	m     int
}

// delays is a heap of those, the longest waiting first. One that has been launched
// meanwhile is found out when its turn comes.
type delays []delayed

func (d delays) Len() int { return len(d) }
func (d delays) Less(i, k int) bool {
	return d[i].since < d[k].since || d[i].since == d[k].since && d[i].m < d[k].m
}
func (d delays) Swap(i, k int) { d[i], d[k] = d[k], d[i] }
func (d *delays) Push(x any)   { *d = append(*d, x.(delayed)) }
func (d *delays) Pop() any {
	old := *d
	x := old[len(old)-1]
	*d = old[:len(old)-1]
	return x
}

// waitClock is for how long slots have been refused for a job.
func (j *job) waitClock(now time.Duration) time.Duration {
	if j.refuses {
		return j.refused + now - j.refusesSince
	}
	return j.refused
}

// patience is the delay rule's, for a job. There is none for input that is near no
// tracker at all.
func (l *Live) patience(j *job, level int) time.Duration {
	if l.wishes.rule.Kind == locality.None || !l.anyNear(j) {
		return 0
	}
	return l.wishes.rule.Patience(levelOfRipe(level))
}

// anyNear says whether any tracker that is given work has input of the job on its node.
func (l *Live) anyNear(j *job) bool {
	if j.nearAsOf != l.workers {
		j.nearAsOf, j.near = l.workers, false
		for _, t := range l.byIndex {
			if t != nil && t.works && j.nodes[t.host] != nil {
				j.near = true
				break
			}
		}
	}
	return j.near
}

// beginWait has a map wait, or makes it ripe: one that has failed somewhere goes
// where it can.
func (l *Live) beginWait(j *job, m int) {
	t := &j.maps[m]
	t.since = j.waitClock(l.now) - t.waited
	for level := range j.ripe {
		if len(t.avoid) > 0 || t.waited >= l.patience(j, level) {
			j.ripeFor(level, m)
		} else {
			heap.Push(&j.delays[level], delayed{t.since, m})
		}
	}
}

// isWaiting says whether an entry of the heap is of a map that still waits so.
func (j *job) isWaiting(level int, d delayed) bool {
	return j.pending.Has(d.m) && !j.ripe[level].Has(d.m) && j.maps[d.m].since == d.since
}

// longest is the map that waits for the longest, if one does.
func (j *job) longest(level int) (delayed, bool) {
	for q := &j.delays[level]; q.Len() > 0; heap.Pop(q) {
		if j.isWaiting(level, (*q)[0]) {
			return (*q)[0], true
		}
	}
	return delayed{}, false
}

// ripen makes those maps ripe that have waited for long enough.
func (l *Live) ripen(j *job) {
	for level := range j.ripe {
		for {
			d, ok := j.longest(level)
			if !ok || j.waitClock(l.now)-d.since < l.patience(j, level) {
				break
			}
			j.ripeFor(level, d.m)
		}
	}
}

// stopClocks ends what the last round has refused, before slots are given anew.
func (l *Live) stopClocks() {
	for _, j := range l.refusing {
		j.refused, j.refuses = j.waitClock(l.now), false
	}
	l.refusing = l.refusing[:0]
}

// startClocks has the clocks of those run that could use a free slot but for their
// waiting, and has them looked at when the first of their maps is through with it.
func (l *Live) startClocks() {
	if l.free[mapPhase].Len() == 0 {
		return
	}
	for _, j := range l.phases[mapPhase].line {
		due := never
		for level := range j.ripe {
			if d, ok := j.longest(level); ok {
				due = min(due, l.now+l.patience(j, level)-(j.refused-d.since))
			}
		}
		if due == never {
			continue
		}
		j.refuses, j.refusesSince, j.refusesUntil = true, l.now, due
		l.refusing = append(l.refusing, j)
		l.alarm(j, due)
	}
}

// waitsForNear tells of a job that has slots refused.
func (j *job) waitsForNear(now time.Duration) string {
	return fmt.Sprintf("for a free map slot on a node with its input, elsewhere in %v", max(j.refusesUntil-now, 0).Round(time.Millisecond))
}
