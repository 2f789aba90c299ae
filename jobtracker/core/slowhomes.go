package core

import (
	"fmt"
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core/forecast"
	"github.com/quernmr/quern/wire"
)

// A partition moves away from a home that still gathers long after the last map. So a tracker with a
// slow disk, network or processor, or one that cannot read from the others, holds no job back. If the
// home waits for at most half of the trackers, these are slow: others recompute their map outputs. For
// slowFor, these maps avoid all slow trackers, and a home that waits only for such trackers is not slow itself.

// A home on a tracker that was slow lately is slow slowHome + slowHomes times the usual time after the
// last map; for each such move of the partition before, twice as long. On another tracker it is slow
// after slowAlone times that: first, failed fetches tell which tracker is at fault. If most homes on
// other trackers gather as long, it is slow after slowTogether times that.
const (
	slowHome     = 5 * time.Second
	slowHomes    = 3
	slowAlone    = 2
	slowTogether = 4
)

// Homes are checked every slowHomeCheck, later less often: each time after another slowHomeChecks-th of
// the shortest time for which one of them has gathered.
const (
	slowHomeCheck  = time.Second
	slowHomeChecks = 8
)

// gathering sums up the homes of a job on a tracker.
type gathering struct {
	homes, complete int
	bytes           int64 // expected in incomplete homes; a large partition has gathered more already
}

// moveSlowHomes moves partitions of a job away from slow homes, if other trackers can be homes. If a
// home waits for slow servers, their maps rerun first.
func (l *leader) moveSlowHomes(j *job) {
	s := &j.partitions
	if s.ungathered == 0 || j.outputs.chosen < len(j.maps) || l.now < s.nextSlowCheck {
		return
	}
	after := l.now - j.outputs.completeSince
	if after < slowHome {
		l.checkSlowHomes(j, slowHome-after+lookGrid)
		return
	}
	on, complete, all := l.gathering(j)
	var servers servers
	for p := range s.homes {
		h := &s.homes[p]
		if h.complete || h.tracker == nil {
			continue
		}
		t := h.tracker
		here := &on[t.assign.Index()]
		limit := l.slowAfter(here.bytes)
		switch {
		case l.outranLately(t):
		case 2*(complete-here.complete) < all-here.homes:
			limit *= slowTogether
		default:
			limit *= slowAlone
		}
		gathered := l.now - max(h.since, j.outputs.completeSince)
		after = min(after, gathered)
		switch {
		case h.recomputed && servers.read(j).rerun:
		case !h.recomputed && l.recomputeAwaited(j, t, gathered, &servers):
			h.recomputed = true
		case gathered >= limit<<min(h.slowMoves, 8):
			l.moveSlowHome(j, p, gathered)
		}
	}
	l.checkSlowHomes(j, max(slowHomeCheck, after/slowHomeChecks))
}

// checkSlowHomes lets moveSlowHomes look at a job after a time.
func (l *leader) checkSlowHomes(j *job, after time.Duration) {
	j.partitions.nextSlowCheck = (l.now + after).Truncate(lookGrid)
	l.alarm(j, j.partitions.nextSlowCheck)
}

// gathering sums up the homes of a job by the index of their tracker, and counts them. Committed
// partitions count as complete ones.
func (l *leader) gathering(j *job) (on []gathering, complete, all int) {
	l.todo.gatherings = slices.Grow(l.todo.gatherings[:0], len(l.fleet.byIndex))
	on = l.todo.gatherings[:len(l.fleet.byIndex)]
	clear(on)
	mean := j.outputs.bytes / int64(len(j.partitions.homes))
	for p := range j.partitions.homes {
		h := &j.partitions.homes[p]
		if h.complete {
			complete++
		} else if h.tracker == nil {
			continue
		}
		all++
		if h.tracker == nil {
			continue
		}
		here := &on[h.tracker.assign.Index()]
		here.homes++
		if h.complete {
			here.complete++
		} else {
			here.bytes += max(mean, h.report.Bytes)
		}
	}
	return on, complete, all
}

// moveSlowHome moves a partition away from its home that has gathered for a time since the last map.
func (l *leader) moveSlowHome(j *job, p int, gathered time.Duration) {
	t := j.partitions.homes[p].tracker
	if !l.leave(j, &j.reduces[p], t.Name) {
		return
	}
	j.partitions.homes[p].slowMoves++
	if !l.awaitsSlow(j, t) {
		t.services.outran = l.now
	}
	j.faults.AddTrouble(fmt.Sprintf("partition %d is gathered again: its home on tracker %s has not ended %v after the last map",
		p, t.Name, gathered.Round(time.Millisecond)))
	l.rehome(j, p)
}

// servers are the places of the chosen outputs of a job, by output.place.
type servers struct {
	outputs map[int32][]int
	bytes   map[int32]int64
	rerun   bool // maps rerun, though their outputs are at hand
}

