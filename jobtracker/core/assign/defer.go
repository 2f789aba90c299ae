package assign

import (
	"cmp"
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core/taskset"
	"github.com/quernmr/quern/locality"
)

// The delay rule (package locality) may defer a job that is first in line and has no local map for
// the free slots. A deferred job is not in line. It still gets slots on nodes with its input, while
// other jobs get the other slots until its wait is over.

// lookAhead recalls a job at most once per lookAheadGap, and at most maxLookAheads jobs a round.
const (
	lookAheadGap  = 20 * time.Millisecond
	maxLookAheads = 16
)

// SetRule puts a delay rule into force. All deferred jobs return to the line, for the new rule to
// decide about them.
func (a *Assigner) SetRule(rule locality.Rule) {
	a.rule = rule
	for len(a.deferred) > 0 {
		a.recall(a.deferred[len(a.deferred)-1])
	}
}

// beginWait relaxes a map that cannot get a local slot. Other maps continue an earlier wait.
func (a *Assigner) beginWait(j *Job, m int) {
	if j.failed.Has(m) || j.in.live[m] == 0 {
		a.relax(j, m)
		return
	}
	if at, waited := j.waitingSince[int32(m)]; waited {
		i, _ := slices.BinarySearchFunc(j.waiting, at, func(m int32, at time.Duration) int {
			return cmp.Compare(j.waitingSince[m], at)
		})
		j.waiting = slices.Insert(j.waiting, i, int32(m))
	}
}

// relax lets a pending map use any slot.
func (a *Assigner) relax(j *Job, m int) {
	if !j.relaxed.Add(m) {
		return
	}
	j.lowerRackMarks(relaxed, m)
	a.recall(j)
}

// deferUntil defers a job until a time.
func (a *Assigner) deferUntil(j *Job, until time.Duration) {
	now := a.cluster.Now()
	j.wait.Defer(now)
	j.deferred, j.deferredRound, j.deferredAt, j.deferredUntil = true, a.round, now, until
	a.deferred = append(a.deferred, j)
	a.beginLeaving(j)
	a.MarkChanged(j)
	if j.alarm <= now || until < j.alarm { // else Recall sets it at the earlier alarm
		a.setAlarm(j, until)
	}
}

func (a *Assigner) setAlarm(j *Job, at time.Duration) {
	j.alarm = at
	a.cluster.Alarm(j, at)
}

// recall returns a deferred job to the line.
func (a *Assigner) recall(j *Job) {
	if !j.deferred {
		return
	}
	a.endLeaving(j)
	j.deferred = false
	a.deferred = without(a.deferred, j)
	a.MarkChanged(j)
}

// Recall returns a deferred job to the line if its wait is over.
func (a *Assigner) Recall(j *Job) {
	now := a.cluster.Now()
	switch {
	case !j.deferred:
	case now >= j.deferredUntil:
		a.recall(j)
	case now >= j.alarm:
		a.setAlarm(j, j.deferredUntil)
	}
}

// recallLocal recalls the first deferred job with a local map for each tracker with an unchecked
// slot.
func (a *Assigner) recallLocal(strict bool) {
	if len(a.deferred) == 0 {
		return
	}
	a.updateLines()
	p := &a.phases[Map]
	a.recallLocalTo(&a.unchecked, false, strict)
	if p.line.recheck() {
		a.recallLocalTo(&p.free, true, strict)
	}
}

// recallLocalTo recalls the first deferred job with a local map for each free tracker in a set; with
// recheck, only of the groups that are to be looked at again.
func (a *Assigner) recallLocalTo(trackers *taskset.Set, recheck, strict bool) {
	p := &a.phases[Map]
	for i := range trackers.All() {
		t := a.trackers[i]
		if !p.free.Has(i) || a.demand[t.nodeIndex] == 0 {
			continue
		}
		for index := range p.line.deferredInOrder(recheck) {
			if j := a.jobs[index]; j.deferred && j.FreeFor(Map).Has(i) && a.pickLocal(j, t, strict) >= 0 {
				a.recall(j)
				break
			}
		}
	}
}

