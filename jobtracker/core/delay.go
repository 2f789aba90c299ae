package core

import (
	"fmt"
	"slices"
	"time"

	"github.com/quernmr/quern/locality"
	"github.com/quernmr/quern/wire"
)

// A job that is owed a slot and has no map with input there may refuse it, by the
// delay rule (package locality). It then stands outside of the line of maps: slots
// that become free near its input are its own as if it stood there, others it is not
// asked about before its wait is over. Meanwhile others have them, or nobody.
//
// Loose maps wait for nothing: those that have failed somewhere, whose input is
// near no tracker that is given work, or that have waited for long enough once.

// lookGap is the least time between two looks ahead of one job that refuses, and
// looksAhead how many such jobs look ahead in one Step at most.
const (
	lookGap    = 20 * time.Millisecond
	looksAhead = 16
)

// samples is how many of a job's maps are looked at for the one that would wait for
// the longest.
const samples = 6

// beginWait makes a map loose that waits for nothing.
func (l *Live) beginWait(j *job, m int) {
	if len(j.mishaps(&j.maps[m].task).avoid) > 0 || j.in.live[m] == 0 {
		l.loosen(j, m)
		return
	}
	if at, refused := j.refusedAt[int32(m)]; refused { // before, and still to be launched
		i, _ := slices.BinarySearchFunc(j.refused, at, func(m int32, at time.Duration) int {
			return compareTimes(j.refusedAt[m], at)
		})
		j.refused = slices.Insert(j.refused, i, int32(m))
	}
}

// loosen lets a map to launch go wherever there is a slot.
func (l *Live) loosen(j *job, m int) {
	if !j.loose.Add(m) {
		return
	}
	j.backInRacks(amongLoose, m)
	l.askAgain(j)
}

// askAgain brings a job that refuses back into the line: it is asked once more.
func (l *Live) askAgain(j *job) {
	if !j.refuses {
		return
	}
	j.refuses = false
	i := slices.Index(l.refusing, j)
	l.refusing = slices.Delete(l.refusing, i, i+1)
	l.move(j)
}

// askAllAgain does so for all, when the rule is another.
func (l *Live) askAllAgain() {
	for len(l.refusing) > 0 {
		l.askAgain(l.refusing[len(l.refusing)-1])
	}
}

// passOver takes a job out of the line until a time.
func (l *Live) passOver(j *job, until time.Duration) {
	j.wait.Refuse(l.now)
	j.refuses, j.refusedIn, j.looked, j.refusesUntil = true, l.round, l.now, until
	l.refusing = append(l.refusing, j)
	l.move(j)
	if j.woken <= l.now || until < j.woken { // else it is looked at before, and refuses again
		j.woken = until
		l.alarm(j, until)
	}
}

// endRefusal has a job asked again whose wait is over.
func (l *Live) endRefusal(j *job) {
	switch {
	case !j.refuses:
	case l.now >= j.refusesUntil:
		l.askAgain(j)
	case l.now >= j.woken:
		j.woken = j.refusesUntil
		l.alarm(j, j.woken)
	}
}

// lookAhead has some of those that refuse asked again while a slot is free that
// nobody has input near: it may be hopeless by now to wait for another.
func (l *Live) lookAhead() {
	if l.wishes.rule.Kind != locality.Dynamic || l.idle.Len() == 0 {
		return
	}
	var ask []*job
	for range min(looksAhead, len(l.refusing)) {
		l.turn = (l.turn + 1) % len(l.refusing)
		if j := l.refusing[l.turn]; l.now >= j.looked+lookGap {
			ask = append(ask, j)
		}
	}
	for _, j := range ask {
		l.askAgain(j)
	}
}

// oldestRefused is the map to launch that was refused first, or -1.
func (j *job) oldestRefused() int {
	for len(j.refused) > 0 {
		m := int(j.refused[0])
		if j.pending.Has(m) && !j.loose.Has(m) {
			return m
		}
		j.refused = j.refused[1:]
	}
	return -1
}

// typical is the bytes that a map of a job reads.
func (j *job) typical() int64 { return j.input / int64(max(1, len(j.maps))) }

// verdict is what the delay rule says of a slot that is near none of a job's maps.
type verdict struct {
	launch bool
	m      int           // this one; -1: any
	again  time.Duration // else: when to ask again
}

// offer is what the delay rule is to know of a job, whatever slot it is about.
func (l *Live) offer(j *job) locality.Offer {
	return locality.Offer{Average: time.Duration(j.average), Overhead: l.meter.Wait(j.typical())}
}

