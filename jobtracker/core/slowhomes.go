package core

import (
	"fmt"
	"time"

	"github.com/quernmr/quern/jobtracker/core/forecast"
)

// A partition moves away from a home that still gathers long after the last map, while most homes
// on other trackers have finished. So a tracker with a slow disk, network or processor, or one that
// cannot read from the others, holds no job back.

// A home is slow slowHome + slowHomes times the usual time after the last map; for each such move
// of the partition before, twice as long.
const (
	slowHome      = 5 * time.Second
	slowHomes     = 3
	slowHomeCheck = time.Second
)

// moveSlowHomes moves partitions of a job away from slow homes, if other trackers can be homes.
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
		if others := all - here.Len(); others > 0 && 2*(complete-j.completeOn(t)) < others {
			continue // they gather as long
		}
		limit := l.gatherLimit(j, t)
		for p := range here.All() {
			h := &s.homes[p]
			since := max(h.since, j.outputs.completeSince)
			if h.complete || l.now < since+limit<<min(h.slowMoves, 8) {
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
	b := l.bandwidth()
	return slowHome + slowHomes*forecast.GatherTime(int64(bytes), b.Mean())
}

// outranLately reports whether another tracker ended a task of this one sooner a short time ago.
func (l *leader) outranLately(t *tracker) bool {
	return t.services.outran != 0 && l.now < t.services.outran+slowFor
}