// read reads the outputs of a job, once.
func (x *servers) read(j *job) *servers {
	if x.outputs != nil {
		return x
	}
	x.outputs, x.bytes = make(map[int32][]int), make(map[int32]int64)
	for n := range j.maps {
		m := &j.maps[n]
		if o := &m.output; o.place > 0 {
			x.outputs[o.place] = append(x.outputs[o.place], n)
			x.bytes[o.place] += o.bytes
		}
		x.rerun = x.rerun || m.recompute && (m.runs() || j.assign.IsPending(n))
	}
	return x
}

// recomputeAwaited reruns maps of a job if a tracker still has to fetch their outputs so long after the
// last map, and has those of at least half of the trackers: then the others are slow. They serve until
// another tracker has the outputs. It reports whether maps rerun for it.
func (l *leader) recomputeAwaited(j *job, t *tracker, after time.Duration, x *servers) (rerun bool) {
	awaited := t.hosting.awaitedBy(j.id)
	if len(awaited) == 0 || after < slowHome {
		return false
	}
	x.read(j)
	var slow []*tracker
	var names []string
	for _, name := range awaited {
		s := l.fleet.trackers[name]
		if s == nil || s == t || x.outputs[s.place+1] == nil {
			continue
		}
		if after < l.slowAfter(x.bytes[s.place+1]) {
			return false
		}
		slow, names = append(slow, s), append(names, name)
	}
	all := len(x.outputs)
	if x.outputs[t.place+1] == nil {
		all++
	}
	if 2*len(slow) > all {
		return false
	}
	avoid := append(l.outranTrackers(), names...)
	for _, s := range slow {
		added := false
		for _, n := range x.outputs[s.place+1] {
			m := &j.maps[n]
			if !m.recompute && (l.leave(j, &m.task, avoid...) || l.leave(j, &m.task, names...)) {
				m.recompute, added = true, true
				l.updateMap(j, n)
			}
			rerun = rerun || m.recompute
		}
		if !added {
			continue
		}
		if 2*len(slow) < all { // else the home may be slow
			s.services.outran = l.now
		}
		j.faults.AddTrouble(fmt.Sprintf("maps of tracker %s run again: %v after the last map, tracker %s still waits for their outputs", s.Name, after.Round(time.Millisecond), t.Name))
	}
	return rerun
}

// awaitedBy returns the trackers from which homes of a job still have to fetch, see wire.Awaited.
func (h *hosting) awaitedBy(job wire.JobID) []string {
	i := slices.IndexFunc(h.awaited, func(a wire.Awaited) bool { return a.Job == job })
	if i < 0 || len(h.awaited[i].Trackers) > wire.MaxAwaited {
		return nil
	}
	return h.awaited[i].Trackers
}

// slowAfter returns how long after the last map a tracker has gathered so many bytes, if it is not slow.
func (l *leader) slowAfter(bytes int64) time.Duration {
	return slowHome + slowHomes*forecast.GatherTime(bytes, l.usualRate())
}

// measuredRate is a fetch rate in bytes a second, as measured at a time.
type measuredRate struct {
	at    time.Duration
	known bool
	rate  float64 // 0: not measured
}

// usualRate is the best rate of the slowest tracker of the fastest quarter: those that are slow, or fetch
// from slow ones, do not count. All may have fetched from slow ones only: it is at least the rate that is
// assumed before any is measured. It is computed once in a Step.
func (l *leader) usualRate() float64 {
	u := &l.fleet.usualRate
	if u.at == l.now && u.known {
		return u.rate
	}
	var rates []float64
	for _, t := range l.fleet.byIndex {
		if t != nil && t.usable() && t.hosting.bestRate > 0 {
			rates = append(rates, t.hosting.bestRate)
		}
	}
	u.at, u.known, u.rate = l.now, true, 0
	if slices.Sort(rates); len(rates) > 0 {
		u.rate = max(rates[3*len(rates)/4], forecast.DefaultRate)
	}
	return u.rate
}

// outranLately reports whether another tracker ended a task of this one sooner a short time ago.
func (l *leader) outranLately(t *tracker) bool {
	return t.services.outran != 0 && l.now < t.services.outran+slowFor
}

// outranTrackers lists the trackers that were outrun lately.
func (l *leader) outranTrackers() (names []string) {
	for _, t := range l.fleet.byIndex {
		if t != nil && l.outranLately(t) {
			names = append(names, t.Name)
		}
	}
	return names
}

// awaitsSlow reports whether homes of a job on a tracker wait only for others that were outrun lately.
func (l *leader) awaitsSlow(j *job, t *tracker) bool {
	awaited := t.hosting.awaitedBy(j.id)
	return len(awaited) > 0 && !slices.ContainsFunc(awaited, func(name string) bool {
		s := l.fleet.trackers[name]
		return s != nil && !l.outranLately(s)
	})
}