// lookAhead recalls some deferred jobs if a free slot is local to no map: the dynamic rule may now
// predict that a local slot takes too long.
func (a *Assigner) lookAhead() {
	if a.rule.Kind != locality.Dynamic || a.unclaimed.Len() == 0 {
		return
	}
	now := a.cluster.Now()
	var recalled []*Job
	for range min(maxLookAheads, len(a.deferred)) {
		a.lastLookAhead = (a.lastLookAhead + 1) % len(a.deferred)
		if j := a.deferred[a.lastLookAhead]; now >= j.deferredAt+lookAheadGap {
			recalled = append(recalled, j)
		}
	}
	for _, j := range recalled {
		a.recall(j)
	}
}

// Deferred reports whether a job is deferred, and the latest end of its wait.
func (j *Job) Deferred() (until time.Duration, ok bool) { return j.deferredUntil, j.deferred }

// AwaitLocal counts the pending maps that are not relaxed. If the job is deferred, they wait for
// local slots.
func (j *Job) AwaitLocal() int { return j.pending.Len() - j.relaxed.Len() }

// longestWaiting returns the pending map with the longest wait for a local slot, or -1.
func (j *Job) longestWaiting() int {
	for len(j.waiting) > 0 {
		m := int(j.waiting[0])
		if j.pending.Has(m) && !j.relaxed.Has(m) {
			return m
		}
		j.waiting = j.waiting[1:]
	}
	return -1
}

// decision is the delay rule's answer for a slot that is local to none of a job's maps.
type decision struct {
	launch     bool
	onlyMap    int           // launch only this map; -1: any
	retryAfter time.Duration // if not launch: time until the rule must decide again
}

// offer returns the input of the delay rule that is the same for all slots.
func (a *Assigner) offer(j *Job) locality.Offer {
	return locality.Offer{Average: time.Duration(j.average), Overhead: a.meter.Wait(j.meanBytes)}
}

// MaxLocalWait returns the longest wait of a job's maps for local slots.
func (a *Assigner) MaxLocalWait(j *Job) time.Duration { return a.rule.Limit(a.offer(j)) }

// decide applies the delay rule to a job with maps that are not relaxed.
func (a *Assigner) decide(j *Job) decision {
	o, now := a.offer(j), a.cluster.Now()
	o.Spell = j.wait.Spell(now)
	m := -1
	if a.rule.Kind == locality.Dynamic {
		if o.Contended = a.unclaimed.Len() == 0; !o.Contended {
			m, o.Local, o.Predicted = a.slowest(j)
		}
	}
	unpredicted := o
	unpredicted.Predicted = false
	switch {
	case a.rule.Decide(unpredicted).Launch:
		return decision{launch: true, onlyMap: -1}
	case o.Predicted && a.rule.Decide(o).Launch:
		return decision{launch: true, onlyMap: m}
	}
	if m < 0 {
		m = j.firstUnrelaxed()
	}
	oldest := j.longestWaiting()
	if oldest >= 0 {
		o.Total = j.wait.Total(now) - j.waitingSince[int32(oldest)]
	}
	d := a.rule.Decide(o)
	if d.Launch {
		a.relax(j, oldest)
		return decision{launch: true, onlyMap: oldest}
	}
	if _, waited := j.waitingSince[int32(m)]; !waited {
		j.waitingSince[int32(m)] = j.wait.Total(now)
		j.waiting = append(j.waiting, int32(m))
	}
	return decision{retryAfter: d.Again}
}

// firstUnrelaxed returns the lowest pending map that is not relaxed, or -1.
func (j *Job) firstUnrelaxed() int {
	for m := range j.pending.All() {
		if !j.relaxed.Has(m) {
			return m
		}
	}
	return -1
}
