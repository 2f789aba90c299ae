package assign

import (
	"cmp"
	"slices"
	"time"

	"github.com/quernmr/quern/locality"
)

// A job that is owed a slot and has no local map for it may be deferred, by the
// delay rule (package locality). It is out of the line of maps then: slots
// that become free on nodes with its input are its own as if it was in line, others it is
// not asked about before its wait is over. Meanwhile other jobs have them, or none.

// lookGap is the least time between two looks ahead of one deferred job, and
// looksAhead how many such jobs look ahead in one round at most.
const (
	lookGap    = 20 * time.Millisecond
	looksAhead = 16
)

// SetRule puts a delay rule into force. All deferred jobs are asked again.
func (a *Assigner) SetRule(rule locality.Rule) {
	a.rule = rule
	for len(a.deferred) > 0 {
		a.recall(a.deferred[len(a.deferred)-1])
	}
}

// beginWait makes a map relaxed that waits for nothing.
func (a *Assigner) beginWait(j *Job, m int) {
	if j.failed.Has(m) || j.in.live[m] == 0 {
		a.relax(j, m)
		return
	}
	if at, waited := j.waitingSince[int32(m)]; waited { // before, and still to be launched
		i, _ := slices.BinarySearchFunc(j.waiting, at, func(m int32, at time.Duration) int {
			return cmp.Compare(j.waitingSince[m], at)
		})
		j.waiting = slices.Insert(j.waiting, i, int32(m))
	}
}

// relax lets a map to launch go wherever there is a slot.
func (a *Assigner) relax(j *Job, m int) {
	if !j.relaxed.Add(m) {
		return
	}
	j.backInRacks(relaxed, m)
	a.recall(j)
}

// deferUntil takes a job out of the line until a time.
func (a *Assigner) deferUntil(j *Job, until time.Duration) {
	now := a.cluster.Now()
	j.wait.Refuse(now)
	j.deferred, j.deferredIn, j.deferredAt, j.deferredUntil = true, a.round, now, until
	a.deferred = append(a.deferred, j)
	a.Move(j)
	if j.alarm <= now || until < j.alarm { // else it is looked at before, and deferred again
		a.setAlarm(j, until)
	}
}

func (a *Assigner) setAlarm(j *Job, at time.Duration) {
	j.alarm = at
	a.cluster.Alarm(j, at)
}

// recall brings a deferred job back into the line.
func (a *Assigner) recall(j *Job) {
	if !j.deferred {
		return
	}
	j.deferred = false
	a.deferred = without(a.deferred, j)
	a.Move(j)
}

// Recall brings a deferred job back whose wait is over.
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

// recallLocal brings deferred jobs back that have maps local to an unchecked slot:
// for each tracker the first.
func (a *Assigner) recallLocal(strict bool) {
	if len(a.deferred) == 0 {
		return
	}
	a.lineUp()
	p := &a.phases[Map]
	for i := range a.unchecked.All() {
		t := a.trackers[i]
		if !p.free.Has(i) || a.demand[t.nodeIndex] == 0 {
			continue
		}
		for _, index := range p.line.deferred {
			if j := a.jobs[index]; j.deferred && a.pickLocal(j, t, strict) >= 0 {
				a.recall(j)
				break
			}
		}
	}
}

// lookAhead has some of the deferred jobs asked again while a slot is free that is local
// to no map: it may be hopeless by now to wait for another.
func (a *Assigner) lookAhead() {
	if a.rule.Kind != locality.Dynamic || a.unclaimed.Len() == 0 {
		return
	}
	now := a.cluster.Now()
	var ask []*Job
	for range min(looksAhead, len(a.deferred)) {
		a.lookedAt = (a.lookedAt + 1) % len(a.deferred)
		if j := a.deferred[a.lookedAt]; now >= j.deferredAt+lookGap {
			ask = append(ask, j)
		}
	}
	for _, j := range ask {
		a.recall(j)
	}
}

// Deferred says whether a job waits for slots that are local to its maps, and until when
// at the latest.
func (j *Job) Deferred() (until time.Duration, ok bool) { return j.deferredUntil, j.deferred }

// Bound counts the maps to launch that wait for local slots, once the job is deferred.
func (j *Job) Bound() int { return j.pending.Len() - j.relaxed.Len() }

// longestWaiting is the map to launch for which a slot was declined first, or -1.
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

// verdict is what the delay rule says of a slot that is local to none of a job's maps.
type verdict struct {
	launch bool
	m      int           // this one; -1: any
	again  time.Duration // else: when to ask again
}

// offer is what the delay rule is to know of a job, whatever slot it is about.
func (a *Assigner) offer(j *Job) locality.Offer {
	return locality.Offer{Average: time.Duration(j.average), Overhead: a.meter.Wait(j.typical)}
}

// Limit is how long maps of a job wait for local slots at most.
func (a *Assigner) Limit(j *Job) time.Duration { return a.rule.Limit(a.offer(j)) }

// judge asks the delay rule for a job with maps that are not relaxed.
func (a *Assigner) judge(j *Job) verdict {
	o, now := a.offer(j), a.cluster.Now()
	o.Spell = j.wait.Spell(now)
	m := -1
	if a.rule.Kind == locality.Dynamic {
		if o.Contended = a.unclaimed.Len() == 0; !o.Contended {
			m, o.Local, o.Predicted = a.slowest(j)
		}
	}
	blind := o
	blind.Predicted = false
	switch {
	case a.rule.Decide(blind).Launch:
		return verdict{launch: true, m: -1}
	case o.Predicted && a.rule.Decide(o).Launch:
		return verdict{launch: true, m: m}
	}
	if m < 0 {
		m = j.firstBound()
	}
	oldest := j.longestWaiting()
	if oldest >= 0 {
		o.Total = j.wait.Total(now) - j.waitingSince[int32(oldest)]
	}
	d := a.rule.Decide(o)
	if d.Launch {
		a.relax(j, oldest)
		return verdict{launch: true, m: oldest}
	}
	if _, waited := j.waitingSince[int32(m)]; !waited {
		j.waitingSince[int32(m)] = j.wait.Total(now)
		j.waiting = append(j.waiting, int32(m))
	}
	return verdict{again: d.Again}
}

// firstBound is the lowest map to launch that is not relaxed.
func (j *Job) firstBound() int {
	for m := range j.pending.All() {
		if !j.relaxed.Has(m) {
			return m
		}
	}
	return -1
}
