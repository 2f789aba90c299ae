package core

import (
	"fmt"
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core/forecast"
)

// A partition moves away from a home that still gathers long after the last map, while most homes
// on other trackers have finished. So a tracker with a slow disk, network or processor, or one that
// cannot read from the others, holds no job back. If the home waits for few servers only, these are
// slow: other trackers recompute their map outputs.

// A home is slow slowHome + slowHomes times the usual time after the last map; for each such move
// of the partition before, twice as long.
const (
	slowHome      = 5 * time.Second
	slowHomes     = 3
	slowHomeCheck = time.Second
)

// moveSlowHomes moves partitions of a job away from slow homes, if other trackers can be homes. If a
// home waits for a few slow servers only, their maps rerun instead.
func (l *leader) moveSlowHomes(j *job) {
	s := &j.partitions
	if s.ungathered == 0 || j.outputs.chosen < len(j.maps) || l.now < s.nextSlowCheck {
		return
	}
	s.nextSlowCheck = (l.now + slowHomeCheck).Truncate(lookGrid)
	l.alarm(j, s.nextSlowCheck)
	complete, all := j.countHomes()
	for i := range s.hosts.All() {
		t := l.fleet.byIndex[i]
		here := t.hosting.homes[j]
		others := all - here.Len()
		outrun := others == 0 || 2*(complete-j.completeOn(t)) >= others // else others gather as long
		limit := l.gatherLimit(j, t)
		for p := range here.All() {
			h := &s.homes[p]
			since := max(h.since, j.outputs.completeSince)
			if h.complete {
				continue
			}
			if !h.recomputed && l.recomputeAwaited(j, t, l.now-since) {
				h.recomputed = true
				continue
			}
			if !outrun || l.now < since+limit<<min(h.slowMoves, 8) {
				continue
			}
			j.avoid(&j.reduces[p], t.Name)
			if !l.hasAlternative(j, &j.reduces[p]) {
				continue
			}
			h.slowMoves++
			t.services.outran = l.now
			j.faults.AddTrouble(fmt.Sprintf("partition %d is gathered again: its home on tracker %s has not ended %v after the last map, while others have",
				p, t.Name, (l.now - since).Round(time.Millisecond)))
			l.rehome(j, p)
		}
	}
}

// recomputeAwaited reruns maps of a job if a tracker still has to fetch their outputs so long after the
// last map, and has fetched those of most servers: then the others are slow. They serve until
// another tracker has the outputs. It reports whether maps rerun.
func (l *leader) recomputeAwaited(j *job, t *tracker, after time.Duration) bool {
	if len(t.hosting.awaited) == 0 || after < slowHome {
		return false
	}
	on, bytes := make(map[int32][]int), make(map[int32]int64) // by output.tracker
	for m := range j.maps {
		if o := &j.maps[m].output; o.tracker > 0 {
			on[o.tracker] = append(on[o.tracker], m)
			bytes[o.tracker] += o.bytes
		}
	}
	var slow []*tracker
	for _, name := range t.hosting.awaited {
		s := l.fleet.trackers[name]
		if s == nil || s == t || on[s.number+1] == nil {
			continue
		}
		if after < l.slowAfter(t, bytes[s.number+1]) {
			return false
		}
		slow = append(slow, s)
	}
	if 2*len(slow) >= len(on) {
		return false
	}
	reruns := 0
	for _, s := range slow {
		before := reruns
		for _, n := range on[s.number+1] {
			m := &j.maps[n]
			j.avoid(&m.task, s.Name)
			if !m.recompute && l.hasAlternative(j, &m.task) {
				m.recompute = true
				reruns++
				l.updateMap(j, n)
			}
		}
		if reruns > before {
			s.services.outran = l.now
			j.faults.AddTrouble(fmt.Sprintf("maps of tracker %s run again: %v after the last map, tracker %s still waits for their outputs", s.Name, after.Round(time.Millisecond), t.Name))
		}
	}
	return reruns > 0
}

// countHomes counts the partitions of a job with a home, and the complete ones. Committed partitions
// count, too.
func (j *job) countHomes() (complete, all int) {
	for p := range j.partitions.homes {
		h := &j.partitions.homes[p]
		if h.complete {
			complete++
		}
		if h.complete || h.tracker != nil {
			all++
		}
	}
	return complete, all
}

// completeOn counts the complete partitions of a job at home on a tracker.
func (j *job) completeOn(t *tracker) (n int) {
	for p := range t.hosting.homes[j].All() {
		if j.partitions.homes[p].complete {
			n++
		}
	}
	return n
}

// gatherLimit returns how long after the last map a home of a job on a tracker becomes slow: the
// usual time is that of all partitions there at the mean rate of all trackers. A partition that
// turns out to be larger than expected has more time.
func (l *leader) gatherLimit(j *job, t *tracker) time.Duration {
	bytes := t.hosting.load
	for p := range t.hosting.homes[j].All() {
		h := &j.partitions.homes[p]
		bytes += max(0, float64(h.report.Bytes)-h.bytes)
	}
	return l.slowAfter(t, int64(bytes))
}

// slowAfter returns how long after the last map a tracker has gathered so many bytes, if it is not slow.
// The usual rate is the median of other trackers: one that is slow itself does not count.
func (l *leader) slowAfter(t *tracker, bytes int64) time.Duration {
	var rates []float64
	for _, x := range l.fleet.byIndex {
		if x != nil && x != t && x.usable() && x.hosting.bestRate > 0 {
			rates = append(rates, x.hosting.bestRate)
		}
	}
	usual := 0.0
	if slices.Sort(rates); len(rates) > 0 {
		usual = rates[len(rates)/2]
	}
	return slowHome + slowHomes*forecast.GatherTime(bytes, usual)
}

// outranLately reports whether another tracker ended a task of this one sooner a short time ago.
func (l *leader) outranLately(t *tracker) bool {
	return t.services.outran != 0 && l.now < t.services.outran+slowFor
}