// judge asks the delay rule for a job with maps that are not loose.
func (l *Live) judge(j *job) verdict {
	rule := l.wishes.rule
	o := l.offer(j)
	o.Spell = j.wait.Spell(l.now)
	m := -1
	if rule.Kind == locality.Dynamic {
		if o.Contended = l.idle.Len() == 0; !o.Contended {
			m, o.Local, o.Predicted = l.longest(j)
		}
	}
	blind := o
	blind.Predicted = false
	switch {
	case rule.Decide(blind).Launch:
		return verdict{launch: true, m: -1}
	case o.Predicted && rule.Decide(o).Launch:
		return verdict{launch: true, m: m}
	}
	if m < 0 {
		m = j.firstBound()
	}
	oldest := j.oldestRefused()
	if oldest >= 0 {
		o.Total = j.wait.Total(l.now) - j.refusedAt[int32(oldest)]
	}
	d := rule.Decide(o)
	if d.Launch {
		l.loosen(j, oldest)
		return verdict{launch: true, m: oldest}
	}
	if _, refused := j.refusedAt[int32(m)]; !refused {
		j.refusedAt[int32(m)] = j.wait.Total(l.now)
		j.refused = append(j.refused, int32(m))
	}
	return verdict{again: d.Again}
}

// firstBound is the lowest map to launch that is not loose.
func (j *job) firstBound() int {
	for m := range j.pending.All() {
		if !j.loose.Has(m) {
			return m
		}
	}
	return -1
}

// longest is of some of a job's maps to launch the one that would wait longest for a
// slot near its input, and how long; ok is false when too little is measured.
func (l *Live) longest(j *job) (longest int, wait time.Duration, ok bool) {
	task := j.pace.Local
	if task == 0 {
		task = l.pace.Local
	}
	longest = -1
	if task == 0 {
		return longest, 0, false
	}
	m := j.sampled
	for range samples {
		if m = j.pending.Next(m + 1); m < 0 {
			m = j.pending.Next(0)
		}
		if j.loose.Has(m) {
			continue
		}
		if at, known := l.predict(j, m, task); known && (!ok || at > wait) {
			longest, wait, ok = m, at, true
		}
	}
	j.sampled = m
	return longest, wait, ok
}

// predict is how long a map should wait for a slot near its input.
func (l *Live) predict(j *job, m int, task time.Duration) (time.Duration, bool) {
	places := j.in.nodes.At(m)
	for len(l.scratch) < len(places) {
		l.scratch = append(l.scratch, locality.Node{})
	}
	for k, i := range places {
		n, s := l.byNode[i], &l.scratch[k]
		s.Releases, s.Ahead, s.Task = s.Releases[:0], float64(l.pull[i])/wholePull-1, task
		for _, t := range n.trackers {
			if t.works {
				s.Releases = l.releases(t, s.Releases)
			}
		}
		slices.Sort(s.Releases)
	}
	return locality.Predict(l.scratch[:len(places)])
}

// releases adds until when each map slot of a tracker is taken.
func (l *Live) releases(t *tracker, all []time.Duration) []time.Duration {
	for range t.free[mapPhase] {
		all = append(all, 0)
	}
	wall := l.wall()
	for _, a := range t.attempts {
		if a.id.Task.Kind != wire.Map {
			continue
		}
		ran, remote := time.Duration(wall-a.began)*time.Millisecond, a.level > wire.NodeLocal
		left, ok := a.job.pace.Left(remote, ran)
		if !ok {
			left, _ = l.pace.Left(remote, ran)
		}
		all = append(all, left)
	}
	return all
}

// learnReading takes in how a map has read its input, and how long it took.
func (l *Live) learnReading(j *job, level wire.Level, r *wire.Result) {
	far := level > wire.NodeLocal
	j.pace.Add(far, r.Took)
	l.pace.Add(far, r.Took)
	if r.Reads == (wire.Reads{}) {
		return
	}
	j.average.Add(l.meterReads(r.Reads))
}

// meterReads measures reads, and says how long those away from the input's nodes took.
func (l *Live) meterReads(r wire.Reads) time.Duration {
	local, away := r.Node, r.Rack
	away.Bytes += r.Remote.Bytes
	away.Took += r.Remote.Took
	l.meter.Add(locality.Read{Bytes: local.Bytes, Took: local.Took})
	l.meter.Add(locality.Read{Remote: true, Bytes: away.Bytes, Took: away.Took})
	return away.Took
}

// waitsForNear tells of a job that has slots refused.
func (j *job) waitsForNear(now time.Duration) string {
	return fmt.Sprintf("for a free map slot on a node with its input, elsewhere in %v", max(j.refusesUntil-now, 0).Round(time.Millisecond))
}
